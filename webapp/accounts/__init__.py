"""People: who may sign in, one-time links, throttled login."""
