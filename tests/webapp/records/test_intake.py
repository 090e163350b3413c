"""Raw output is stored first, read next, and never lost."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.collector import build_script
from agents.facts import ReadingKind, View
from agents.facts.p2p import P2P_READ
from agents.facts.platform import KERNEL_CMDLINE
from agents.facts.workload import MODEL, PARALLELISM
from agents.framing import Frame
from agents.probe import Output
from agents.probes import all_probes
from agents.raw_reading import read_raw
from agents.readers import all_readers
from webapp.accounts.models import User
from webapp.records import case_facts, intake, parse_process, reading
from webapp.records.models import DiagnosisSession, Event, Evidence, Run, StoredReading, Target
from webapp.records.received import BUNDLE
from webapp.records.reread import reread
from webapp.runs import lifecycle

MATRIX = b"""ops@gpu-vm:~$ nvidia-smi topo -p2p r
 \tGPU0\tGPU1\t
 GPU0\tX\tNS\t
 GPU1\tNS\tX\t

Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""
TWO_PARTS = MATRIX + b"ops@gpu-vm:~$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz-6.8.0 root=/dev/vda1 ro quiet\n"
LARGE = TWO_PARTS + (b"nothing anybody knows about, " * 400 + b"\n") * 100
assert len(LARGE) > parse_process.LARGE_BYTES


def kinds(session: DiagnosisSession) -> list[str]:
    return list(Event.objects.filter(session=session).values_list("kind", flat=True))


def test_a_paste_of_two_parts_is_stored_whole_and_read_in_parts(
    session_of_alice: DiagnosisSession, alice: User
) -> None:
    taken = intake.take_text(session_of_alice, TWO_PARTS, user=alice, view=View.GUEST)
    readers = [part.reader for part in taken.understood]
    assert readers == ["guest.topo_p2p_read", "guest.kernel_cmdline"]
    assert bytes(taken.evidence.body) == TWO_PARTS
    assert taken.evidence.sha256 == hashlib.sha256(TWO_PARTS).hexdigest()
    assert kinds(session_of_alice)[0] == "evidence_taken"
    missing = intake.missing_probes(session_of_alice, View.GUEST)
    assert missing
    assert "guest.topo_p2p_read" not in missing

    facts = case_facts.facts_of(session_of_alice)
    best = facts.best(P2P_READ)
    assert best
    assert best.reading.kind is ReadingKind.KNOWN
    assert best.source == taken.evidence.name
    quoted = TWO_PARTS.decode().split("\n")
    assert [quoted[n - 1].split()[0] for n in best.reading.lines] == ["GPU0", "GPU1"]


def test_line_numbers_count_within_the_whole_paste(session_of_alice: DiagnosisSession, alice: User) -> None:
    shifted = b"hello, here is what you asked for\n\n" + TWO_PARTS
    taken = intake.take_text(session_of_alice, shifted, user=alice, view=View.GUEST)
    lines = shifted.decode().split("\n")
    cmdline = next(p for p in taken.understood if p.reader == "guest.kernel_cmdline")
    assert cmdline.lines
    assert lines[cmdline.readings[0].lines[0] - 1].startswith("BOOT_IMAGE")


def test_the_same_paste_again_is_said_and_not_stored(session_of_alice: DiagnosisSession, alice: User) -> None:
    first = intake.take_text(session_of_alice, MATRIX, user=alice, view=View.GUEST)
    again = intake.take_text(session_of_alice, MATRIX, user=alice, view=View.GUEST)
    assert not first.duplicate
    assert again.duplicate
    assert again.evidence == first.evidence
    assert [p.reader for p in again.understood] == [p.reader for p in first.understood]
    assert Evidence.objects.count() == 1
    assert StoredReading.objects.count() == len(first.understood[0].readings)


