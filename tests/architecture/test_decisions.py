"""Records of decisions: their form, their index, and what cites them."""

from __future__ import annotations

import re

from tests.architecture.test_house import ROOT, named, tracked

TEXT = (ROOT / "DECISIONS.md").read_text()
RECORDS = {
    int(number): (title, body)
    for number, title, body in re.findall(r"^## (\d+)\. (.+)\n((?:(?!##|<a ).*\n)*)", TEXT, flags=re.MULTILINE)
}
INDEX = re.findall(r"^\| \[(\d+)\]\(#\1\) \| (.+) \| (.+) \|$", TEXT, flags=re.MULTILINE)
PARTS = ["Context", "Decision", "Consequences", "Status"]
WORDS = 120


def canonical(name: str) -> str:
    """As PyPI compares names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def status(body: str) -> str:
    return body.rpartition("- **Status:** ")[2].strip().rstrip(".").lower()


def test_a_record_has_four_parts_and_few_words() -> None:
    assert RECORDS
    for number, (_, body) in RECORDS.items():
        assert re.findall(r"^- \*\*(\w+):\*\*", body, flags=re.MULTILINE) == PARTS, number
        assert len(body.split()) <= WORDS, number


def test_the_index_has_every_record_in_order() -> None:
    rows = [(int(number), title, word) for number, title, word in INDEX]
    assert rows == [(number, title, status(body)) for number, (title, body) in sorted(RECORDS.items())]
    assert list(RECORDS) == sorted(RECORDS)


def test_a_record_is_accepted_or_names_what_superseded_it() -> None:
    for number, (_, body) in RECORDS.items():
        if status(body) != "accepted":
            assert status(body).startswith("superseded by"), number
            assert {int(n) for n in re.findall(r"\d+", status(body))} <= RECORDS.keys() - {number}, number


def test_a_cited_record_exists() -> None:
    cited = {
        (named(path), int(number))
        for path in [*tracked("*.py", "*.sh", "*.md")]
        if named(path) != "CHANGELOG.md"
        for number in re.findall(r"\brecords? (\d+)\b", re.sub(r"\s+(?:# )?", " ", path.read_text()))
    }
    assert [where for where in sorted(cited) if where[1] not in RECORDS] == []


def test_every_cited_table_of_figures_exists() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "bench/RESULTS.md").read_text(), flags=re.MULTILINE)
    cited = re.findall(r"RESULTS\.md, “([^”]+)”", " ".join(TEXT.split()))
    assert cited
    assert set(cited) <= set(headings)


def test_every_pinned_package_has_its_reason() -> None:
    table = TEXT.partition("## Dependencies")[2].partition("## Index")[0]
    listed = {canonical(name) for name in re.findall(r"[\w.-]+", table)}
    for path in ROOT.glob("requirements*.txt"):
        pinned = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==", path.read_text(), flags=re.MULTILINE)
        assert [name for name in pinned if canonical(name) not in listed] == [], path.name
