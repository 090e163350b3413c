"""A session as one file: taken away whole, or redacted, and opened on another instance."""
