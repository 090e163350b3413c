"""The local agent and the replay agent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.agent import MOST_OUTPUT, Reason, ScriptNotTaken, Unreachable
from agents.framing import read_bundle
from agents.local import LocalAgent
from agents.replay import ReplayAgent
from tests.agents.asking import probe_of, run, run_payload, script_of
from tests.waiting import OWN

pytestmark = pytest.mark.service


def test_a_local_run_is_read_back() -> None:
    ending, raw = run(LocalAgent(), script_of(probe_of("a", "echo hello")))
    assert (ending.exit_code, ending.reason, ending.leftover) == (0, Reason.FINISHED, False)
    assert read_bundle(raw).frames[0].raw_stdout == b"hello\n"


def test_cancelling_ends_grandchildren_too(alive: Callable[[str], list[int]]) -> None:
    probe = probe_of("a", f"setsid sleep 4730.{OWN} & sleep 4730.{OWN}", timeout_s=600)
    ending, _ = run(LocalAgent(), script_of(probe), cancelled=lambda: len(alive(f"sleep 4730.{OWN}")) >= 3)
    assert (ending.reason, ending.leftover, ending.exit_code) == (Reason.CANCELLED, False, None)
    assert not alive(f"sleep 4730.{OWN}")


def test_a_script_that_ignores_the_polite_signal_is_killed(alive: Callable[[str], list[int]]) -> None:
    script = f"trap '' TERM; sleep 4731.{OWN} & while :; do sleep 0.1; done"
    ending, _ = run(LocalAgent(), script, timeout_s=0.3)
    assert (ending.reason, ending.leftover) == (Reason.TIMED_OUT, False)
    assert not alive(f"sleep 4731.{OWN}")


def test_a_flood_is_stopped() -> None:
    ending, raw = run(LocalAgent(), "cat /dev/zero")
    assert ending.reason is Reason.FLOODED
    assert len(raw) <= MOST_OUTPUT


def test_output_held_open_by_a_stranger_does_not_hold_the_run() -> None:
    ending, _ = run(LocalAgent(), "setsid sleep 3 & exit 4", timeout_s=20)
    assert (ending.exit_code, ending.reason) == (4, Reason.FINISHED)


@settings(max_examples=5)
@given(argv=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4))
def test_a_payloads_arguments_arrive_unchanged(argv: list[str]) -> None:
    program = "import sys, os; os.write(1, ascii(sys.argv[1:]).encode()); sys.exit(5)"
    ending, raw = run_payload(LocalAgent(), program, argv)
    assert (raw.decode(), ending.exit_code) == (ascii(argv), 5)


def test_a_damaged_payload_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.supervision import wrap_payload

    script = wrap_payload(b"echo ran", [], interpreter="sh", timeout_s=5)
    ending, raw = run(LocalAgent(), script.replace("ZWNobyByYW4=", "ZWNobyByYW8="))
    assert (ending.exit_code, raw) == (3, b"")
    assert b"damaged" in ending.stderr


def test_a_replay_prints_the_recording_and_can_be_cancelled() -> None:
    ending, raw = run(ReplayAgent(b"abc" * 5000, chunk_bytes=1000), "")
    assert (ending.reason, raw) == (Reason.FINISHED, b"abc" * 5000)
    ending, raw = run(ReplayAgent(b"abc"), "", cancelled=lambda: True)
    assert (ending.reason, raw) == (Reason.CANCELLED, b"")


def test_a_shell_that_ends_before_it_took_the_script_is_said_in_one_sentence() -> None:
    with pytest.raises(ScriptNotTaken, match="ended the session before it took the whole script"):
        run(LocalAgent(), "exec true\n" + "# more\n" * 200_000)


def test_a_machine_without_a_shell_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unreachable, match="No shell could be started here"):
        run(LocalAgent(), ":")
