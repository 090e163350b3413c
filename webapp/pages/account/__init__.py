"""Signing in, the reader's own account, and people."""
