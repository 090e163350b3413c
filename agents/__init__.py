"""Reaches machines and reads them. Standard library and asyncssh; no Django, no opinions."""
