"""A session as a document: Markdown or JSON."""
