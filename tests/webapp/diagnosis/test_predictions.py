"""Held, missed or undecided, and never more than the measurement allows."""

from __future__ import annotations

import pytest

from agents.facts.p2p import P2P_READ, P2pCode
from webapp.diagnosis.claim import Basis, Range
from webapp.diagnosis.compare.calibration import calibrated, wilson
from webapp.diagnosis.compare.comparability import Comparability, Gate, Item, Standing
from webapp.diagnosis.compare.predictions import Chosen, Codes, Score, Seen, Verdict, p2p_scores, throughput_score

OPEN = Comparability(Gate.COMPARABLE, "", ())
NS, OK = (P2pCode.NS,), (P2pCode.OK,)
Q35 = Chosen("q35_pcie", "q35", (1.0, 1.0), Basis.LITERATURE, ("vm.machine",))
CLIQUE = Chosen("gpudirect_clique", "clique", (1.0, 1.49), Basis.INFERRED, ("vm.args", P2P_READ.id), P2pCode.OK)
PROFILE = Chosen("engine_profile", "profile", None, Basis.MEASURED)
BACKEND = Chosen("moe_backend", "backend", None, Basis.INFERRED, ("guest.engine",))


def strayed(*titles: str) -> Comparability:
    items = tuple(Item(title, "a", "b", Standing.UNINTENDED) for title in titles)
    return Comparability(Gate.CAVEATS, "", items)


@pytest.mark.parametrize(
    ("options", "codes", "verdicts"),
    [
        ((Q35,), Codes(NS, NS), [Verdict.HELD]),
        ((Q35,), Codes(NS, OK), [Verdict.MISSED]),
        ((Q35,), None, [Verdict.UNDECIDED]),
        ((CLIQUE,), Codes(NS, OK), [Verdict.HELD]),
        ((CLIQUE,), Codes(NS, (P2pCode.NS, P2pCode.OK)), [Verdict.MISSED]),
        ((CLIQUE, Q35), Codes(NS, OK), [Verdict.HELD, Verdict.UNDECIDED]),
        ((CLIQUE, Q35), Codes(NS, NS), [Verdict.MISSED, Verdict.HELD]),
        ((PROFILE,), Codes(NS, NS), []),
    ],
)
def test_the_drivers_answer(options: tuple[Chosen, ...], codes: Codes | None, verdicts: list[Verdict]) -> None:
    assert [score.verdict for score in p2p_scores(options, codes, OPEN)] == verdicts


def test_another_driver_decides_nothing_about_the_options() -> None:
    (score,) = p2p_scores((CLIQUE,), Codes(NS, OK), strayed("driver"))
    assert (score.verdict, score.why) == (Verdict.UNDECIDED, "driver changed too")
    (score,) = p2p_scores((CLIQUE,), Codes(NS, OK), strayed("ECC"))
    assert score.verdict is Verdict.HELD


@pytest.mark.parametrize(
    ("predicted", "seen", "verdict"),
    [
        ((1.0, 1.0), Seen(1.01, (0.98, 1.04), ""), Verdict.HELD),
        ((1.0, 1.0), Seen(1.12, (1.08, 1.16), ""), Verdict.MISSED),
        ((1.0, 1.0), Seen(1.05, (1.0, 1.1), ""), Verdict.UNDECIDED),
        ((1.0, 1.49), Seen(1.2, (1.1, 1.3), ""), Verdict.HELD),
        ((1.2, 1.49), Seen(1.0, (0.95, 1.05), ""), Verdict.MISSED),
        # One run each may be off by half as much again.
        ((1.0, 1.49), Seen(1.2, None, ""), Verdict.UNDECIDED),
        ((1.0, 1.49), Seen(3.0, None, ""), Verdict.MISSED),
        ((1.0, 1.0), None, Verdict.UNDECIDED),
    ],
)
def test_the_throughput(predicted: Range, seen: Seen | None, verdict: Verdict) -> None:
    option = Chosen("a", "a", predicted, Basis.ESTIMATED, ("vm.args",))
    score = throughput_score((option,), seen, OPEN, ())
    assert score
    assert score.verdict is verdict


@pytest.mark.parametrize(
    ("options", "gate", "beside", "why"),
    [
        ((CLIQUE, BACKEND), OPEN, (), "not predicted: backend"),
        ((CLIQUE,), OPEN, ("decision 2",), "not predicted: decision 2"),
        ((CLIQUE,), strayed("driver"), (), "driver changed too"),
        ((CLIQUE,), Comparability(Gate.NOT_COMPARABLE, "GPUs changed", ()), (), "not comparable"),
    ],
)
def test_what_else_was_done_leaves_it_undecided(
    options: tuple[Chosen, ...], gate: Comparability, beside: tuple[str, ...], why: str
) -> None:
    score = throughput_score(options, Seen(1.2, (1.1, 1.3), ""), gate, beside)
    assert score
    assert score.verdict is Verdict.UNDECIDED
    assert why in score.why


def test_options_that_were_measured_together_are_scored_together() -> None:
    score = throughput_score((CLIQUE, Q35, PROFILE), Seen(1.2, (1.1, 1.3), ""), OPEN, ())
    assert score
    assert score.options == ("gpudirect_clique", "q35_pcie")
    assert score.predicted_range == (1.0, 1.49)
    assert score.verdict is Verdict.HELD
    assert throughput_score((PROFILE,), None, OPEN, ()) is None


def test_calibration_counts_by_kind_and_basis() -> None:
    def score(what: str, basis: Basis, verdict: Verdict) -> Score:
        return Score(what, ("a",), basis, "", "", verdict, "")

    found = calibrated(
        [
            score("throughput", Basis.ESTIMATED, Verdict.MISSED),
            score("throughput", Basis.ESTIMATED, Verdict.HELD),
            score("throughput", Basis.MEASURED, Verdict.UNDECIDED),
            score("P2P status", Basis.INFERRED, Verdict.HELD),
        ]
    )
    counts = [(c.what, c.basis.value, c.held, c.missed, c.undecided) for c in found]
    assert counts == [
        ("P2P status", "inferred", 1, 0, 0),
        ("throughput", "measured", 0, 0, 1),
        ("throughput", "estimated", 1, 1, 0),
    ]
    assert found[1].rate is None
    assert found[2].rate == wilson(1, 2)
