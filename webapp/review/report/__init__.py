"""A session as a document: one HTML file that needs nothing else, Markdown, or JSON."""
