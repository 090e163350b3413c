"""Measurements and states before and after a change."""
