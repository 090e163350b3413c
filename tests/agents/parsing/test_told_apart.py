"""Two things in one output that a reader tells apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.parsing import containers, pair_matrix, virt_signs

NVBANDWIDTH = """Running device_to_device_latency_sm.
memory latency SM GPU(row) <-> GPU(column) (ns)
           0         1
 0       N/A    824.21
 1    823.91       N/A

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    53.41
 1     53.37       N/A
"""
LATENCIES = """P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   2.17   1.45
     1   1.44   2.12

   CPU     0      1
     0   3.35   9.91
     1   9.92   3.36
"""


def test_a_latency_in_nanoseconds_is_no_bandwidth_and_no_microseconds() -> None:
    (matrix,), _, missing = pair_matrix.parse(NVBANDWIDTH)
    assert (matrix.unit, matrix.values[0][1], missing) == ("GB/s", 53.41, ())


def test_of_two_latencies_the_devices_is_kept() -> None:
    (matrix,), _, missing = pair_matrix.parse(LATENCIES)
    assert (matrix.values, missing) == (((2.17, 1.45), (1.44, 2.12)), ())


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("lscpu hypervisor vendor: Microsoft\nhypervisor type: xen", "microsoft"),
        ("hypervisor type: xen", "xen"),
        ("lscpu hypervisor vendor: KVM", "kvm"),
        ("lscpu hypervisor vendor: Somebody", None),
        ("clocksources: kvm-clock tsc\nlscpu hypervisor vendor: Xen", "kvm"),
        ("clocksources: tsc hpet", None),
    ],
)
def test_the_processors_signature_comes_before_the_kernels_word(text: str, signature: str | None) -> None:
    assert virt_signs.parse(text).signature == signature


def inspected(**host: Any) -> tuple[Any, ...]:
    entry = {"Name": "/engine", "Config": {"Image": "vllm/vllm-openai"}, "HostConfig": host}
    return containers.parse(json.dumps([entry]))[0]


@pytest.mark.parametrize(
    ("request_", "gpus"),
    [
        ({"Count": -1}, "all"),
        ({"Count": 0}, None),
        ({"Count": 2}, "2 of any"),
        ({"Count": 0, "DeviceIDs": ["0", "3"]}, "0,3"),
    ],
)
def test_the_gpus_that_a_container_asked_for(request_: dict[str, Any], gpus: str | None) -> None:
    assert inspected(DeviceRequests=[request_])[0].gpus == gpus


@pytest.mark.parametrize(
    ("limit", "unlimited"),
    [
        ({"Name": "memlock", "Soft": -1, "Hard": 65536}, True),
        ({"Name": "memlock", "Soft": 65536, "Hard": -1}, False),
        ({"Name": "stack", "Soft": -1, "Hard": -1}, None),
    ],
)
def test_the_soft_limit_of_locked_memory_counts(limit: dict[str, Any], unlimited: bool | None) -> None:
    assert inspected(Ulimits=[limit])[0].memlock_unlimited is unlimited
