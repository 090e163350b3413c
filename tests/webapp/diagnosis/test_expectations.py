"""What healthy machines reach: for which card, over which link."""

from __future__ import annotations

import pytest

from webapp.diagnosis.reference.expectations import (
    Expectation,
    host_rate,
    peer_rate_nvlink,
    small_all_reduce,
    small_copy,
    staged_rate,
)

H200, PRO = "NVIDIA H200", "NVIDIA RTX PRO 6000 Blackwell Server Edition"


@pytest.mark.parametrize(("gen", "width"), [(None, 16), (5, None), (0, 16), (5, 0)])
def test_a_link_that_was_not_read_has_no_expectation(gen: int | None, width: int | None) -> None:
    assert host_rate(gen, width) is None
    assert staged_rate(gen, width) is None


def test_a_narrower_link_is_expected_to_carry_its_share() -> None:
    whole, half, older = host_rate(5, 16), host_rate(5, 8), host_rate(4, 16)
    assert whole
    assert half
    assert older
    assert half.low == pytest.approx(whole.low / 2)
    assert older.high == pytest.approx(whole.high / 2)
    assert "scaled" in half.source
    assert "scaled" not in whole.source


def ends(expected: Expectation | None) -> tuple[float, float] | None:
    return (expected.low, expected.high) if expected else None


@pytest.mark.parametrize(
    ("gpu", "access", "nvlink", "known"),
    [
        (H200, False, True, True),
        (None, False, False, True),
        (H200, True, True, True),
        (H200, True, False, False),
        (PRO, True, True, False),
        (None, True, True, False),
    ],
)
def test_a_small_copy_is_known_for_what_was_measured(gpu: str | None, access: bool, nvlink: bool, known: bool) -> None:
    assert (small_copy(gpu, access=access, nvlink=nvlink) is not None) is known


def test_a_direct_copy_is_expected_to_be_faster_than_a_staged_one() -> None:
    direct, staged = (ends(small_copy(H200, access=access, nvlink=True)) for access in (True, False))
    assert direct
    assert staged
    assert direct[1] < staged[0]


@pytest.mark.parametrize(
    ("gpu", "ranks", "p2p", "nvlink", "known"),
    [
        (H200, 2, True, True, True),
        (H200, 2, False, True, True),
        (H200, 4, True, True, False),
        (H200, 2, True, False, False),
        (PRO, 4, True, False, True),
        (PRO, 8, True, False, True),
        (PRO, 2, True, False, False),
        (PRO, 8, False, False, False),
        (PRO, 8, True, True, False),
        ("NVIDIA L40S", 8, True, False, False),
        (None, 8, True, False, False),
    ],
)
def test_a_small_all_reduce_is_known_for_what_was_measured(
    gpu: str | None, ranks: int, p2p: bool, nvlink: bool, known: bool
) -> None:
    assert (small_all_reduce(gpu, ranks, p2p=p2p, nvlink=nvlink) is not None) is known


def test_peer_to_peer_is_expected_to_be_faster_than_shared_memory() -> None:
    p2p, shm = (ends(small_all_reduce(H200, 2, p2p=p2p, nvlink=True)) for p2p in (True, False))
    assert p2p
    assert shm
    assert p2p[1] < shm[0]


@pytest.mark.parametrize(("gpu", "links", "known"), [(H200, 18, True), (H200, 0, False), (PRO, 18, False)])
def test_nvlinks_carry_their_number(gpu: str, links: int, known: bool) -> None:
    expected = peer_rate_nvlink(gpu, links)
    assert (expected is not None) is known
    if expected:
        one = peer_rate_nvlink(gpu, 1)
        assert one
        assert expected.low == pytest.approx(links * one.low)
