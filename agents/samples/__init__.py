"""The founding case's outputs, rebuilt in their tools' formats from the values of its published account.

kpro6/<stage>/<probe id>.txt holds what one command printed, with the prompt it was typed at;
workload.toml what the operator said; provenance.toml which values the account does not give.
"""

from dataclasses import dataclass
from pathlib import Path

CASE = "kpro6"
STAGES = ("first", "guest", "host", "after")
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class SampleOutput:
    """One output. name: "guest.topo_p2p_read.txt", or "workload.toml" when is_workload.

    epoch: how many changes had been applied to the machine: 0 before the plan, 1 after it.
    """

    stage: str
    name: str
    text: str
    epoch: int
    is_workload: bool

    @property
    def probe_id(self) -> str:
        """The probe this output answers: the name's first two parts ("bench.copy.2.txt" is a second
        output of the same kind)."""
        return ".".join(self.name.split(".")[:2])


def names() -> tuple[str, ...]:
    return (CASE, *(f"{CASE}@{stage}" for stage in STAGES))


def load(name: str) -> tuple[SampleOutput, ...]:
    """The outputs known at a stage: its own and those of every earlier stage, in order of time.

    A name without a stage means the last one. Raises ValueError with the known names for another.
    """
    if name not in names():
        raise ValueError(f"no sample {name!r}; known are {', '.join(names())}")
    last = name.partition("@")[2] or STAGES[-1]
    return tuple(output for stage in STAGES[: STAGES.index(last) + 1] for output in _stage(stage))


def _stage(stage: str) -> list[SampleOutput]:
    """The outputs of a stage, workload.toml first: the operator answers before the machine."""
    folder = _HERE / CASE / stage
    files = [p for p in folder.iterdir() if p.name != "provenance.toml"]
    epoch = int(stage == "after")
    return [
        SampleOutput(stage, p.name, p.read_text("utf-8"), epoch, p.name == "workload.toml")
        for p in sorted(files, key=lambda p: (p.name != "workload.toml", p.name))
    ]
