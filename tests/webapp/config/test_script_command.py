"""`script … --phase`: what it prints, and what it says where there is nothing to print."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.standin.pve_host import KPRO6
from webapp.records.models import DiagnosisSession


def printed(*words: str) -> tuple[str, str, int]:
    out, error, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command("script", *words, stdout=out, stderr=error)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    return out.getvalue(), error.getvalue(), code


def test_a_phase_from_the_sample() -> None:
    out, error, code = printed(*("host", "--phase", "P2", "--do", "apply", "--from", "sample:kpro6@host"))
    assert code == 0
    assert error.startswith("Left out: What the guest then sees")
    assert out.startswith("#!/bin/sh\n# Peerpath P2 apply, VM 128:")
    assert out.endswith('{ begin "$@"; apply; exit; }\n')


def test_what_is_left_out_stands_beside_the_script(tmp_path: Path) -> None:
    file = tmp_path / "128.conf"
    file.write_text(f"### /etc/pve/qemu-server/128.conf\n{KPRO6}")
    out, error, code = printed("host", "--phase", "P2", "--do", "apply", "--from", str(file))
    assert code == 0
    assert "new_1='host'" in out
    assert "x-nv-gpudirect-clique=" not in out.split("changes()")[0]
    assert "Left out: No clique is set" in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["host", "--phase", "P2"], "--phase and --do belong together"),
        (["host", "--phase", "P2", "--do", "apply"], "Say what is known of the machine"),
        (["host", "--phase", "P5", "--do", "apply", "--from", "sample:kpro6"], "P5 is other ground"),
        (["host", "--phase", "P2", "--do", "apply", "--from", "sample:kpro6@guest"], "No Proxmox VM"),
        (["host", "--phase", "P2", "--do", "apply", "--from", "/nowhere"], "no such file or folder"),
    ],
)
def test_a_script_that_cannot_be_made_says_why(words: list[str], said: str) -> None:
    out, error, code = printed(*words)
    assert (out, code) == ("", 2)
    assert said in error


def test_a_session_that_is_stored(session_of_alice: DiagnosisSession) -> None:
    words = ["--phase", "P1", "--do", "rollback", "--session", str(session_of_alice.pk)]
    assert "Peerpath P1 rollback, the guest" in printed("guest", *words)[0]
    assert "No Proxmox VM is known" in printed("host", "--phase", "P2", *words[2:])[1]
    words[-1] = "5f0e9a2e-0000-4000-8000-000000000000"
    assert "There is no session" in printed("guest", *words)[1]
    words[-1] = "nonsense"
    assert printed("guest", *words)[2] == 2
