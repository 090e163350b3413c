"""The sheets as one file: all of them, kept by a browser as long as they are the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client, override_settings

from tests.pages import html_of
from webapp.pages.styles import SHEETS, address

pytestmark = pytest.mark.django_db


def test_every_page_names_one_file_that_holds_every_sheet(client: Client) -> None:
    page = html_of(client.get("/sign-in"))
    (named,) = re.findall(r'rel="stylesheet" href="([^"]+)"', page)
    answer = client.get(named)
    assert "immutable" in answer["Cache-Control"]
    assert "Cookie" not in answer["Vary"]
    assert answer["Content-Type"].startswith("text/css")
    for file in Path("static/css").glob("*.css"):
        assert file.read_bytes() in answer.content, file.name


def test_a_changed_sheet_has_another_address_and_an_old_one_is_not_kept(client: Client, tmp_path: Path) -> None:
    (tmp_path / "css").mkdir()
    for name in SHEETS:
        (tmp_path / f"css/{name}.css").write_text(f".{name} {{}}\n")
    with override_settings(STATIC_ROOT=tmp_path):
        before = address()
        (tmp_path / "css/help.css").write_text(".other {}\n")
        assert address() != before
        answer = client.get(before)
    assert answer.content.endswith(b".other {}\n")
    assert "immutable" not in answer["Cache-Control"]
