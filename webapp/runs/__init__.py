"""Everything between “run this” and the worker."""
