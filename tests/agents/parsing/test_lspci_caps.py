"""The clique capability: any layout that is a capability list is walked, and nothing else is believed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.parsing import lspci_caps


def _config(offsets: list[int], clique: int | None, position: int) -> bytes:
    """Config space with plain capabilities at the offsets and the clique's at `position` in the list."""
    space = bytearray(256)
    space[0:2], space[6] = b"\xde\x10", 0x10
    chain = list(offsets)
    where = 0xC8
    if clique is not None:
        chain.insert(position % (len(chain) + 1), where)
    pointer = 0x34
    for at in chain:
        space[pointer] = at
        space[at] = 0x09
        if at == where and clique is not None:
            space[at + 2 : at + 8] = b"\x08P2P" + bytes([clique << 3, 0])
        pointer = at + 1
    return bytes(space)


_OFFSETS = st.lists(st.integers(16, 48).map(lambda n: n * 4), unique=True, max_size=6)
_CLIQUES = st.none() | st.integers(0, 15)


@settings(max_examples=50)
@given(offsets=_OFFSETS, clique=_CLIQUES, position=st.integers(0, 6))
def test_a_clique_is_found_wherever_it_stands_in_the_list(
    offsets: list[int], clique: int | None, position: int
) -> None:
    found = lspci_caps.clique_in_config(_config(offsets, clique, position))
    assert (found.clique_id if found else None) == clique
    assert found is None or found.offset == 0xC8


def test_a_signature_outside_the_list_is_no_clique() -> None:
    space = bytearray(_config([0x60], None, 0))
    space[0xC8:0xD0] = b"\x09\x00\x08P2P\x00\x00"
    assert lspci_caps.clique_in_config(bytes(space)) is None


def test_a_list_that_bites_its_tail_ends() -> None:
    space = bytearray(_config([0x60, 0x70], None, 0))
    space[0x71] = 0x60
    assert set(lspci_caps.capabilities(bytes(space))) == {0x60, 0x70}


@settings(max_examples=50)
@given(space=st.binary(max_size=256))
def test_any_bytes_are_walked(space: bytes) -> None:
    lspci_caps.clique_in_config(space)


@settings(max_examples=50)
@given(space=st.binary(min_size=256, max_size=256), style=st.sampled_from(["od", "xxd", "-C", "xxx"]))
def test_every_dump_gives_the_bytes_back(space: bytes, style: str) -> None:
    assert lspci_caps.config_space(enumerate(_dump(space, style), 1)) == space


def _dump(space: bytes, style: str) -> list[str]:
    lines = []
    for at in range(0, 256, 16):
        row = space[at : at + 16]
        words = [f"{byte:02x}" for byte in row]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(
            {
                "od": f"{at:06x} {' '.join(words)}",
                "xxd": f"{at:08x}: {' '.join(words)}  {text}",
                "-C": f"{at:08x}  {' '.join(words[:8])}  {' '.join(words[8:])}  |{text}|",
                "xxx": f"{at:02x}: {' '.join(words)}",
            }[style]
        )
    return lines


def test_a_dump_with_a_hole_ends_at_the_hole() -> None:
    lines = _dump(bytes(range(256)), "od")
    del lines[5]
    assert lspci_caps.config_space(enumerate(lines, 1)) == bytes(range(80))
