"""One file a rule: two facts that cannot both be right, or a figure that fails its own arithmetic."""
