"""The product’s own help, made from its catalogues."""
