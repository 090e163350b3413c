"""One module per tool format: text in, rows out."""
