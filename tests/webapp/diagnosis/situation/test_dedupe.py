"""The same measurement given again, with another prompt or in a longer paste, is no second run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agents import samples
from agents.facts.bench import COPY, SERVING, CopyPath, CopyResult, CopyRow, ServingRow
from agents.facts.nccl import NCCL_TRANSPORTS, NcclTransports
from agents.raw_reading import read_raw
from tests.webapp.diagnosis.building import kvm_guest, sourced
from webapp.diagnosis.compare.verification import Pick, verified
from webapp.diagnosis.diagnosis import diagnose
from webapp.diagnosis.facts import Facts, Sourced

SAMPLES = Path(samples.__file__).parent / "kpro6"
TABLE = (SAMPLES / "guest/bench.copy_table.txt").read_bytes()
AFTER = (SAMPLES / "after/bench.copy_table.2.txt").read_bytes()


def pasted(*texts: tuple[bytes, int]) -> Facts:
    """(text, epoch) in the order they were given."""
    return Facts.of(
        Sourced(reading, f"paste@{number:012x}", epoch, number)
        for number, (raw, epoch) in enumerate(texts)
        for item in read_raw(raw, role=None, hint="").items
        for reading in item.readings
    )


def test_a_table_pasted_again_behind_a_prompt_is_one_run() -> None:
    """The old code counted two runs, which differ by nothing, and took that for how far chance goes."""
    again = b"ops@other:~$ date\nMon\n" + AFTER
    found = diagnose(pasted((TABLE, 0), (AFTER, 1), (again, 1)))
    (copies,) = [f for f in found.findings if f.id == "copies_after"]
    assert "one run each" in copies.claims[0].text
    assert not any("two runs of the same state" in claim.text for claim in copies.claims)


def test_how_far_copies_differ_is_said_in_percent_of_the_time_before() -> None:
    def copies(epoch: int, *times_us: float) -> list[Sourced]:
        rows = tuple(CopyRow(CopyPath.PEER, "0", "1", 4096 * 4**n, us) for n, us in enumerate(times_us))
        return sourced(COPY.known(CopyResult(rows), lines=(1,)), epoch=epoch)

    found = diagnose(Facts.of(copies(0, 10.0, 30.0, 90.0) + copies(1, 5.0, 40.0, 90.0)))
    (after,) = [finding for finding in found.findings if finding.id == "copies_after"]
    assert after.claims[0].text.endswith("; the sizes differ by -25.0 % to +100.0 %")


def test_what_a_row_contradicts_is_said_once() -> None:
    same = pasted((AFTER, 0), (AFTER, 0))
    same = Facts.of(replace(i, source="paste@0") for group in same.readings.values() for i in group)
    found = diagnose(same)
    assert [c.id for c in found.contradictions].count("row_arithmetic") == 1
    (left_out,) = [f for f in found.findings if f.id == "rejected_rows"]
    assert len(left_out.claims) == 1


def test_three_pastes_of_one_run_show_no_gain() -> None:
    def served(rate: float, epoch: int, line: int) -> Sourced:
        rows = (ServingRow(1, rate, requests=10),)
        return Sourced(SERVING.known(rows, lines=(line,)), f"paste@{epoch}{line}", epoch, line)

    off = [Sourced(NCCL_TRANSPORTS.known(NcclTransports(shm=16), lines=(1,)), "log@0", 0)]
    on = [Sourced(NCCL_TRANSPORTS.known(NcclTransports(p2p=16), lines=(1,)), "log@1", 1)]
    guest = [Sourced(r, f"{r.fact_id}@0", 0) for r in kvm_guest()]
    runs = [served(11.0, 0, n) for n in range(3)] + [served(12.0, 1, n) for n in range(3)]
    gate = next(g for g in diagnose(Facts.of([*guest, *off, *on, *runs])).ladder if g.gate == "worth")
    assert gate.state == "unknown"
    assert "fewer than 3 runs" in gate.why
    runs = [served(11.0 + n / 100, 0, n) for n in range(3)]
    runs += [served(12.0 + n / 100, 1, n) for n in range(3)]
    gate = next(g for g in diagnose(Facts.of([*guest, *off, *on, *runs])).ladder if g.gate == "worth")
    assert gate.state == "pass"


def test_the_copy_inside_one_gpu_cites_the_line_it_stands_in() -> None:
    """After a change only copies between GPUs were timed: the newest output does not hold it."""
    found = diagnose(pasted((TABLE, 0), (AFTER, 1)))
    baseline = next(f for f in found.findings if f.id == "wrong_baseline")
    ((source, line),) = {(r.source, r.line) for c in baseline.claims for r in c.evidence}
    assert source.endswith("0")
    assert "1033" in TABLE.decode().splitlines()[line - 1]


def test_step_eight_counts_it_once_too() -> None:
    facts = pasted((TABLE, 0), (AFTER, 1), (b"$ date\n" + AFTER, 1))
    (copies,) = verified(facts, Pick(0), Pick(1), frozenset())
    assert copies.compared.runs == (1, 1)
