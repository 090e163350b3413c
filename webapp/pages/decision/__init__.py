"""The pages of decisions, comments, comparison and reports."""
