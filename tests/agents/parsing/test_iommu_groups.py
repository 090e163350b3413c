"""The same groups in every layout read the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.parsing import iommu_groups

pytestmark = pytest.mark.thorough

ADDRESS = st.builds(
    lambda bus, slot, function: f"0000:{bus:02x}:{slot:02x}.{function}",
    st.integers(0, 255),
    st.integers(0, 31),
    st.integers(0, 7),
)
Pairs = list[tuple[int, str]]


@st.composite
def groups(draw: st.DrawFn) -> Pairs:
    addresses = draw(st.lists(ADDRESS, min_size=1, max_size=8, unique=True))
    numbers = draw(st.lists(st.integers(0, 999), min_size=len(addresses), max_size=len(addresses)))
    return sorted(zip(numbers, addresses, strict=True))


def _headers(pairs: Pairs, header: str, indent: str, name: str) -> str:
    text, last = "", None
    for number, address in pairs:
        text += "" if number == last else header.format(number) + "\n"
        text += f"{indent}{address[5:]} {name}\n"
        last = number
    return text


def _by_lspci(pairs: Pairs, attribute: str) -> str:
    return "".join(f"{a} Bridge: x\n\tControl: I/O-\n{attribute.format(n)}\n" for n, a in pairs)


LAYOUTS: dict[str, Callable[[Pairs], str]] = {
    "script": lambda p: _headers(p, "IOMMU Group {}:", "\t", "Host bridge [0600]: X [1022:14a4]"),
    "no colon": lambda p: _headers(p, "IOMMU group {}", "  ", "Host bridge: X"),
    "indents lost": lambda p: _headers(p, "IOMMU Group {}:", "", "Host bridge: X"),
    "find": lambda p: "".join(f"/sys/kernel/iommu_groups/{n}/devices/{a}\n" for n, a in p),
    "pairs": lambda p: "".join(f"{n} {a}\n" for n, a in p),
    "one line": lambda p: "".join(f"IOMMU Group {n} {a} Host bridge: X\n" for n, a in p),
    "lspci": lambda p: _by_lspci(p, "\tIOMMU group: {}"),
    "lspci -v": lambda p: _by_lspci(p, "\tFlags: fast devsel, IRQ 255, IOMMU group {}"),
    "table": lambda p: "│ class │ id │ iommugroup │\n" + "".join(f"│ 0 │ {a} │ {n} │\n" for n, a in p),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=25)
@given(pairs=groups())
def test_every_layout_gives_the_same_groups(layout: str, pairs: Pairs) -> None:
    found = iommu_groups.parse(LAYOUTS[layout](pairs))
    assert found is not None
    assert [(g.group, d) for g in found.groups for d in g.devices] == pairs


def test_a_line_about_something_else_ends_a_group() -> None:
    text = "IOMMU Group 3:\n\t01:00.0 VGA: x\nroot@gpuhost:~# lspci\n02:00.0 VGA: y\n"
    found = iommu_groups.parse(text)
    assert found is not None
    assert [g.devices for g in found.groups] == [("0000:01:00.0",)]
