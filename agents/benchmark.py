"""What a benchmark is: a program that loads the machine, and how to read what it printed.

A benchmark file (agents/benchmarks/<name>.py) holds a docstring, one module-level
`benchmark = Benchmark(…)` and the function it names; the package walk finds it. Its id is
"bench.<name>". Benchmarks without a payload read what a person ran and pasted.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agents.facts.fact import Fact
from agents.probe import Output, Readings, Signature

_PAYLOADS = Path(__file__).parent / "payloads"
_TOOL = Path(__file__).with_name("reference_tool.sh")


@dataclass(frozen=True, slots=True)
class Choice:
    """One argument of a payload that a person may set: "--name=value"; empty is left to the payload.

    default: what the page offers; "hidden", "batch" and "concurrency" are filled in from what the
    session says of its model and its observed points. pattern: what a value must match as a whole, in a
    form that browsers take too.
    """

    name: str
    title: str
    default: str = ""
    hint: str = ""
    pattern: str = r"[\w.,:\/@~+\-]{1,300}"


NUMBERS = r"[0-9]{1,7}(?:,[0-9]{1,7}){0,15}"
HIDDEN = Choice("hidden", "Hidden size", hint="adds the sizes this model sends", pattern=NUMBERS)
BATCH = Choice("batch", "Tokens in a step", hint="as in 1,64", pattern=NUMBERS)
BYTES = Choice("bytes", "Bytes of an activation", "2", pattern="1|2|4")
PAIRS = Choice("pairs", "Pairs of GPUs", "auto", "auto, first, all, or 0-1,1-0", r"auto|first|all|[\d,\-]{3,99}")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One measurement.

    supplies and parse: as for a probe; one output may hold several results, then a fact has several
    readings. payload: folder in agents/payloads that the target's Python runs (its __main__.py),
    shipped with the modules of _shared and of the folders that it names besides; None: only pasted output
    is read, or a reference tool is run that is on the machine. tool: its name, as the probe
    guest.reference_tools finds it. argv: the program's arguments when nobody chose others.
    duration_s: how long it takes on two GPUs. timeout_s: when it is ended.
    gpu_memory_mib: what it needs free on each GPU. engine_runs: it asks the serving engine, which has to
    run and be idle; else it wants the GPUs for itself. choices: arguments a person may set.
    about: what it does, for the person who decides whether to run it.
    """

    module: str
    title: str
    supplies: tuple[Fact[Any], ...]
    parse: Callable[[Output], Readings]
    signature: Signature
    payload: str | None = None
    besides: tuple[str, ...] = ()
    tool: str = ""
    argv: tuple[str, ...] = ()
    duration_s: int = 0
    timeout_s: int = 0
    gpu_memory_mib: int = 0
    engine_runs: bool = False
    choices: tuple[Choice, ...] = ()
    about: str = ""

    @property
    def id(self) -> str:
        """ "bench.copy" for agents.benchmarks.copy."""
        return f"bench.{self.module.rpartition('.')[2]}"

    @property
    def can_run(self) -> bool:
        """Whether there is something to run; else only pasted output is read."""
        return self.payload is not None or bool(self.tool)

    def payload_source(self) -> bytes:
        """The program to ship: one zip archive, which any Python runs as it is, and the same bytes for
        the same source; for a reference tool the sh script that runs it. Raises ValueError when this
        benchmark has none."""
        if self.tool:
            return _TOOL.read_bytes()
        if self.payload is None:
            raise ValueError(f"{self.id} has no program to run")
        shipped = io.BytesIO()
        with zipfile.ZipFile(shipped, "w") as archive:
            for module in _module_files(self.payload, *self.besides):
                archive.writestr(zipfile.ZipInfo(module.name), module.read_bytes())
        return shipped.getvalue()


def _module_files(*folders: str) -> list[Path]:
    """The payload's own files and those that payloads share, in order of their names."""
    paths = [path for name in (*folders, "_shared") for path in (_PAYLOADS / name).glob("*.py")]
    return sorted(paths, key=lambda path: path.name)


@cache
def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark by id, in order. Raises AttributeError when a file holds no `benchmark`."""
    package = importlib.import_module("agents.benchmarks")
    benchmarks: list[Benchmark] = [
        importlib.import_module(f"{package.__name__}.{info.name}").benchmark
        for info in pkgutil.iter_modules(package.__path__)
    ]
    return {b.id: b for b in sorted(benchmarks, key=lambda b: b.id)}
