"""The screens of the reasoning: the topology map, the pivot, why, and the page to print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import hypothesis
import pytest
from django.template import Context, Template
from django.test import Client
from django.utils.html import escape
from django.utils.text import slugify
from hypothesis import given
from hypothesis import strategies as st

from agents.collector import build_script
from agents.facts import Reading, View
from agents.facts.bench import DELIVERY
from agents.facts.gpu import GPUS, Gpu
from agents.facts.host import ACS, GPU_PATHS, PCI_TREE, AcsPort, GpuPath, PciNode
from agents.facts.p2p import P2P_READ, P2P_WRITE, TOPOLOGY, P2pCode, TopologyMatrix
from agents.facts.platform import MACHINE_TYPE, VIRT_KIND, MachineType
from agents.facts.vm import QEMU_COMMANDS, VMS, HostPci, QemuCommand, QemuDevice, Vm
from agents.probes import all_probes
from tests.pages import html_of
from tests.webapp.diagnosis.building import facts_of, kvm_guest, matrix
from tests.webapp.diagnosis.sample_facts import diagnosed
from webapp.accounts.models import User
from webapp.diagnosis.answer.plain_words import for_a_manager
from webapp.diagnosis.answer.sections import for_an_engineer
from webapp.diagnosis.answer.timeline import Change, Pivot
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.diagnosis.situation.topology import draw
from webapp.diagnosis.situation.vm import with_vm
from webapp.pages.templatetags.terms import FORMS, with_terms
from webapp.pages.templatetags.why import rule_title, titled
from webapp.presenting.pair_map import pair_map
from webapp.presenting.topology_figure import Box, Figure, Text, figure, link_in_words
from webapp.records import reading_codec
from webapp.records.case_facts import facts_of as facts_in
from webapp.records.diagnoses import moments, session_diagnosis, session_pivots
from webapp.records.intake import take_text
from webapp.records.models import DiagnosisSession, Evidence, StoredReading
from webapp.records.sessions import session_open
from webapp.runs.samples import open_sample

Readings = list[Reading[Any]]
IDLE = "2.5 GT/s x16 (at most 32.0 GT/s x16)"


def bus(i: int) -> int:
    return 0x10 * (i // 4 + 1) + 3 + i % 4


def switch_machine(size: int) -> Readings:
    """A VM on a host with a switch for every four GPUs and a NUMA node for every eight."""
    names = tuple(f"GPU{i}" for i in range(size))
    links = tuple(
        tuple(None if a == b else "PIX" if a // 4 == b // 4 else "SYS" for b in range(size)) for a in range(size)
    )
    guest: Readings = [
        VIRT_KIND.known("kvm", lines=(1,)),
        GPUS.known(tuple(Gpu(i, "Card 96GB", pci_address=f"0000:{i + 1:02x}:00.0") for i in range(size))),
        TOPOLOGY.known(TopologyMatrix(names, links)),
        P2P_READ.known(matrix(size, P2pCode.OK, (0, 1, P2pCode.CNS))),
        P2P_WRITE.known(matrix(size, P2pCode.OK)),
    ]
    return [*guest, *_switch_host(size)]


def _switch_host(size: int) -> Readings:
    paths: list[GpuPath] = []
    nodes: list[PciNode] = []
    ports: list[AcsPort] = []
    devices: list[QemuDevice] = []
    for i in range(size):
        address, root = f"0000:{bus(i):02x}:00.0", f"0000:{0x10 * (i // 4 + 1) - 1:02x}"
        up, down = f"{root}:01.1", f"0000:{0x10 * (i // 4 + 1) + 1:02x}:{i % 4:02x}.0"
        switch = f"0000:{0x10 * (i // 4 + 1):02x}:00.0"
        paths.append(GpuPath(address, root, up, switch, i // 8, 40 + i, IDLE))
        nodes.append(PciNode(address, root, (up, switch, down)))
        ports.append(AcsPort(down, i % 2 == 0, "SrcValid+ ReqRedir+"))
        # handed out in the opposite order, so that the lines of the same device cross
        devices.append(QemuDevice(f"hostpci{size - 1 - i}.0", address))
    command = QemuCommand(7, True, "q35", devices=tuple(devices))
    slots = tuple(HostPci(i, mapping="pool") for i in range(size))
    return [
        GPU_PATHS.known(tuple(paths)),
        PCI_TREE.known(tuple(nodes)),
        ACS.known(tuple(ports)),
        VMS.known((Vm(7, "vm", hostpci=slots, config={"args": ""}),)),
        QEMU_COMMANDS.known((command,)),
    ]


def two_cards() -> Readings:
    """Two cards on root ports, seen from the host alone, nodes and links not read."""
    paths = (GpuPath("0000:01:00.0", "0000:00", "0000:00:01.1"), GpuPath("0000:21:00.0", "0000:20"))
    return [*kvm_guest(size=2), GPU_PATHS.known(paths)]


def long_names() -> Readings:
    """A guest of another hypervisor, and a host whose addresses have a domain."""
    gpus = tuple(Gpu(i, "Card 96GB", pci_address=f"0000000{i + 1}:00:00.0") for i in range(2))
    path = GpuPath("10000:01:00.0", "10000:00", "10000:00:01.1", "10000:02:00.0", 0, 140, IDLE)
    return [
        VIRT_KIND.known("microsoft", lines=(1,)),
        MACHINE_TYPE.known(MachineType.OTHER, lines=(2,)),
        GPUS.known(gpus),
        GPU_PATHS.known((path,)),
    ]


def stored(session: DiagnosisSession, readings: Readings) -> None:
    """Readings as if parsers had found them, each in an output of its own."""
    for number, reading in enumerate(readings):
        evidence = Evidence.objects.create(
            session=session, reader=f"test.{number}", view="guest", origin="paste", sha256=f"{number:064x}", body=b""
        )
        row = reading_codec.encode(reading)
        StoredReading.objects.create(
            evidence=evidence,
            fact_id=row.fact_id,
            kind=row.kind,
            value=row.value,
            detail=row.detail,
            lines=row.lines,
            missing=row.missing,
            reader=evidence.reader,
            parsed_by="test",
        )


# --- the topology map -----------------------------------------------------------------------------

Rectangle = tuple[float, float, float, float]


def drawn(readings: Readings) -> Figure:
    found = figure(draw(with_vm(facts_of(*readings))), "Some Processor With A Very Long Name 9335 " * 3)
    assert found is not None
    return found


def _rectangle(item: Box | Text) -> Rectangle:
    if isinstance(item, Box):
        return item.x, item.y, item.x + item.width, item.y + item.height
    left = item.x - (item.width / 2 if item.anchor == "middle" else 0)
    return left, item.y - item.size_px * 0.8, left + item.width, item.y + item.size_px * 0.25


def _overlap(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _inside(inner: Rectangle, outer: Rectangle) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def _crossings(found: Figure) -> Iterator[str]:
    """Wires that run through a box or a text they do not end at."""
    obstacles: Sequence[Box | Text] = (*found.boxes, *found.headings)
    for wire in found.wires:
        for obstacle in obstacles:
            left, top, right, bottom = _rectangle(obstacle)
            for step in range(1, 40):
                x = wire.x1 + (wire.x2 - wire.x1) * step / 40
                y = wire.y1 + (wire.y2 - wire.y1) * step / 40
                if left < x < right and top < y < bottom:
                    yield f"{wire} through {obstacle}"


CASES = {
    "two": two_cards(),
    "two guests": kvm_guest(size=2),
    "eight": kvm_guest(size=8),
    "eight on switches": switch_machine(8),
    "sixteen on switches": switch_machine(16),
    "only the host": _switch_host(16)[:3],
    "long names": long_names(),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_overlaps_on_the_map(case: str) -> None:
    found = drawn(CASES[case])
    whole = (0.0, 0.0, found.width, found.height)
    boxes = [(box.title, _rectangle(box)) for box in found.boxes]
    headings = [(text.text, _rectangle(text)) for text in found.headings]
    for (one, a), (other, b) in combinations([*boxes, *headings], 2):
        assert not _overlap(a, b), f"{one} over {other}"
    for box in found.boxes:
        texts = [_rectangle(text) for text in box.texts]
        assert all(_inside(text, _rectangle(box)) for text in texts), box
        assert not any(_overlap(a, b) for a, b in combinations(texts, 2)), box
        assert [text.text for text in box.texts] == [line for line in box.lines if line]
    assert all(_inside(rectangle, whole) for _, rectangle in [*boxes, *headings])
    assert not list(_crossings(found))


def test_a_switch_stands_between_root_port_and_gpus() -> None:
    found = drawn(switch_machine(16))
    kinds = {kind: [b for b in found.boxes if b.kind == kind] for kind in ("node", "port", "switch")}
    assert [len(kinds[kind]) for kind in ("node", "port", "switch")] == [2, 4, 4]
    gpus = [box for box in found.boxes if box.kind == "real"]
    for switch in kinds["switch"]:
        below = [gpu for gpu in gpus if switch.y <= gpu.middle <= switch.y + switch.height]
        assert len(below) == 4
        assert all(port.right < switch.x < switch.right < gpus[0].x for port in kinds["port"])
        assert "ACS redirects 2 of 4" in switch.title
    assert kinds["node"][1].lines[0] == "NUMA 1"


def test_the_same_device_is_joined_across_the_gap() -> None:
    readings = switch_machine(8)
    topology = draw(with_vm(facts_of(*readings)))
    assert len(topology.matches) == 8
    assert {(host, guest) for host, guest in topology.matches} == {(i, 7 - i) for i in range(8)}
    assert sum(wire.kind == "match" for wire in drawn(readings).wires) == 8


def test_what_was_not_read_is_said_on_the_map() -> None:
    titles = [box.title for box in drawn(two_cards()).boxes]
    assert "processor, NUMA not read" in titles
    without_acs = [r for r in switch_machine(8) if r.fact_id != ACS.id]
    assert sum("ACS not read" in box.title for box in drawn(without_acs).boxes) == 2


def test_bridges_that_are_not_one_are_drawn_apart() -> None:
    bridges = [gpu.bridge for gpu in draw(facts_of(*switch_machine(8))).guest]
    assert bridges == ["bridge 1"] * 4 + ["bridge 2"] * 4


def test_nothing_known_draws_nothing() -> None:
    assert figure(draw(facts_of())) is None
    assert pair_map(facts_of()) is None


@pytest.mark.parametrize(("link", "words"), [(IDLE, "Gen5 x16"), ("16.0 GT/s x8", "Gen4 x8"), ("odd", "odd"), ("", "")])
def test_a_link_in_words(link: str, words: str) -> None:
    assert link_in_words(link) == words


def test_a_pair_needs_both_directions_to_be_allowed() -> None:
    found = pair_map(facts_of(*switch_machine(8)))
    assert found is not None
    cells = {(c.source, c.destination): c for _, row in found.rows for c in row if c}
    assert len(cells) == 56
    refused, allowed = cells["GPU0", "GPU1"], cells["GPU1", "GPU0"]
    assert (refused.verdict, refused.code, refused.way) == ("no", "CNS/OK", "near")
    assert (allowed.verdict, allowed.code) == ("yes", "OK")
    assert cells["GPU0", "GPU7"].way == "far"
    half = pair_map(facts_of(P2P_READ.known(matrix(2, P2pCode.OK))))
    assert half is not None
    assert {cell.verdict for _, row in half.rows for cell in row if cell} == {"unknown"}


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def founding(alice: User) -> DiagnosisSession:
    return open_sample("kpro6@host", owner=alice)


# --- why, and words -------------------------------------------------------------------------------


def _rules(page: str) -> set[str]:
    return set(re.findall(r'Rule: <a href="[^"]+">([^<]+)</a></p>', page))


@pytest.mark.django_db
def test_every_gate_hypothesis_and_contradiction_says_why(browser: Client, founding: DiagnosisSession) -> None:
    page = html_of(browser.get(f"/sessions/{founding.pk}/diagnosis"))
    result = session_diagnosis(founding)
    expected = {f"gates.{gate.gate}" for gate in result.ladder}
    expected |= {f"hypotheses.{name}" for name in result.verdicts}
    expected |= {f"contradictions.{item.id}" for item in result.contradictions}
    assert _rules(page) == {rule_title(f"webapp.diagnosis.{name}") for name in expected}
    assert "webapp.diagnosis" not in page
    driver = page[page.index('#gate-driver"') : page.index('#gate-delivered"')]
    assert "NVIDIA open kernel modules" in driver
    assert "Peer reads" in driver
    assert "Peer writes, driver’s answer (not read)" in driver


@pytest.mark.django_db
def test_it_rests_on_what_its_rule_read_in_this_case(founding: DiagnosisSession) -> None:
    context = Context({"session": founding, "result": diagnosed("after")})
    page = Template("{% load why %}{% hypothesis_rule 'acs_detour' %}").render(context)
    inputs = page.partition("Rests on:")[2].partition("</p>")[0]
    assert f"✓</span> {P2P_READ.title}" in inputs
    assert GPU_PATHS.title not in inputs
    page = Template("{% load why %}{% gate_rule 'delivered' %}").render(context)
    assert f"◌</span> {DELIVERY.title} (not read)" in page


@pytest.mark.django_db
def test_every_hypothesis_says_what_refutes_it(browser: Client, founding: DiagnosisSession) -> None:
    page = html_of(browser.get(f"/sessions/{founding.pk}/diagnosis"))
    for item in all_hypotheses():
        row = page.partition(f'id="hypothesis-{item.id}"')[2].partition("</ul>")[2]
        line = row.partition('<div class="more">')[0]
        assert f"What refutes it: {escape(item.refuted_by)}</p>" in line, item.id


@pytest.mark.django_db
def test_every_option_says_why(browser: Client, founding: DiagnosisSession) -> None:
    page = html_of(browser.get(f"/sessions/{founding.pk}/decide"))
    titles = {rule_title(f"webapp.diagnosis.options.{option.id}") for option in all_options()}
    assert _rules(page) == titles


@pytest.mark.django_db
def test_words_lead_to_entries_that_exist(browser: Client, founding: DiagnosisSession) -> None:
    page = html_of(browser.get(f"/sessions/{founding.pk}/diagnosis"))
    for slug, some in (("words", {"clique", "peer-to-peer-p2p"}), ("reasoning", {"gate-driver"})):
        anchors = set(re.findall(rf'class="word" href="/help/{slug}#([^"]+)"', page))
        assert some <= anchors
        shown = html_of(browser.get(f"/help/{slug}"))
        assert anchors <= set(re.findall(r'id="([^"]+)"', shown))
    index = set(re.findall(r'href="#([^"]+)"', html_of(browser.get("/help/words"))))
    assert {slugify(term.term) for term in GLOSSARY} <= index


def test_every_word_belongs_to_a_term() -> None:
    assert set(FORMS) <= {term.term for term in GLOSSARY}


@given(text=st.text(max_size=60) | st.sampled_from(["NS & <b>clique</b>", "P2P P2P", "NSA", "&NS;"]))
@hypothesis.settings(max_examples=50)
def test_linking_words_changes_no_text_and_keeps_it_escaped(text: str) -> None:
    linked = str(with_terms(text))
    assert re.sub(r'<a class="word" href="/help/words#[\w-]+">|</a>', "", linked) == str(escape(text))


def test_only_the_first_mention_leads_away() -> None:
    linked = str(with_terms("P2P over P2P, NSA, q35"))
    assert linked.count("<a ") == 2
    assert "NSA" in linked


# --- the pivot ------------------------------------------------------------------------------------

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _pivot(title: str, headline: str, *changes: Change) -> Pivot:
    return Pivot(title, NOON, headline, changes)


def test_moments_without_a_change_fold_into_one_line() -> None:
    turn = Change("hang", "open", "refuted")
    found = moments(
        [
            _pivot("said", "nothing known"),
            _pivot("a", "nothing known"),
            _pivot("b", "nothing known"),
            _pivot("c", "nothing known", turn, Change("kvm_hidden", "open", "refuted")),
            _pivot("d", "something known"),
            _pivot("e", "something known"),
        ]
    )
    assert [[pivot.title for pivot in moment.pivots] for moment in found] == [["said"], ["a", "b"], ["c"], ["d"], ["e"]]
    assert [moment.quiet for moment in found] == [False, True, False, False, True]
    assert found[2].groups == [("open", "refuted", ["hang", "kvm_hidden"])]
    assert found[2].pivots[0].headline == ""


@pytest.mark.django_db
def test_a_collectors_answer_is_one_moment(session_of_alice: DiagnosisSession, alice: User) -> None:
    probes = [all_probes()[name] for name in ("guest.virt_kind", "guest.kernel_cmdline")]
    script = build_script(probes, role=View.GUEST, nonce="abcdefgh12345678")
    answer = subprocess.run(["sh"], input=script.encode(), capture_output=True, check=True).stdout
    take_text(session_of_alice, answer, user=alice)
    assert session_of_alice.evidence.count() == 3
    found = session_pivots(session_of_alice, facts_in(session_of_alice))
    assert [pivot.title for pivot in found] == ["What the operator said", "The collector’s answer from the guest"]


# --- the page to print ----------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_printed_page_cites_what_it_rests_on(browser: Client, founding: DiagnosisSession) -> None:
    page = html_of(browser.get(f"/sessions/{founding.pk}/summary"))
    result = session_diagnosis(founding)
    assert str(escape(for_a_manager(result))) in page
    assert page.count('class="timebar"') == 2
    assert page.count("rung") >= 8
    for section in for_an_engineer(result):
        assert f"<h2>{section.title}</h2>" in page
        cited = {ref.source for claim in section.claims for ref in claim.evidence}
        assert all(name in page for name in cited if not name.startswith("workload@"))
    assert "style=" not in page


@pytest.mark.django_db
def test_others_do_not_see_the_summary(bob: User, session_of_alice: DiagnosisSession) -> None:
    client = Client()
    client.force_login(bob)
    assert client.get(f"/sessions/{session_of_alice.pk}/summary").status_code == 404


@pytest.mark.django_db
def test_a_stored_switch_machine_is_drawn_and_told_in_words(browser: Client, alice: User) -> None:
    session = session_open(owner=alice, title="switches")
    stored(session, switch_machine(16))
    page = html_of(browser.get(f"/sessions/{session.pk}/topology"))
    assert "switch 10:00.0, ACS redirects 2 of 4" in page
    assert page.count('class="match"') == 17  # sixteen and the legend
    assert "GPU0 to GPU1: path PIX, read CNS, write OK" in page


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("nccl_log, a_b", "NCCL log, A/B"),
        ("tp8+dp_attention", "TP8 + DP attention"),
        ("gate driver (pcie), p2p_matrix", "gate driver (PCIe), P2P matrix"),
        ("data_bound", "data bound"),
    ],
)
def test_an_id_in_words(identifier: str, words: str) -> None:
    assert titled(identifier) == words
