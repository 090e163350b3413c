"""Comments, decisions and their verification."""
