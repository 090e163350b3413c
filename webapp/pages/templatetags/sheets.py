"""Where a page has its look from."""

from django import template

from webapp.pages import styles

register = template.Library()
register.simple_tag(styles.address, name="styles_url")
