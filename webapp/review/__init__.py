"""What people say about findings, and the decisions they record."""
