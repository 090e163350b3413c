"""What the driver answered before and after a change, and whether that was predicted."""

from __future__ import annotations

from typing import Any

import pytest

from agents.facts import Reading
from agents.facts.host import HOST_CMDLINE
from agents.facts.p2p import P2P_READ, P2pCode
from agents.facts.platform import KERNEL_CMDLINE, MachineType
from agents.facts.vm import VM_ARGS, VM_CLIQUE, VM_HOSTPCI, VM_MACHINE, HostPci
from tests.webapp.diagnosis.building import matrix
from webapp.diagnosis.compare.p2p_status import StatusChange, p2p_status
from webapp.diagnosis.facts import Facts, Sourced

NS, OK, CNS = P2pCode.NS, P2pCode.OK, P2pCode.CNS
CLIQUE = VM_CLIQUE.known({"hostpci0": 0, "hostpci1": 0})
PCIE, PLAIN = (VM_HOSTPCI.known((HostPci(0, pcie=pcie), HostPci(1, pcie=True))) for pcie in (True, None))


def status(before: tuple[Reading[Any], ...], after: tuple[Reading[Any], ...]) -> StatusChange | None:
    sides = enumerate((before, after))
    return p2p_status(Facts.of(Sourced(reading, f"x{epoch}", epoch) for epoch, side in sides for reading in side))


def reads(code: P2pCode, *other: tuple[int, int, P2pCode]) -> Reading[Any]:
    return P2P_READ.known(matrix(3, code, *other), lines=(1,))


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        (reads(NS), reads(OK), ((NS,), (OK,))),
        (reads(NS), reads(OK, (0, 1, NS)), ((NS,), (NS, OK))),
        (reads(OK, (2, 0, CNS)), reads(OK), ((CNS, OK), (OK,))),
    ],
)
def test_the_answers_of_both_sides(old: Reading[Any], new: Reading[Any], codes: tuple[Any, Any]) -> None:
    change = status((old,), (new,))
    assert change is not None
    assert (change.before, change.after) == codes
    assert change.unchanged is (codes[0] == codes[1])
    assert [ref.source for ref in change.evidence] == ["x0", "x1"]


def test_one_side_alone_is_no_change() -> None:
    assert status((reads(NS),), ()) is None
    assert status((), (reads(NS),)) is None


@pytest.mark.parametrize(
    ("had", "got", "predicted", "held"),
    [
        ((), (reads(OK), CLIQUE), "OK", True),
        ((), (reads(NS), CLIQUE), "OK", False),
        ((), (reads(OK, (0, 1, NS)), CLIQUE), "OK", False),
        ((CLIQUE,), (reads(NS), CLIQUE), "unchanged", None),
        ((PLAIN,), (reads(NS), PCIE), "unchanged", True),
        ((PLAIN,), (reads(OK), PCIE), "unchanged", False),
        ((PCIE,), (reads(OK), PCIE), "unchanged", None),
        ((), (reads(NS),), "unchanged", None),
    ],
)
def test_a_new_clique_predicts_ok_and_every_other_change_the_same_answer(
    had: tuple[Reading[Any], ...], got: tuple[Reading[Any], ...], predicted: str, held: bool | None
) -> None:
    change = status((reads(NS), *had), got)
    assert change is not None
    assert (change.predicted, change.held) == (predicted, held)


@pytest.mark.parametrize(
    ("had", "got", "changes"),
    [
        (VM_MACHINE.known(MachineType.I440FX), VM_MACHINE.known(MachineType.Q35), ("q35",)),
        (VM_MACHINE.known(MachineType.Q35), VM_MACHINE.known(MachineType.Q35), ()),
        (VM_MACHINE.known(MachineType.Q35), VM_MACHINE.known(MachineType.I440FX), ()),
        (PCIE, PLAIN, ()),
        (HOST_CMDLINE.known("ro"), HOST_CMDLINE.known("ro iommu=pt quiet"), ("iommu=pt",)),
        (HOST_CMDLINE.known("ro iommu=pt"), HOST_CMDLINE.known("ro iommu=pt"), ()),
        (KERNEL_CMDLINE.known("ro"), KERNEL_CMDLINE.known("ro pci=realloc splash"), ("pci=realloc",)),
        (VM_ARGS.known("-cpu host"), VM_ARGS.known("-cpu max"), ()),
    ],
)
def test_what_was_changed_between_them(had: Reading[Any], got: Reading[Any], changes: tuple[str, ...]) -> None:
    change = status((reads(NS), had), (reads(NS), got))
    assert change is not None
    assert change.changes == changes


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        (HOST_CMDLINE.known("ro iommu=pt"), ()),
        (KERNEL_CMDLINE.known("ro pci=realloc"), ("pci=realloc",)),
        (VM_ARGS.known("-device x"), ("args",)),
        (CLIQUE, ("clique",)),
    ],
)
def test_a_hosts_line_that_was_never_read_before_may_be_old(line: Reading[Any], changes: tuple[str, ...]) -> None:
    change = status((reads(NS),), (reads(NS), line))
    assert change is not None
    assert change.changes == changes
