"""The only room that handles a browser’s request: views, forms, template tags, the page shell, help."""
