"""One module per kind of secret or name to replace in exports."""
