"""What a page calls a test and where it is made, a path, who acts and what restarts."""

from typing import Any

from django import template

from webapp.diagnosis import naming, next_test
from webapp.diagnosis.case import NextTest
from webapp.pages import next_step
from webapp.presenting.fact_lists import lacking

register = template.Library()
register.filter("test_title", next_test.title_of)
register.filter("path_name", naming.path_in_words)
register.filter("who", naming.actor_in_words)
register.filter("restarted", naming.restart_in_words)
register.filter("lacking", lacking)


@register.simple_tag(takes_context=True)
def place_of(context: Any, test: str) -> str:
    return next_step.place_of(context["session"], test)


@register.filter
def takes(test: NextTest) -> str:
    return next_step.takes(test)
