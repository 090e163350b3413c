"""A row, and the one function that changes it: no request, no HTML."""
