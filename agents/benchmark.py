"""Defines a benchmark: a program that loads the machine, and the parser of its output.

A benchmark file (agents/benchmarks/<name>.py) holds a docstring, one module-level `benchmark = Benchmark(…)` and the
function it names; the package walk finds it. Its id is "bench.<name>". A benchmark without a payload reads output
that a person pasted.
"""

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
    """One argument of a payload that a person may set: "--name=value"; empty means the payload's default.

    default: the value the page offers; "hidden", "batch" and "concurrency" come from the session's model and observed
    points. pattern: matches a whole valid value, in a syntax that browsers understand too.
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

    supplies and parse: as for a probe; one output may hold several results, then a fact has several readings.
    payload: folder in agents/payloads whose __main__.py the target's Python runs, shipped with the modules of
        _shared and of the folders in besides; None: the benchmark only reads pasted output, or runs a reference
        tool on the machine.
    tool: the tool's name, as the probe guest.reference_tools reports it.
    argv: the program's default arguments.
    duration_s: its time on two GPUs.
    timeout_s: when it is ended.
    gpu_memory_mib: free memory it needs on each GPU.
    engine_runs: it asks the serving engine, which has to run and be idle; else it needs the GPUs for itself.
    choices: arguments a person may set.
    about: a description for the person who decides whether to run it.
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
        """Whether there is a program to run; else the benchmark only reads pasted output."""
        return self.payload is not None or bool(self.tool)

    def payload_source(self) -> bytes:
        """The program to ship: one zip archive that any Python can run, with the same bytes for the same source. For
        a reference tool: the sh script that runs it. Raises ValueError when this benchmark has none."""
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
    """The payload's own files and the shared ones, in order of name."""
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
