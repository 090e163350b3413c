"""Only here is a browser’s request: views, forms, template tags, the page shell, help."""
