"""The screens of a session, one module a screen."""
