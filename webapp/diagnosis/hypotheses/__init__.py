"""One file a hypothesis."""
