"""What to run to measure, and how to read what it prints."""
