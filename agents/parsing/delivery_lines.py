"""JSON lines of the delivery payload (schema peerpath.delivery/1): a header, one line a check, an end line.

A pair is right when the copy engine and a kernel's stores were right in one process at every size. Memory of another
process (CUDA IPC) may be unusable, for example in a container, and is then missing. One check that is wrong, failed
or hung makes its pair wrong.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.parsing import payload_lines
from agents.parsing.payload_lines import PayloadLines, number_of, text_of

SCHEMA = "peerpath.delivery/1"
METHODS = frozenset({"copy_engine", "kernel_stores"})
_BAD = frozenset({"wrong", "failed", "hang"})
_VERDICTS = _BAD | {"right", "unusable", "inconclusive"}


@dataclass(frozen=True, slots=True)
class Check:
    """One write and the receiver's check. pair: "0->1", the sender first. method and size_bytes are "" and 0 where no
    write was possible."""

    pair: str
    mapping: str
    method: str
    size_bytes: int
    verdict: str
    why: str
    line: int

    @property
    def words(self) -> str:
        what = ", ".join(filter(None, (self.mapping, self.method)))
        size = f", {self.size_bytes} bytes" if self.size_bytes else ""
        return f"{self.pair} ({what}{size}): {self.verdict}{self.why and f', {self.why}'}"


@dataclass(frozen=True, slots=True)
class DeliveryLines:
    """payload: the frame around the checks. why_no_gpu: why the checks say nothing about GPUs, "" if they do."""

    checks: tuple[Check, ...]
    payload: PayloadLines
    why_no_gpu: str = ""

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(check.line for check in self.checks)

    @property
    def pairs(self) -> Mapping[str, bool]:
        """Whether the bytes arrived, for each pair with enough checks."""
        judged = {pair: _bytes_arrived(self.of(pair)) for pair in self._pairs}
        return {pair: right for pair, right in judged.items() if right is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """The checks that could not run, and the pairs with too few checks to be called right."""
        untried = [c.words for c in self.checks if c.verdict in {"unusable", "inconclusive"}]
        named = {c.pair for c in self.checks if c.verdict in {"unusable", "inconclusive"}}
        part = [f"{p}: not every way was tried" for p in self._pairs if p not in self.pairs]
        part = [text for text in part if text.partition(":")[0] not in named]
        return (*untried, *part, *self.payload.lost)

    def of(self, pair: str) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.pair == pair)

    @property
    def _pairs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(check.pair for check in self.checks))


def parse(text: str) -> DeliveryLines:
    payload = payload_lines.read(text, SCHEMA)
    checks = tuple(check for line, row in payload.rows for check in _check(row, line))
    return DeliveryLines(checks, payload, _why_no_gpu(payload.environment))


def _bytes_arrived(checks: Iterable[Check]) -> bool | None:
    """None: too few checks to say that the bytes arrive."""
    here = list(checks)
    if any(check.verdict in _BAD for check in here):
        return False
    direct = [check for check in here if check.mapping == "one_process"]
    sizes = {m: {c.size_bytes for c in direct if c.method == m} for m in METHODS}
    whole = len({frozenset(tried) for tried in sizes.values()}) == 1 and all(sizes.values())
    return True if whole and all(check.verdict == "right" for check in direct) else None


def _why_no_gpu(environment: Mapping[str, str]) -> str:
    if environment.get("simulated_fault"):
        return f"a fault was simulated ({environment['simulated_fault']})"
    if environment.get("device") == "cpu":
        return "memory of the CPU played them, to try the program"
    return ""


def _check(row: Mapping[str, Any], line: int) -> list[Check]:
    """The check, or nothing when the line lacks the pair or the verdict."""
    ends = [row.get("source"), row.get("destination")]
    verdict = row.get("verdict")
    named = all(isinstance(end, str) and end.isdecimal() and end.isascii() for end in ends)
    if not named or verdict not in _VERDICTS:
        return []
    size = number_of(row.get("size_bytes", 0))
    mapping, method = (text_of(row.get(name, "")) for name in ("mapping", "method"))
    why = text_of(row.get("why", ""))
    pair = f"{ends[0]}->{ends[1]}"
    return [Check(pair, mapping, method, int(size or 0), str(verdict), why, line)]
