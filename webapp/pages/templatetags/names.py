"""What a page calls a test, a path, who acts and what restarts."""

from django import template

from webapp.diagnosis import naming, next_test
from webapp.presenting.fact_lists import lacking

register = template.Library()
register.filter("test_title", next_test.title_of)
register.filter("path_name", naming.path_in_words)
register.filter("who", naming.actor_in_words)
register.filter("restarted", naming.restart_in_words)
register.filter("lacking", lacking)
