"""Other people's machines: the first failing gate, the first verdict, and what must not be said of them."""

from __future__ import annotations

import re
from functools import cache

import pytest

from agents.raw_reading import read_raw
from tests.corpus import CORPUS, MEASUREMENTS, needs_corpus
from tests.webapp.diagnosis.building import facts_of
from tests.webapp.diagnosis.test_scenarios import (
    ABOUT_TIME,
    DENIES,
    QUOTES,
    SOURCE_NAMED,
    WORKS,
    around,
    claims_of,
    texts_of,
)
from webapp.diagnosis.answer.headline import top_verdict
from webapp.diagnosis.case import GateState
from webapp.diagnosis.claim import Basis
from webapp.diagnosis.diagnosis import Diagnosis, diagnose

pytestmark = [needs_corpus, pytest.mark.thorough]

UNKNOWN = "Not enough evidence yet"
REFUSED = "cannot reach each other"
# Case: first failing gate, top verdict, words of the headline. "" where nothing may be claimed.
EXPECTED = {
    "001-b300x8-nvswitch-esc-header": ("", "", UNKNOWN),
    "002-l40sx8-epyc-p2p-all-ok": ("", "", UNKNOWN),
    "005-rtx3090x4-xeon-e5v4-cns-onerow": ("driver", "p2p_denied_other", REFUSED),
    "008-proxmox-q35-rtx3080x8-gpu-lost": ("", "gpu_lost", "do not answer"),
    "011-distserve-p2p-wr-collapsed": ("", "", "was not checked"),
    "012-proxmox-unraid-mappings-not-gpu": ("", "", UNKNOWN),
    "016-proxmox-q35-commented-out-hostpci": ("", "kvm_hidden", "hidden"),
    "020-proxmox-q35-4gpu-vm230": ("", "", UNKNOWN),
    "021-proxmox-i440fx-nested-args-flags": ("", "kvm_hidden", "hidden"),
    "026-rtx3090x2-nvlink-nccl-direct-pointer-stub": ("", "", UNKNOWN),
    "028-eks-llama-shm-socket-cumem-mixed": ("used", "", "not peer-to-peer"),
    "033-amd-vi-unknown-option-on": ("", "", UNKNOWN),
    "038-proxmox-q35-rtx3090x2-clique-granted-false": ("", "", UNKNOWN),
    "039-m40-bar1-16g-no-above4g": ("", "bar_space_shortage", "no address space"),
    "041-rtx5060ti-x4-phb-p2p-ok-patched": ("", "", "was not checked"),
    "050-4gpu-nv12-four-numa-nodes": ("", "", UNKNOWN),
    "053-gb10-single-gpu-four-nics": ("", "", UNKNOWN),
    "062-proxmox-boot-tool-status-variants": ("", "", UNKNOWN),
    "065-bench-serving-blocks": ("", "", "say which model is served"),
    "073-qemu-iommufd-no-p2p-bar-map": ("mapped", "", "could not map"),
    "081-vm-3gpu-nccl-27-p2p-ipc-hang": ("", "", UNKNOWN),
    "085-vm-p2p-staged-vs-granted-bandwidth": ("", "", UNKNOWN),
    "087-vfio-bar1-cannot-reserve-framebuffer": ("", "", UNKNOWN),
}
HEALTHY = re.compile(r"\b(?:healthy|works)\b(?! elsewhere)|(?<!whether the )bytes arrive", re.I)


@cache
def result(folder: str) -> Diagnosis:
    root = MEASUREMENTS if folder.startswith("h200x2") else CORPUS
    files = sorted(p for p in (root / folder).iterdir() if p.is_file() and p.suffix != ".toml")
    readings = [
        reading
        for file in files
        for item in read_raw(file.read_bytes(), role=None, hint=file.name).items
        for reading in item.readings
    ]
    return diagnose(facts_of(*readings))


@pytest.mark.parametrize("case", EXPECTED)
def test_the_first_failing_gate_and_the_top_verdict(case: str) -> None:
    found = result(case)
    gate, verdict, words = EXPECTED[case]
    failed = next((g.gate for g in found.ladder if g.state is GateState.FAIL), "")
    top = top_verdict(found.verdicts)
    assert (failed, top.id if top else "") == (gate, verdict)
    assert words in found.headline


@pytest.mark.parametrize("case", EXPECTED)
def test_no_headline_calls_a_machine_healthy(case: str) -> None:
    """Nobody checked bytes in any of these folders."""
    found = result(case)
    assert not HEALTHY.search(f"{found.headline} {found.summary}")
    assert not any(g.gate == "delivered" and g.state is GateState.PASS for g in found.ladder)


def test_a_patched_geforce_is_not_praised() -> None:
    found = result("041-rtx5060ti-x4-phb-p2p-ok-patched")
    assert "geforce_allowed" in {finding.id for finding in found.findings}


def test_another_vendors_copies_get_no_advice_about_these() -> None:
    found = result("010-rccl-mi100-nested-switch-acs-on")
    assert not {"wrong_baseline", "host_synchronised"} & {f.id for f in found.findings}


def test_the_captured_nvlink_guest_is_allowed_over_nvlink_and_misses_nothing() -> None:
    found = result("h200x2/guest")
    states = {(str(g.path), g.gate): g.state for g in found.ladder}
    assert states["nvlink", "fabric"] is states["nvlink", "driver"] is GateState.PASS
    assert not any(gate.state is GateState.FAIL for gate in found.ladder)
    assert not {"p2p_denied_no_clique", "p2p_denied_other"} & {
        name for name, verdict in found.verdicts.items() if verdict.kind == "supported"
    }
    assert found.advice["gpudirect_clique"].status != "recommended"


@pytest.mark.parametrize(
    ("case", "why", "expected"),
    [
        ("025-titan-rtx-x8-p2p-none-full-matrix", "on 0 of 56", "refused on every pair"),
        ("083-mixed-7gpu-p2p-cliques-can-cannot", "on 4 of 20", "OK where"),
    ],
)
def test_what_the_runtime_can_reach_is_said_and_is_no_verdict(case: str, why: str, expected: str) -> None:
    gate = next(g for g in result(case).ladder if g.gate == "driver")
    assert gate.state is GateState.UNKNOWN
    assert why in gate.why
    assert (gate.expected or "").startswith(expected)


EVERY = sorted(p.name for p in CORPUS.iterdir() if p.is_dir()) if CORPUS.is_dir() else []


@pytest.mark.parametrize("case", EVERY)
def test_no_text_about_any_machine_says_more_than_its_evidence(case: str) -> None:
    found = result(case)
    for where, claim in claims_of(found):
        assert claim.evidence or claim.basis is Basis.LITERATURE, (where, claim.text)
        assert claim.evidence or SOURCE_NAMED.search(claim.text), (where, claim.text)
        if ABOUT_TIME.search(claim.text) and where not in QUOTES:
            assert claim.range is not None, (where, claim.text)
    for gate in found.ladder:
        assert gate.evidence or gate.state not in {GateState.PASS, GateState.FAIL}
    for text in texts_of(found):
        works = WORKS.search(text)
        assert works is None or DENIES.search(around(works)), text
