"""What the pages do, for programs: REST under /api/v1, and a thin client."""
