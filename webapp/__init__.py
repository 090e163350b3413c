"""The reasoning, the records and the screens."""
