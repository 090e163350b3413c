"""The measure step shows what a sweep over NCCL's settings found, and what to paste when one is worth it."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from tests.pages import html_of
from tests.sweeps import lines, printed
from webapp.accounts.models import User
from webapp.records.sessions import session_open

pytestmark = pytest.mark.django_db

WORKLOAD = {
    "model": {"layers": 78, "hidden_size": 6144, "activation_bytes": 2},
    "parallelism": {"tp": 2},
    "observed": [{"concurrency": 1, "output_tokens_per_s": [90, 90]}],
}


def page(client: Client, alice: User, text: str) -> str:
    client.force_login(alice)
    session = session_open(owner=alice, title="sweep")
    session.workload = WORKLOAD
    session.save()
    client.post(f"/sessions/{session.pk}/paste/path", {"text": text})
    return html.unescape(html_of(client.get(f"/sessions/{session.pk}/path")))


def ranking(shown: str) -> list[str]:
    """The table's rows as a reader hears them."""
    found = re.search(r'<table class="ranking".*?</table>', shown, re.S)
    assert found
    items = re.findall(r"<tr>.*?</tr>", found[0].partition("<tbody>")[2], re.S)
    return [" ".join(re.sub(r"<[^>]+>", " ", item).split()) for item in items]


def test_the_fastest_stands_first_with_what_to_paste(client: Client, alice: User) -> None:
    said = lines({"proto_ll": 0.8, "algo_tree": 1.2}, outcomes={"proto_ll128": "hang"})
    shown = page(client, alice, printed(said))
    assert 'id="nccl-environment-1">export NCCL_PROTO=LL</pre>' in shown
    assert "ms without it" in shown
    first, *_, last = ranking(shown)
    assert first.startswith("NCCL_PROTO=LL ✓ faster 0.8")
    assert last.startswith("NCCL_PROTO=LL128 ✕ hung nothing came back")
    assert "12 KiB (100 %)" in shown


def test_no_difference_offers_nothing_to_paste(client: Client, alice: User) -> None:
    shown = page(client, alice, printed(lines(seed=4)))
    assert "No arm differs from NCCL’s own choice beyond chance" in shown
    assert "nccl-environment" not in shown
    assert all(" – no difference shown " in row for row in ranking(shown))


def test_what_a_machine_sends_is_text_and_no_markup(client: Client, alice: User) -> None:
    said = lines(outcomes={"proto_ll": "hang"})
    for line in said:
        if line.get("outcome") == "hang":
            line["why"] = "<script>alert(1)</script>"
    client.force_login(alice)
    session = session_open(owner=alice, title="sweep")
    client.post(f"/sessions/{session.pk}/paste/path", {"text": printed(said)})
    raw = html_of(client.get(f"/sessions/{session.pk}/path"))
    assert "<script>alert" not in raw
    assert "&lt;script&gt;alert" in raw
