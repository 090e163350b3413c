"""What templates of a session's pages read."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from webapp.pages.session_page import Activity, context_of


@dataclass(frozen=True)
class Own:
    events: int


def test_a_page_has_no_field_that_all_pages_have() -> None:
    """It would stand in place of the other without a word."""
    with pytest.raises(TypeError, match="Own has events once more"):
        context_of(Activity([], None, [], "0:"), Own(1))
