"""Accepted host keys, as OpenSSH keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.host_keys import HostKey, pinned_in


def _key(folder: Path, name: str) -> HostKey:
    return HostKey.from_line((folder / f"{name}.pub").read_text())


def test_pins_are_found_by_host_and_port(ssh_keys: Path) -> None:
    pin, other = _key(ssh_keys, "host_key"), _key(ssh_keys, "other_host_key")
    assert pin.fingerprint.startswith("SHA256:")
    text = "\n".join([f"gpu1 {pin.line}", f"[gpu1]:2222 {other.line}", "junk", "# x"])
    assert pinned_in(text, "gpu1") == (pin,)
    assert pinned_in(text, "gpu1", 2222) == (other,)
    assert pinned_in(text, "gpu2") == ()
    assert pinned_in(f"{text}\n@revoked gpu1 {pin.line}", "gpu1") == ()


@pytest.mark.parametrize("line", ["", "ssh-ed25519", "ssh-ed25519 AAAA", "junk"])
def test_what_is_no_key_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        HostKey.from_line(line)


@settings(max_examples=50)
@given(text=st.text(max_size=200))
def test_any_known_hosts_text_can_be_read(text: str) -> None:
    pinned_in(text, "gpu1")
