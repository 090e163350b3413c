"""Where a page has its look from."""

from __future__ import annotations

from django import template

from webapp.pages import styles

register = template.Library()
register.simple_tag(styles.address, name="styles_url")
