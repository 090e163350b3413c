"""Outputs damaged on purpose, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from agents.samples import load

PROBE_CASES = Path(__file__).parent / "probes"

# The benchmarks' outputs, shortened; their figures are made up.
_BENCHMARK_OUTPUTS = {
    "bench.nccl_tests": b"# nThread 1 nGpus 2 minBytes 8 maxBytes 64\n"
    b"#  Rank  0 Group  0 Pid   77 on  rig device  0 [0x01] NVIDIA L40S\n"
    b"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw"
    b"   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
    b"       12288          6144  bfloat16     sum      -1    21.40    0.57    0.57      0    20.9    0.59"
    b"    0.59      0\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.58\n",
    "bench.p2p_bandwidth_latency": b"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
    b"Device: 0, NVIDIA L40S, pciBusID: 1, pciDeviceID: 0, pciDomainID:0\n"
    b"Device=0 CANNOT Access Peer Device=1\n\nP2P Connectivity Matrix\n     D\\D     0     1\n"
    b"     0\t     1     0\n     1\t     0     1\n"
    b"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n"
    b"     0 711.20  12.10 \n     1  12.20 709.91 \nP2P=Disabled Latency Matrix (us)\n   GPU     0      1 \n"
    b"     0   1.61  13.20 \n     1  13.40   1.60 \n",
    "bench.serving": b"============ Serving Benchmark Result ============\n"
    b"Successful requests:                     64        \nMaximum request concurrency:             8\n"
    b"Output token throughput (tok/s):         250.11    \n"
    b"Total Token throughput (tok/s):          485.20    \n"
    b"---------------Time to First Token----------------\nMean TTFT (ms):      1201.1\n"
    b"Median TPOT (ms):                        31.20\n"
    b"==================================================\n",
    "bench.delivery": b'{"schema": "peerpath.delivery/1", "environment": {"device": "cuda"}}\n'
    b'{"source": "0", "destination": "1", "mapping": "one_process", "method": "copy_engine", '
    b'"size_bytes": 12288, "verdict": "right"}\n{"source": "1", "destination": "0", "mapping": '
    b'"one_process", "method": "kernel_stores", "size_bytes": 12288, "verdict": "hang", "why": "x"}\n',
    "bench.allreduce": b'{"schema": "peerpath.allreduce/1", "environment": {"device": "cuda"}}\n'
    b'{"arm": "default", "size_bytes": 12288, "ranks": 2, "in_place": true, "wrong": 0, "timing": '
    b'"device", "method": "graph", "time_us": 7.5, "samples": 40, "unstable": false}\n'
    b'{"arm": "default", "outcome": "right", "transport": "P2P/CUMEM"}\n{"end": true}\n',
    "bench.memory": b'{"schema": "peerpath.memory/1", "environment": {"device": "cuda"}}\n'
    b'{"kernel": "read", "gpu": "0", "size_bytes": 536870912, "l2_bytes": 62914560, '
    b'"moved_bytes": 536870912, "timing": "device", "method": "queued", "time_us": 125.0}\n',
    "bench.launch": b'{"schema": "peerpath.launch/1", "environment": {"device": "cuda"}}\n'
    b'{"what": "kernel", "gpu": "0", "timing": "host_sync", "method": "no_wait", "time_us": 2.4}\n',
    "bench.copy": b"size  time  GB/s\n12 KB: 13.7 us (0.90 GB/s)\n4 MB: 32.6 GB/s, 128.7 us\n",
}


@cache
def seeds() -> tuple[tuple[str, bytes], ...]:
    """(reader id, output) of every probe case, sample and benchmark output, in order."""
    found = [
        (f"{path.parts[-4]}.{path.parts[-3]}", path.read_bytes())
        for path in sorted(PROBE_CASES.glob("*/*/*/stdout.txt"))
    ]
    found += sorted(_BENCHMARK_OUTPUTS.items())
    found += [("", output.text.encode()) for output in load("kpro6@after") if not output.is_workload]
    return tuple((reader, raw[:20_000]) for reader, raw in found if raw)


def mutants(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """(reader id, damaged output); every way of damaging comes equally often."""
    rng = random.Random(seed)
    known = seeds()
    for _ in range(count):
        reader, raw = rng.choice(known)
        yield reader, rng.choice(_WAYS)(raw, rng)


def _flipped(raw: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(raw)
    for _ in range(rng.randint(1, 24)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _cut(raw: bytes, rng: random.Random) -> bytes:
    first, last = sorted((rng.randrange(len(raw) + 1), rng.randrange(len(raw) + 1)))
    return raw[first:last]


def _repeated(raw: bytes, rng: random.Random) -> bytes:
    lines = raw.split(b"\n")
    at = rng.randrange(len(lines))
    some = lines[at : at + rng.randint(1, 8)]
    return b"\n".join([*lines[:at], *(some * rng.randint(2, 30)), *lines[at:]])


def _shuffled(raw: bytes, rng: random.Random) -> bytes:
    lines = raw.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def _spliced(raw: bytes, rng: random.Random) -> bytes:
    _, other = rng.choice(seeds())
    return raw[: rng.randrange(len(raw) + 1)] + other[rng.randrange(len(other)) :]


def _one_long_line(raw: bytes, rng: random.Random) -> bytes:
    joint = rng.choice((b" ", b"", b"\t", b"\x00"))
    return raw.replace(b"\n", joint) * rng.randint(1, 6)


def _numbers_changed(raw: bytes, rng: random.Random) -> bytes:
    odd = (b"-1", b"0", b"99999999999999999999", b"1e400", b"nan", b"0x", "\u0663".encode(), b"")
    parts = raw.split(b" ")
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(parts))
        if any(byte in b"0123456789" for byte in parts[at]):
            parts[at] = rng.choice(odd)
    return b" ".join(parts)


def _dressed(raw: bytes, rng: random.Random) -> bytes:
    ways: tuple[Callable[[bytes], bytes], ...] = (
        lambda r: r.replace(b"\n", b"\r\n"),
        lambda r: b"> " + r.replace(b"\n", b"\n> "),
        lambda r: b"```\n" + r + b"\n```",
        lambda r: r.replace(b"\t", b" "),
        lambda r: r.replace(b"\n", b"\x1b[0m\n\x1b[4m"),
        lambda r: b"root@rig:~# " + r,
        lambda r: (
            b"=0a1b2c3d4e5f= begin peerpath.bundle/1 role=guest\n=0a1b2c3d4e5f= probe guest.cpu\n| "
            + r.replace(b"\n", b"\n| ")
        ),
    )
    return rng.choice(ways)(raw)


_WAYS = (_flipped, _cut, _repeated, _shuffled, _spliced, _one_long_line, _numbers_changed, _dressed)
