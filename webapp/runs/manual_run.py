"""How a measurement is made by hand, on a machine that nothing here reaches."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from agents.benchmark import Benchmark, all_benchmarks

_LOAD = (
    'M=$(curl -s $E/v1/models | grep -o \'"id": *"[^"]*"\' | head -n 1 | cut -d\'"\' -f4)',
    "curl -sN -o /dev/null $E/v1/completions -H 'Content-Type: application/json' \\",
    '  -d \'{"model": "\'"$M"\'", "prompt": "Count to ten thousand in words: one, two,", '
    '"max_tokens": 2000, "ignore_eos": true, "stream": true}\' &',
    "sleep 3",
)


@dataclass(frozen=True, slots=True)
class ByHand:
    """A benchmark's program as one file. line: what to type where the file lies; output: the file that
    this writes."""

    file: str
    size_bytes: int
    sha256: str
    line: str
    output: str


@dataclass(frozen=True, slots=True)
class Recording:
    """Lines that let an engine record its own step. lands: the folder that its trace lies in then."""

    engine: str
    before: str
    lines: str
    lands: str


@cache
def program(name: str) -> bytes:
    """The program that a benchmark sends. Raises KeyError when there is none."""
    benchmark = all_benchmarks()[name]
    if benchmark.payload is None:
        raise KeyError(name)
    return benchmark.payload_source()


def file_of(benchmark: Benchmark) -> str:
    return f"peerpath-{benchmark.id.removeprefix('bench.')}.pyz"


def by_hand(benchmark: Benchmark, arguments: Sequence[str], tag: str = "") -> ByHand | None:
    """arguments: words of a shell, quoted. tag: tells the output of one run from others. None for a tool that has
    to be on the machine."""
    if benchmark.payload is None:
        return None
    raw, file = program(benchmark.id), file_of(benchmark)
    output = f"{benchmark.id.removeprefix('bench.')}{tag}.jsonl"
    line = " ".join(("python3", file, *benchmark.argv, *arguments, ">", output))
    return ByHand(file, len(raw), hashlib.sha256(raw).hexdigest(), line, output)


def recordings() -> tuple[Recording, ...]:
    """As agents/payloads/engine_profile asks them (SGLang and vLLM, POST /start_profile, 2026)."""
    folder = "/tmp/peerpath-profile"  # noqa: S108, on the machine that is measured
    request = f'{{"output_dir": "{folder}", "activities": ["GPU"], "with_stack": false}}'
    body = f" -H 'Content-Type: application/json' -d '{request}'"
    traces = "/tmp/traces"  # noqa: S108
    started = (
        'It must have been started with `--profiler-config \'{"profiler": "torch", "torch_profiler_dir": '
        f'"{traces}", "torch_profiler_with_stack": false}}\'` (0.13 and later) or with '
        f"`VLLM_TORCH_PROFILER_DIR={traces}` (before); that restarts it once."
    )
    return (
        Recording("SGLang", "It can always be asked.", _typed_commands(30000, body, folder), folder),
        Recording("vLLM", started, _typed_commands(8000, "", traces), traces),
    )


def _typed_commands(port: int, body: str, folder: str) -> str:
    lines = (
        f"E=http://127.0.0.1:{port}",
        *_LOAD,
        f"curl -s -X POST $E/start_profile{body}",
        "sleep 2",
        "curl -s -X POST $E/stop_profile",
        "kill $!",
        f"ls -l {folder}",
    )
    return "\n".join(lines)
