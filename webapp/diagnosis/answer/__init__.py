"""The diagnosis in words: for the page, for an engineer, for a manager, and over time."""
