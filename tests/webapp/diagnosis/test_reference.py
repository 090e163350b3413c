"""Tables: each GPU is found by the name its driver prints, each term once and with a text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.diagnosis.reference.curves import nccl_model_us, p2p_all_reduce_us, staged_gb_per_s
from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.diagnosis.reference.gpus import GPUS, gpu_spec


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell Max-Q"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell Workstation"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 40 GB"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA RTX A6000", "RTX A6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("Tesla V100S-PCIE-32GB", "V100S"),
        ("NVIDIA GeForce RTX 4080 SUPER", "GeForce RTX 4080 SUPER"),
        ("NVIDIA GeForce RTX 3090 Ti", "GeForce RTX 3090 Ti"),
        ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090"),
        ("NVIDIA GeForce RTX 5070 Ti", "GeForce RTX 5070 Ti"),
    ],
)
def test_a_gpu_is_found_by_the_name_its_driver_prints(printed: str, name: str) -> None:
    found = gpu_spec(printed)
    assert found
    assert found.name == name
    assert found.geforce is ("GeForce" in printed)
    assert name in found.source


def test_an_unknown_gpu_has_no_specification() -> None:
    assert gpu_spec(None) is None
    assert gpu_spec("AMD Instinct MI300X") is None
    assert gpu_spec("NVIDIA GH200 480GB") is None, "its HBM3 is not an H200's"
    assert len({spec.name for spec in GPUS}) == len(GPUS)


def test_terms_are_unique_and_explained() -> None:
    assert len({term.term for term in GLOSSARY}) == len(GLOSSARY)
    assert all(len(term.text) > 40 for term in GLOSSARY)
    own = {"Agent", "Basis", "Benchmark", "Bound", "Collector", "Decision", "Event", "Evidence", "Fact"}
    own |= {"Finding", "Floor", "Hypothesis", "Ladder", "Option", "Phase", "Probe", "Reading", "Review"}
    own |= {"A/B", "Gate", "Reconciler", "Run", "Session", "Step", "Target"}
    assert {term.term for term in GLOSSARY if not term.source} <= own, "words of the field have a source"


def test_nccls_own_figures() -> None:
    assert nccl_model_us(0, 8, 41) == pytest.approx(20.6)
    assert p2p_all_reduce_us(0, 8) == (24, 57)
    assert staged_gb_per_s(5, 16) == 41
    assert staged_gb_per_s(4, 8) == pytest.approx(41 / 4)
    assert staged_gb_per_s(None, None) == 41


@settings(max_examples=50)
@given(size=st.floats(0, 1e9), more=st.floats(1, 10), ranks=st.integers(2, 16))
def test_more_bytes_and_more_ranks_never_take_less(size: float, more: float, ranks: int) -> None:
    here = nccl_model_us(size, ranks, 41)
    assert here <= nccl_model_us(size * more, ranks, 41) + 1e-9
    assert here <= nccl_model_us(size, ranks + 1, 41) + 1e-9
    low, high = p2p_all_reduce_us(size, ranks)
    assert 0 < low <= high
