"""diagnose, recognise, script and compare as processes: what they print and how they end.

`peerpath.diagnosis/1` is a contract that people script against, so its keys are spelled out here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser import outputs
from webapp.accounts.models import User
from webapp.presenting.diagnosis_json import DIGITS
from webapp.records.models import DiagnosisSession

pytestmark = pytest.mark.service  # whole processes take seconds to start
Done = subprocess.CompletedProcess[str]
Peerpath = Callable[..., Done]

CLAIM = {"text", "evidence", "range", "basis"}
# What each entry of a list holds at least; more may be added, nothing may go.
ENTRIES = {
    "contradictions": {"id", "text", "evidence"},
    "ladder": {"gate", "path", "state", "why", "evidence", "expected"},
    "hypotheses": {"id", "verdict", "for", "against", "missing", "refuted_by", "share_ms"},
    "bounds": {
        "concurrency",
        "step_ms",
        "floor_ms",
        "comm_ms",
        "unexplained_ms",
        "max_gain_remove_comm",
        "max_gain_p2p",
        "goal_reachable_by_p2p",
        "basis",
        "assumes",
        "missing",
    },
    "findings": {"id", "severity", "claims"},
    "next_tests": {"id", "decides", "minutes", "restart", "actor", "how"},
    "layouts": {"id", "comm_ms", "fits", "why"},
    "options": {
        "id",
        "phase",
        "status",
        "why",
        "predicted_effect",
        "actor",
        "downtime",
        "isolation_cost",
        "rollback",
        "verified_by",
    },
    "corrections": {"belief", "correct", "source"},
    "unrecognised": {"source", "lines"},
}
FACT = {"kind", "value", "complete", "missing", "view", "evidence", "others"}


def contract(text: str) -> dict[str, Any]:
    """The diagnosis, after a look at its schema, its keys and their order."""

    def in_order(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        assert names == sorted(names)
        return dict(pairs)

    found: dict[str, Any] = json.loads(text, object_pairs_hook=in_order)
    assert found["schema"] == "peerpath.diagnosis/1"
    assert found.keys() >= ENTRIES.keys() | {"facts"}
    for name, keys in ENTRIES.items():
        assert all(entry.keys() >= keys for entry in found[name]), name
    assert all(fact.keys() >= FACT for fact in found["facts"].values())
    return found


def known(found: dict[str, Any], fact_id: str) -> Any:
    fact = found["facts"][fact_id]
    assert fact["kind"] == "known", fact["detail"]
    assert all(line["source"] and line["line"] >= 1 for line in fact["evidence"])
    return fact["value"]


def _driver(found: dict[str, Any]) -> str:
    (gate,) = [gate for gate in found["ladder"] if gate["gate"] == "driver"]
    return f"{gate['state']}: {gate['why']}"


# --- every form of source ----------------------------------------------------------------------------


def test_the_sample_as_known_at_a_stage(peerpath: Peerpath) -> None:
    done = peerpath("diagnose", "sample:kpro6@guest", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = contract(done.stdout)
    assert all(found[name] for name in ENTRIES.keys() - {"unrecognised"})
    for entry in (*found["hypotheses"], *found["options"]):
        claims = [*entry.get("for", ()), *entry.get("against", ()), *entry.get("why", ())]
        assert all(claim.keys() == CLAIM for claim in claims)
    assert "NS on 56 of 56" in _driver(found)
    assert {bound["concurrency"] for bound in found["bounds"]} == {1, 64}


def test_this_machine(peerpath: Peerpath) -> None:
    done = peerpath("diagnose", "local:", "--json")
    assert done.returncode == 0, done.stderr
    assert known(contract(done.stdout), "guest.kernel_cmdline") == (Path("/proc/cmdline").read_text().strip())


def test_a_file_a_folder_and_standard_input_say_the_same(peerpath: Peerpath, tmp_path: Path) -> None:
    folder = tmp_path / "outputs"
    folder.mkdir()
    file = folder / "terminal.log"
    file.write_text(outputs.GUEST)
    by_file = peerpath("diagnose", file, "--json")
    assert by_file.returncode == 0, by_file.stderr
    assert known(contract(by_file.stdout), "guest.virt_kind") == "kvm"
    assert "NS on 2 of 2" in _driver(contract(by_file.stdout))
    for again in (peerpath("diagnose", folder, "--json"), peerpath("diagnose", "-", "--json", given=outputs.GUEST)):
        assert (again.returncode, again.stdout) == (0, by_file.stdout)


def test_files_of_guest_and_host_together_with_the_workload(peerpath: Peerpath, tmp_path: Path) -> None:
    (tmp_path / "guest.txt").write_text(outputs.GUEST)
    (tmp_path / "host.txt").write_text(outputs.HOST)
    (tmp_path / "case.toml").write_text(
        "[model]\nlayers = 78\nhidden_size = 6144\nactivation_bytes = 2\n[parallelism]\ntp = 2\n"
        "[[observed]]\nconcurrency = 1\noutput_tokens_per_s = 11\n"
    )
    words = (tmp_path / "guest.txt", tmp_path / "host.txt", "--workload", tmp_path / "case.toml")
    done = peerpath("diagnose", *words, "--vmid", "128", "--json")
    assert done.returncode == 0, done.stderr
    found = contract(done.stdout)
    (granted,) = [gate for gate in found["ladder"] if gate["gate"] == "granted"]
    assert granted["state"] == "fail"
    (bound,) = found["bounds"]
    assert bound["step_ms"] == pytest.approx([90.9, 90.9], rel=0.01)


def test_save_keeps_a_session_that_the_browser_shows(
    peerpath: Peerpath, transactional_db: None, carol: User, database_folder: Path
) -> None:
    given = {"given": outputs.GUEST, "data": database_folder}
    done = peerpath("diagnose", "-", "--save", **given)
    assert done.returncode == 0, done.stderr
    assert "NS on 2 of 2" in done.stdout
    session = DiagnosisSession.objects.get()
    assert session.get_absolute_url() in done.stderr
    assert bytes(session.evidence.get().body).decode() == outputs.GUEST
    assert session.evidence.get().readings.filter(fact_id="guest.p2p_read").exists()


def test_save_before_the_first_start_still_prints_the_diagnosis(peerpath: Peerpath) -> None:
    done = peerpath("diagnose", "-", "--save", "--json", given=outputs.GUEST)
    assert done.returncode == 0, done.stderr
    assert "Start ./run" in done.stderr
    contract(done.stdout)


# --- how it ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Give a source"),
        (["{tmp}/nothing-here"], "no such file"),
        (["sample:nope"], "known are kpro6"),
        (["ssh://root:hunter2@127.0.0.1:{port}"], "use a key"),
        (["ssh://root@127.0.0.1:99999"], "65535"),
        (["sample:kpro6", "--workload", "{tmp}/bad.toml"], "unknown key 'layerz'"),
        (["--no-such-option"], "unrecognized arguments"),
    ],
)
def test_wrong_words_are_told_in_a_sentence(peerpath: Peerpath, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "bad.toml").write_text("[model]\nlayerz = 78\n")
    done = peerpath("diagnose", *(word.format(tmp=tmp_path, port=22) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stderr


def test_nothing_recognised(peerpath: Peerpath) -> None:
    done = peerpath("diagnose", "-", "--json", given="milk and\nbread\n")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Nothing was recognised" in done.stderr


def test_one_source_that_says_nothing_makes_it_partly(peerpath: Peerpath, tmp_path: Path) -> None:
    (tmp_path / "guest.txt").write_text(outputs.GUEST)
    (tmp_path / "shopping.txt").write_text("milk and\nbread\n")
    done = peerpath("diagnose", tmp_path / "guest.txt", tmp_path / "shopping.txt", "--json")
    assert done.returncode == 5
    found = contract(done.stdout)
    assert "NS on 2 of 2" in _driver(found)
    assert [part["lines"] for part in found["unrecognised"]] == [[1, 2]]


# --- recognise ---------------------------------------------------------------------------------------


def test_recognise_prints_one_line_a_part(peerpath: Peerpath, tmp_path: Path) -> None:
    file = tmp_path / "terminal.log"
    file.write_text(outputs.GUEST)
    done = peerpath("recognise", file)
    assert done.returncode == 0, done.stderr
    parts = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(part.keys() == {"source", "lines", "probe", "confidence"} for part in parts)
    assert {part["source"] for part in parts} == {str(file)}
    assert {part["probe"] for part in parts} >= {"guest.virt_kind", "guest.topo_p2p_read"}
    lines = outputs.GUEST.splitlines()
    (matrix,) = [part for part in parts if part["probe"] == "guest.topo_p2p_read"]
    first, last = matrix["lines"]
    assert any("NS" in line for line in lines[first - 1 : last])
    assert 0 < matrix["confidence"] <= 1


def test_recognise_may_be_cut_off_by_its_reader(start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    (tmp_path / "long.log").write_text(outputs.GUEST * 300)
    process = start("recognise", tmp_path / "long.log")
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141


def test_recognise_says_when_it_knows_nothing(peerpath: Peerpath) -> None:
    done = peerpath("recognise", "-", given="milk and\nbread\n")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Nothing was recognised" in done.stderr


# --- script ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["guest"], ["host", "collect", "--vmid", "128"]])
def test_a_script_is_clean_sh_and_its_output_is_diagnosed(peerpath: Peerpath, tmp_path: Path, words: list[str]) -> None:
    script = tmp_path / "collect.sh"
    script.write_text(peerpath("script", *words).stdout)
    if shellcheck := shutil.which("shellcheck"):
        subprocess.run([shellcheck, "-s", "sh", script], check=True)
    ran = subprocess.run(["sh", script], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    done = peerpath("diagnose", "-", "--json", given=ran.stdout)
    assert done.returncode == 0, done.stderr
    assert known(contract(done.stdout), f"{words[0]}.kernel_cmdline")
    answer = f"Here it is:\n{ran.stdout}"
    _each_part_names_its_own_lines(peerpath("recognise", "-", given=answer), answer)


def _each_part_names_its_own_lines(done: Done, answer: str) -> None:
    parts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(parts) > 10
    lines = answer.splitlines()
    for part in parts:
        first, last = part["lines"]
        assert 1 < first <= last <= len(lines)
        above = next(line for line in reversed(lines[:first]) if line.startswith("="))
        assert re.search(rf"=.*= probe {re.escape(part['probe'])}$", above)


# --- compare -----------------------------------------------------------------------------------------


def test_one_run_each_cannot_tell(peerpath: Peerpath, tmp_path: Path) -> None:
    before, after = tmp_path / "before.txt", tmp_path / "after.txt"
    before.write_text(outputs.COPIES)
    after.write_text(outputs.COPIES_AFTER)
    done = peerpath("compare", before, after)
    assert done.returncode == 0, done.stderr
    assert "cannot tell" in done.stdout
    as_json = peerpath("compare", before, after, "--json")
    found = json.loads(as_json.stdout)
    assert (found["outcome"], found["runs"]) == ("cannot_tell", [1, 1])
    assert {effect["size_bytes"] for effect in found["effects"]} >= {12288, 16777216}
    figures = re.findall(r"\d+\.\d+", as_json.stdout)
    assert figures
    assert all(len(figure.replace(".", "").lstrip("0")) <= DIGITS for figure in figures)


def test_compare_needs_two_results(peerpath: Peerpath, tmp_path: Path) -> None:
    (tmp_path / "guest.txt").write_text(outputs.GUEST)
    missing = peerpath("compare", tmp_path / "nowhere", tmp_path / "guest.txt")
    assert (missing.returncode, "no such file" in missing.stderr) == (2, True)
    empty = peerpath("compare", tmp_path / "guest.txt", tmp_path / "guest.txt")
    assert (empty.returncode, "no benchmark" in empty.stderr) == (3, True)
