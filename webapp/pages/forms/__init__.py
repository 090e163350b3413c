"""HTML forms."""
