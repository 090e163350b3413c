"""Which of several machines says something else; and that the unknown is neither alike nor odd."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.facts import Fact
from agents.facts.bench import COPY, CopyPath, CopyResult, CopyRow, Timing
from agents.facts.gpu import GPUS, Gpu
from agents.facts.p2p import P2P_READ, P2pCode, P2pMatrix
from agents.facts.platform import DRIVER_VERSION
from webapp.diagnosis.compare.odd_one_out import Comparison, Row, Standing, compared
from webapp.diagnosis.facts import Facts, Sourced


def machine(*known: tuple[Fact[Any], Any]) -> Facts:
    return Facts.of(Sourced(fact.known(value), f"e{n}@0", 0, n) for n, (fact, value) in enumerate(known))


def row(comparison: Comparison, title: str) -> Row:
    return next(row for row in comparison.rows if row.title == title)


def standings(comparison: Comparison, title: str) -> list[str]:
    return [str(cell.standing) for cell in row(comparison, title).cells]


def drivers(*versions: str | None) -> dict[str, Facts]:
    return {
        f"vm-{n}": machine((DRIVER_VERSION, version)) if version else machine() for n, version in enumerate(versions)
    }


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (("580", "580", "575"), ["alike", "alike", "odd"]),
        (("580", "575"), ["differs", "differs"]),
        (("580", "580", "575", "575"), ["differs"] * 4),
        (("580", "580", None), ["alike", "alike", "unknown"]),
        (("580", "575", None, None), ["differs", "differs", "unknown", "unknown"]),
        (("580", "580", "575", "570"), ["differs"] * 4),
        (("580", "580", "580", "575", "570"), ["alike", "alike", "alike", "odd", "odd"]),
    ],
)
def test_the_odd_one_needs_a_majority(versions: tuple[str | None, ...], expected: list[str]) -> None:
    found = compared(drivers(*versions))
    assert standings(found, "NVIDIA driver") == expected
    assert [name for name, _ in found.odd] == [f"vm-{n}" for n, standing in enumerate(expected) if standing == "odd"]


def test_what_nobody_knows_is_no_row() -> None:
    assert compared(drivers(None, None)).rows == ()
    assert compared({}).rows == ()


def copies(time_us: float, timing: Timing = Timing.DEVICE, size_bytes: int = 12288) -> Facts:
    made = CopyRow(CopyPath.PEER, "0", "1", size_bytes, time_us, timing)
    return machine((COPY, CopyResult((made,))))


def test_figures_are_held_against_the_median_and_only_like_with_like() -> None:
    title = "Copy of 12 KiB between GPUs"
    found = compared({"a": copies(3.4), "b": copies(3.5), "c": copies(18.9), "d": copies(3.45)})
    assert standings(found, title) == ["alike", "alike", "odd", "alike"]
    assert row(found, title).cells[2].text == "18.9 µs"
    assert row(found, title).cells[2].source == "e0@0"
    other = {"a": copies(3.4), "b": copies(17.0, Timing.HOST_SYNC), "c": copies(9.9, size_bytes=4096)}
    assert standings(compared(other), title) == ["alike", "unknown", "unknown"]
    assert standings(compared({"a": copies(3.4), "b": copies(9)}), title) == ["differs", "differs"]


def test_links_and_peer_answers_are_counted_over_all_pairs() -> None:
    def matrix(*codes: P2pCode) -> Facts:
        first, second = codes
        answers = P2pMatrix(("GPU0", "GPU1"), ((None, first), (second, None)))
        gpus = tuple(Gpu(n, "H200", pcie_gen_max=5, pcie_width=16) for n in range(2))
        return machine((P2P_READ, answers), (GPUS, gpus))

    ok, ns = P2pCode.OK, P2pCode.NS
    found = compared({"a": matrix(ns, ns), "b": matrix(ns, ns), "c": matrix(ok, ns)})
    assert [c.text for c in row(found, "Peer reads of pairs").cells] == ["2 × NS", "2 × NS", "1 × NS, 1 × OK"]
    assert found.odd == (("c", ("Peer reads of pairs",)),)
    assert row(found, "PCIe links").usual == "2 × Gen5 x16"


@given(st.lists(st.sampled_from(["580", "575", "570", None]), max_size=9))
def test_never_odd_without_being_outvoted(versions: list[str | None]) -> None:
    found = compared(drivers(*versions))
    for told in found.rows:
        known = [cell for cell in told.cells if cell.standing is not Standing.UNKNOWN]
        odd = [cell for cell in known if cell.standing is Standing.ODD]
        assert 2 * len(odd) < len(known)
        assert not odd or len(known) >= 3
