"""Template tags of the review."""
