"""Where a test that is named on a page is made, or its output given."""

from typing import Any

from django import template

from webapp.diagnosis.case import NextTest
from webapp.pages import next_step

register = template.Library()


@register.simple_tag(takes_context=True)
def place_of(context: Any, test: str) -> str:
    return next_step.place_of(context["session"], test)


@register.filter
def takes(test: NextTest) -> str:
    return next_step.takes(test)
