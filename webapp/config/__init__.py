"""Settings, URLs and the entry points of the web application."""
