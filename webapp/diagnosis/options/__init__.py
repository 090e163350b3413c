"""One file an option."""
