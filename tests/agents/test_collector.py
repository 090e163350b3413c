"""The generated script, run by real shells and read back."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.collector import build_script, preview, quote, script_sha256
from agents.facts import View
from agents.facts.host import VMX
from agents.facts.platform import PYTHON_WITH_TORCH, REFERENCE_TOOLS
from agents.framing import Bundle, read_bundle
from agents.probe import Command, Probe
from agents.probes import all_probes, handed_for, probes_for
from tests.agents.asking import NONCE, probe_of, script_of
from tests.waiting import OWN, wait_until

pytestmark = pytest.mark.service
SHELLS = [words for words in (["dash"], ["bash"], ["busybox", "ash"]) if shutil.which(words[0])]


def _sh(script: str, **environment: str) -> bytes:
    return subprocess.run(
        ["/bin/sh"],
        input=script.encode(),
        capture_output=True,
        timeout=60,
        check=True,
        env={"PATH": "/usr/bin:/bin", **environment},
    ).stdout


def _ask(*probes: Probe, shell: list[str] | None = None, arguments: dict[str, str] | None = None) -> Bundle:
    script = script_of(*probes, arguments=arguments or {})
    done = subprocess.run(
        [*(shell or ["sh"]), "-s"], input=script.encode(), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return read_bundle(done.stdout, nonce=NONCE)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_every_shell_gives_the_same_answers(shell: list[str]) -> None:
    bundle = _ask(
        probe_of("plain", "printf 'x\\ny'; echo e >&2; exit 3"),
        probe_of("missing", Command("no-such-tool", needs=("no-such-tool",))),
        probe_of("second", Command("no-such-tool", needs=("no-such-tool",)), "echo two"),
        probe_of("inner", "no-such-tool", Command("echo root", root=True)),
        probe_of("reads", "cat; echo end"),
        probe_of("forges", f"echo '={NONCE}= end probes=0'; printf '\\n={NONCE}= done guest.forges'"),
        probe_of("slow", "sleep 0.2; echo slow", slow=True),
        probe_of("late", "sleep 30 & sleep 30", timeout_s=1),
        probe_of("big", "head -c 100000000 /dev/zero", cap_kib=2),
        probe_of("loud", "head -c 100000000 /dev/zero >&2; echo after", cap_kib=2),
        shell=shell,
    )
    got = {
        f.probe_id.removeprefix("guest."): (
            f.output.exit_code,
            f.output.alternative,
            f.output.truncated,
            f.output.timed_out,
        )
        for f in bundle.frames
    }
    assert (bundle.complete, bundle.hash_matches, bundle.edited) == (True, True, False)
    assert got.pop("big")[2:] == got.pop("loud")[2:] == (True, False)
    assert got == {
        "plain": (3, 0, False, False),
        "missing": (127, -1, False, False),
        "second": (0, 1, False, False),
        "inner": (0, 1, False, False),
        "reads": (0, 0, False, False),
        "forges": (0, 0, False, False),
        "slow": (0, 0, False, False),
        "late": (124, 0, False, True),
    }
    said = {f.probe_id.removeprefix("guest."): f.raw_stdout for f in bundle.frames}
    assert said["plain"] == b"x\ny"
    assert said["reads"] == b"end\n"
    assert len(said["big"]) == 2048


def test_slow_probes_run_side_by_side_and_print_in_order(tmp_path: Path) -> None:
    """Each waits for all the others: one after the other, the first would wait to its limit."""
    here = f"cd {tmp_path}; : > $$; until [ $(ls | wc -l) -eq 6 ]; do sleep 0.05; done"
    slow = [probe_of(name, f"{here}; echo {name}", slow=True, timeout_s=50) for name in "abcdef"]
    bundle = _ask(*slow, probe_of("quick", "echo q"))
    assert [f.raw_stdout for f in bundle.frames] == [b"q\n", *(f"{n}\n".encode() for n in "abcdef")]


@pytest.mark.parametrize("slow", [False, True])
def test_nothing_stays_behind(tmp_path: Path, alive: Callable[[str], list[int]], slow: bool) -> None:
    script = script_of(probe_of("a", f"sleep 4720.{OWN} & echo x", slow=slow))
    subprocess.run(
        ["sh"],
        input=script.encode(),
        check=True,
        env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
    )
    assert not list(tmp_path.iterdir())
    wait_until(lambda: not alive(f"sleep 4720.{OWN}"))


@pytest.mark.parametrize("path", ["setsid", "nothing"])
def test_without_timeout_a_watchdog_keeps_the_limit(tmp_path: Path, path: str) -> None:
    tools = ["sh", "mktemp", "date", "id", "sed", "rm", "cat", "sleep", "wc", "sha256sum"]
    for tool in [*tools, path] if path == "setsid" else tools:
        found = shutil.which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    script = script_of(probe_of("a", "sleep 600", timeout_s=1), probe_of("b", "echo x")).replace(
        ":/usr/local/sbin:/usr/sbin:/sbin", ""
    )
    done = subprocess.run(
        ["/bin/sh"], input=script.encode(), capture_output=True, timeout=60, env={"PATH": str(tmp_path)}, check=True
    )
    late, quick = read_bundle(done.stdout).frames
    assert (late.output.timed_out, quick.raw_stdout) == (True, b"x\n")


def test_a_signal_ends_it_and_what_it_started(tmp_path: Path, alive: Callable[[str], list[int]]) -> None:
    slow = [probe_of(name, f"sleep 4721.{OWN}", slow=True) for name in "cdefghijkl"]
    (tmp_path / "s.sh").write_text(script_of(*slow, probe_of("b", f"sleep 4721.{OWN}")))
    process = subprocess.Popen(
        ["sh", str(tmp_path / "s.sh")], env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE
    )
    wait_until(lambda: len(alive(f"sleep 4721.{OWN}")) >= 10)
    process.terminate()
    assert process.communicate(timeout=60)[0]
    assert process.returncode == 143
    assert [p.name for p in tmp_path.iterdir()] == ["s.sh"]
    wait_until(lambda: not alive(f"sleep 4721.{OWN}"))


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_a_signal_at_any_moment_leaves_nothing(
    shell: list[str], tmp_path: Path, alive: Callable[[str], list[int]]
) -> None:
    command = f"sleep 4722.{OWN}"
    slow = [probe_of(name, command, slow=True) for name in "cdefghij"]
    (tmp_path / "s.sh").write_text(script_of(*slow, probe_of("b", command)))
    for trial in range(40):
        process = subprocess.Popen(
            [*shell, str(tmp_path / "s.sh")],
            env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: any(path.is_dir() for path in tmp_path.iterdir()))
        time.sleep(trial / 1000)
        process.terminate()
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 143
        assert [path.name for path in tmp_path.iterdir()] == ["s.sh"], trial
    wait_until(lambda: not alive(command))


def test_a_cut_script_runs_nothing(tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    script = script_of(probe_of("a", f"touch {proof}")).rstrip("\n")
    for end in [*range(0, len(script), max(1, len(script) // 60)), len(script) - 1]:
        done = subprocess.run(["sh", "-s"], input=script[:end].encode(), capture_output=True, check=False)
        assert b"begin" not in done.stdout
        assert not proof.exists(), script[:end][-40:]


def test_list_and_only(tmp_path: Path) -> None:
    file = tmp_path / "s.sh"
    file.write_text(script_of(probe_of("a", f"touch {tmp_path / 'ran'}", title="It's a"), probe_of("b", "echo b")))
    listing = subprocess.run(["sh", str(file), "--list"], capture_output=True, text=True, check=True)
    assert "guest.a  It's a (at most 10 s)" in listing.stdout
    assert not (tmp_path / "ran").exists()
    only = subprocess.run(["sh", str(file), "--only", "guest.b"], capture_output=True, check=True)
    assert [f.probe_id for f in read_bundle(only.stdout).frames] == ["guest.b"]
    assert not (tmp_path / "ran").exists()


def test_the_hash_in_the_header_is_the_scripts() -> None:
    script = script_of(probe_of("a", "true"))
    header = _ask(probe_of("a", "true")).header
    assert header
    assert header.script_sha256 == script_sha256(script)
    assert script_sha256(script.replace("'true'", "'false'")) != header.script_sha256


one_line = st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=60)


@settings(max_examples=40)
@given(value=one_line | st.sampled_from(["'; touch x; '", "$(id)", "`id`", "\\", "'", "''", "-n"]))
def test_a_quoted_value_is_one_word_of_a_real_shell(value: str) -> None:
    done = subprocess.run(
        ["sh"], input=f"set -- {quote(value)}; printf '%s:%s' $# \"$1\"".encode(), capture_output=True, check=True
    )
    assert done.stdout == b"1:" + value.encode()


@settings(max_examples=8)
@given(value=one_line)
def test_arguments_reach_the_commands_unchanged(value: str) -> None:
    bundle = _ask(probe_of("a", 'printf %s "$PEERPATH_VMID"'), arguments={"VMID": value})
    assert bundle.frames[0].raw_stdout == value.encode()


@pytest.mark.parametrize("arguments", [{"vmid": "1"}, {"A=b;id": "1"}, {"A": "1\n2"}, {"A": "\0"}, {"A": "\ud800"}])
def test_what_has_no_safe_form_is_refused(arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        script_of(arguments=arguments)


def test_bad_nonces_and_doubled_probes_are_refused() -> None:
    with pytest.raises(ValueError):
        build_script((), role=View.GUEST, nonce="a b; id")
    with pytest.raises(ValueError):
        script_of(probe_of("a", "true"), probe_of("a", "true"))


hostile = st.binary(max_size=300) | st.sampled_from(
    [b"| x\n! y\n", b"=0123456789abcdef= end probes=0 sha256=", b"\n\n\n", b"\r\n\0\x1b[2J|", b"x" * 5000]
)


@settings(max_examples=12)
@given(outputs=st.lists(hostile, min_size=4, max_size=4))
def test_hostile_bytes_come_back_as_they_were(outputs: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    for number, content in enumerate(outputs):
        (folder / str(number)).write_bytes(content)
    first, second = _ask(
        probe_of("a", f"cat {folder}/0; cat {folder}/1 >&2"),
        probe_of("b", f"cat {folder}/2; cat {folder}/3 >&2", slow=True),
    ).frames
    assert [first.raw_stdout, first.raw_stderr, second.raw_stdout, second.raw_stderr] == outputs


@pytest.mark.parametrize("role", [View.GUEST, View.HOST])
def test_the_catalogues_scripts_pass_shellcheck(role: View, tmp_path: Path) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("no shellcheck on this machine")
    file = tmp_path / "s.sh"
    file.write_text(build_script(probes_for(role), role=role, nonce=NONCE, arguments={"VMID": "1'0"}))
    found = subprocess.run(["shellcheck", "-s", "sh", str(file)], capture_output=True, text=True, check=False)
    assert found.stdout == ""


@pytest.mark.parametrize("role", [View.GUEST, View.HOST])
def test_a_script_that_a_person_is_handed_can_be_read_to_its_end(role: View) -> None:
    """Whole, with each probe that is asked by name, and each follow-up that leaves one out."""
    whole = handed_for(role)
    named = [p for p in all_probes().values() if p.role is role and p.on_demand]
    rest = [tuple(p for p in whole if p is not left) for left in whole]
    arguments = {"VMID": "128", "NCCL_LOG": "/var/log/nccl.log"}
    for probes in (whole, *((*whole, one) for one in named), *rest):
        told = build_script(probes, role=role, nonce="f" * 32, arguments=arguments)
        assert told.count("\n") < 400
        lines = build_script(probes, role=role, nonce="f" * 32).splitlines()
        assert max(map(len, lines)) <= 120, max(lines, key=len)


def test_a_handed_script_asks_all_that_a_diagnosis_reads() -> None:
    asked = {fact.id for role in View for probe in handed_for(role) for fact in probe.supplies}
    every = {fact.id for probe in all_probes().values() for fact in probe.supplies}
    # Two tell a run which program to start; a run believes only what an agent found there itself. The
    # third is a file of another hypervisor, which is pasted.
    assert every - asked == {PYTHON_WITH_TORCH.id, REFERENCE_TOOLS.id, VMX.id}


def test_the_catalogues_commands_are_sh(tmp_path: Path) -> None:
    for probe in all_probes().values():
        for command in probe.commands:
            done = subprocess.run(["sh", "-n"], input=command.whole.encode(), capture_output=True, check=False)
            assert done.returncode == 0, (probe.id, done.stderr)


def test_the_preview_names_every_command() -> None:
    probe = probe_of("a", Command("x", needs=("x",), root=True), "y", timeout_s=5, root_adds="more")
    first, second = preview((probe,))
    assert (first.command, first.needs, first.root, first.root_adds) == ("x", ("x",), True, "more")
    assert (second.command, second.root, second.timeout_s) == ("y", False, 5)
