"""Signing in, one’s account, people."""
