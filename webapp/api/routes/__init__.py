"""The operations, one module a kind of thing."""
