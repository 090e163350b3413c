"""The pages of a session and its steps."""
