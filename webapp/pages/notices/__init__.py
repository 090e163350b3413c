"""Pages that choose the news for persons and programs."""