def test_a_paste_whose_reading_a_crash_prevented_is_read_when_given_again(
    session_of_alice: DiagnosisSession, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_text", broken)
        with pytest.raises(ZeroDivisionError):
            intake.take_text(session_of_alice, MATRIX, user=alice, view=View.GUEST)
    assert bytes(Evidence.objects.get().body) == MATRIX
    taken = intake.take_text(session_of_alice, MATRIX, user=alice, view=View.GUEST)
    assert not taken.duplicate
    assert Evidence.objects.count() == 1
    assert case_facts.facts_of(session_of_alice).value(P2P_READ) is not None


def test_the_same_output_after_a_change_is_new_evidence(session_of_alice: DiagnosisSession, alice: User) -> None:
    intake.take_text(session_of_alice, MATRIX, user=alice, view=View.GUEST)
    session_of_alice.epoch = 1
    session_of_alice.save()
    again = intake.take_text(session_of_alice, MATRIX, user=alice, view=View.GUEST)
    assert not again.duplicate
    assert [s.epoch for s in case_facts.facts_of(session_of_alice).all(P2P_READ)] == [1, 0]


def test_what_nobody_can_place_is_kept_and_said(session_of_alice: DiagnosisSession, alice: User) -> None:
    raw = b"\xff\xfe\x00 lorem ipsum\nqwertz \x1b[31m\n"
    taken = intake.take_text(session_of_alice, raw, user=alice)
    assert taken.understood == ()
    assert taken.unplaced
    taken.evidence.refresh_from_db()
    assert bytes(taken.evidence.body) == raw
    assert taken.evidence.unplaced == [list(span) for span in taken.unplaced]


def broken(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("a parser's own mistake")


@contextmanager
def broken_parser(reader: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(all_probes(), reader, replace(all_probes()[reader], parse=broken))
        all_readers.cache_clear()
        yield
    all_readers.cache_clear()


def test_a_parser_that_raises_does_not_stop_the_other_parts(session_of_alice: DiagnosisSession, alice: User) -> None:
    with broken_parser("guest.kernel_cmdline"), broken_parser("host.kernel_cmdline"):
        taken = intake.take_text(session_of_alice, TWO_PARTS, user=alice, view=View.GUEST)
    assert [part.reader for part in taken.understood] == ["guest.topo_p2p_read"]
    last_line = TWO_PARTS.count(b"\n")
    assert any(first <= last_line <= last for first, last in taken.unplaced)


def test_a_parser_that_raises_makes_its_own_facts_unreadable(target: Target, alice: User) -> None:
    run = lifecycle.queue_probes(target.session, target, alice, ["guest.topo_p2p_read"])
    output = Output("anything")
    frame = Frame("guest.topo_p2p_read", output, b"anything", b"", 3, 1, 1)
    with broken_parser("guest.topo_p2p_read"):
        intake.take_frames(run, [frame])
    evidence = run.evidence.get()
    reading = evidence.readings.get(fact_id="guest.p2p_read")
    assert reading.kind == ReadingKind.UNREADABLE
    assert "ZeroDivisionError" in reading.detail
    assert bytes(evidence.body) == b"anything"


def test_an_answer_counts_once_however_it_comes(target: Target, alice: User) -> None:
    names = ["guest.topo_p2p_read", "guest.kernel_cmdline"]
    run = lifecycle.queue_probes(target.session, target, alice, names)
    first, second, forged = (
        Frame(name, Output(text), text.encode(), b"", 3, 1, 1)
        for name, text in zip(names + names[:1], ("one", "two", "forged"), strict=True)
    )
    intake.take_frames(run, [first, forged])
    intake.take_frames(run, [forged, second, first])
    assert [e.raw for e in run.evidence.all()] == [b"one", b"two"]
    assert len({(r.evidence_id, r.fact_id) for r in _readings(run)}) == len(_readings(run)) > 1


def _readings(run: Run) -> list[StoredReading]:
    return list(StoredReading.objects.filter(evidence__run=run))


def test_a_better_parser_reads_old_evidence(session_of_alice: DiagnosisSession, alice: User) -> None:
    with broken_parser("guest.topo_p2p_read"):
        intake.take_text(session_of_alice, TWO_PARTS, user=alice, view=View.GUEST)
    assert case_facts.facts_of(session_of_alice).value(P2P_READ) is None
    assert len(reread(session_of_alice)[0].changed) == 1
    assert case_facts.facts_of(session_of_alice).value(P2P_READ) is not None
    assert reread(session_of_alice)[0].changed == ()
    assert kinds(session_of_alice).count("evidence_reread") == 1


def test_a_large_text_is_read_in_a_process_of_its_own(session_of_alice: DiagnosisSession, alice: User) -> None:
    taken = intake.take_text(session_of_alice, LARGE, user=alice, view=View.GUEST)
    assert "guest.topo_p2p_read" in [part.reader for part in taken.understood]


def test_a_text_that_takes_too_long_is_stored_and_said() -> None:
    found = reading.read_text(LARGE, role=View.GUEST, timeout_s=0.01)
    assert found.items == ()
    assert found.unrecognised == ((1, LARGE.count(b"\n") + 1),)
    assert "could not be read" in found.notes[0]


def test_reading_facts_takes_one_query(
    session_of_alice: DiagnosisSession, alice: User, django_assert_num_queries: Any
) -> None:
    intake.take_text(session_of_alice, TWO_PARTS, user=alice, view=View.GUEST)
    with django_assert_num_queries(1):
        case_facts.facts_of(session_of_alice)


def collected(*names: str) -> bytes:
    """What a person gets who runs the downloaded script here."""
    probes = [all_probes()[name] for name in names]
    script = build_script(probes, role=View.GUEST, nonce="0123456789abcdef")
    done = subprocess.run(["sh"], input=script.encode(), capture_output=True, check=True)
    return done.stdout


def test_a_collectors_output_becomes_evidence_of_each_probe(session_of_alice: DiagnosisSession, alice: User) -> None:
    raw = collected("guest.kernel_cmdline", "guest.topo_p2p_read")
    pasted = b"here you are:\n" + raw.replace(b"\n", b"\r\n") + MATRIX
    taken = intake.take_text(session_of_alice, pasted, user=alice, view=View.GUEST)
    assert taken.evidence.reader == BUNDLE
    assert bytes(taken.evidence.body) == pasted
    frames = Evidence.objects.exclude(pk=taken.evidence.pk)
    assert {e.reader for e in frames} == {"guest.kernel_cmdline", "guest.topo_p2p_read"}
    assert {e.meta["bundle"] for e in frames} == {taken.evidence.sha256}
    assert intake.take_text(session_of_alice, pasted, user=alice, view=View.GUEST).duplicate
    assert Evidence.objects.count() == 3
    cmdline = frames.get(reader="guest.kernel_cmdline")
    assert bytes(cmdline.body).strip() == Path("/proc/cmdline").read_bytes().strip()
    assert cmdline.name in {s.source for s in case_facts.facts_of(session_of_alice).all(KERNEL_CMDLINE)}
    # The matrix pasted below is read too, and counts its lines within the paste.
    best = case_facts.facts_of(session_of_alice).best(P2P_READ)
    assert best
    assert best.source == taken.evidence.name
    quoted = pasted.decode().split("\n")
    assert [quoted[n - 1].split()[0] for n in best.reading.lines if "\tX" in quoted[n - 1]]
    assert [(one.read, one.changed) for one in reread(session_of_alice)] == [(3, ())]


def test_half_a_collectors_output_is_read_and_said_to_be_half(session_of_alice: DiagnosisSession, alice: User) -> None:
    raw = collected("guest.kernel_cmdline", "guest.topo_p2p_read")
    half = raw[: raw.index(b" done guest.kernel_cmdline") + 60]
    taken = intake.take_text(session_of_alice, half, user=alice, view=View.HOST)
    assert "guest.kernel_cmdline" in [part.reader for part in taken.understood]
    assert any("not complete" in note for note in taken.notes)
    assert any("collected on a guest" in note for note in taken.notes)


@settings(max_examples=50)
@given(raw=st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_bytes_make_reading_raise(raw: bytes) -> None:
    for prefix in (b"", b"=01234567= begin peerpath.collector/1 role=guest\n", MATRIX):
        found = read_raw(prefix + raw, role=None)
        last = (prefix + raw).count(b"\n") + 1
        assert all(1 <= first <= final <= last for first, final in found.unrecognised)


def test_a_workload_of_another_version_hides_only_its_own_table(session_of_alice: DiagnosisSession) -> None:
    session_of_alice.workload = {"parallelism": {"tp": 8}, "model": {"layers": "many"}, "horoscope": {"sign": "ram"}}
    facts = case_facts.facts_of(session_of_alice)
    parallelism = facts.value(PARALLELISM)
    assert parallelism
    assert parallelism.tp == 8
    assert facts.kind(MODEL) is ReadingKind.UNREADABLE
    best = facts.best(PARALLELISM)
    assert best
    assert best.source.startswith("workload@")


def test_reread_is_a_command(session_of_alice: DiagnosisSession, alice: User) -> None:
    intake.take_text(session_of_alice, MATRIX, user=alice, view=View.GUEST)
    out = StringIO()
    call_command("reread", "--session", str(session_of_alice.pk), stdout=out)
    assert out.getvalue() == "1 pieces of evidence read, 0 now read differently\n"
    with pytest.raises(CommandError, match="no session"):
        call_command("reread", "--session", "17")
