"""Help: pages about the product, made from its own registries."""
