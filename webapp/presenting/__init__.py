"""A value in, words or coordinates out: no query, no request."""
