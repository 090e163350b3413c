"""Which GPUs a program measured, by its own header, and whether the guest that was read has them.

Figures of other cards are another machine's: they are shown, and decide nothing here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agents.facts import Fact, Reading, ReadingKind
from agents.facts.bench import ALLREDUCE, CONTENTION, COPY, DELIVERY, TELEMETRY
from agents.facts.gpu import GPUS
from agents.facts.kernels import LAUNCH, MEMORY
from agents.facts.nccl import NCCL_TRANSPORTS
from agents.facts.p2p import P2P_READ, P2pCode
from webapp.diagnosis.facts import Facts, Sourced

MEASURED: tuple[Fact[Any], ...] = (COPY, ALLREDUCE, CONTENTION, DELIVERY, MEMORY, LAUNCH)
_NOT_OURS = "a log with P2P, which this driver refuses: of another moment or another machine"
_NAMED = {fact.id for fact in MEASURED}


def cards_measured(item: Sourced) -> frozenset[str]:
    """Empty where the header names none: a CPU's figures, another program's, an earlier version's reading."""
    result = item.reading.value
    text = result.environment.get("gpus", "") if result else ""
    return frozenset(name for name in text.split(", ") if name)


def cards_listed(facts: Facts, item: Sourced) -> Sourced | None:
    """The GPUs as they were listed between the same changes; where nobody looked then, as they are known."""
    known = [s for s in facts.all(GPUS) if s.reading.kind is ReadingKind.KNOWN]
    then = (s for s in known if s.epoch == item.epoch)
    return next(then, known[0] if known else None)


def foreign_cards(facts: Facts, item: Sourced) -> str:
    """In words, when none of the cards that it measured is among the guest's; else "".

    By name alone: UUIDs are hidden in one output and bare in another.
    """
    names, list_ = cards_measured(item), cards_listed(facts, item)
    cards = {gpu.name for gpu in list_.reading.value or () if gpu.name} if list_ else set()
    if not names or not cards or any(_same(name, card) for name in names for card in cards):
        return ""
    return f"measured on {', '.join(sorted(names))}, but the guest has {', '.join(sorted(cards))}"


def own_readings(facts: Facts) -> Facts:
    """The facts, in which what was measured on other cards, and the telemetry beside it, was never run; nor
    was an NCCL log that shows what this driver refuses."""
    foreign = {item.source: why for _, item in card_measurements(facts) if (why := foreign_cards(facts, item))}
    refused = [item for item in facts.all(NCCL_TRANSPORTS) if _refused(facts, item)]
    if not foreign and not refused:
        return facts
    every = [item for group in facts.readings.values() for item in group]
    own = [_never(item, _NOT_OURS) if item in refused else item for item in every]
    own = [_if_here(facts, item, foreign) for item in own]
    withheld = {new.reading.fact_id: frozenset({GPUS.id}) for old, new in zip(every, own, strict=True) if new != old}
    withheld |= {NCCL_TRANSPORTS.id: frozenset({P2P_READ.id})} if refused else {}
    return replace(Facts.of(own, facts.changes), origins=facts.origins, withheld=withheld)


def _refused(facts: Facts, item: Sourced) -> bool:
    """P2P in the log where the driver, asked between the same changes, allows it on no pair: NCCL needs reads
    and writes OK (NCCL 2.30.7, src/graph/paths.cc), so the log is of another moment or another machine."""
    seen = item.reading.value
    matrices = (s.reading.value for s in facts.all(P2P_READ) if s.epoch == item.epoch)
    answer = next((matrix for matrix in matrices if matrix), None)
    codes = set(answer.pairs().values()) if answer else set()
    return bool(seen and seen.p2p and codes and P2pCode.OK not in codes)


def unnamed_cards(facts: Facts, fact: Fact[Any]) -> str:
    """To follow what rests on a result that can name no cards: somebody pasted it, and it is taken for this
    machine's. What a run or a collector brought comes from where it was started."""
    item = facts.best(fact)
    pasted = item is not None and item.source.startswith("paste@")
    return "; pasted, and it names no cards" if pasted else ""


def card_measurements(facts: Facts) -> Iterator[tuple[Fact[Any], Sourced]]:
    """Readings whose header can name cards, of each kind the one that counts first."""
    return ((fact, item) for fact in MEASURED for item in facts.all(fact))


def _if_here(facts: Facts, item: Sourced, foreign: Mapping[str, str]) -> Sourced:
    """Telemetry names no cards; it is of those that the same output measured."""
    fact_id = item.reading.fact_id
    why = foreign.get(item.source, "")
    if fact_id in _NAMED and why:
        why = foreign_cards(facts, item)
    if not why or fact_id not in _NAMED | {TELEMETRY.id}:
        return item
    return _never(item, why)


def _never(item: Sourced, why: str) -> Sourced:
    read = item.reading
    never: Reading[Any] = Reading(read.fact_id, ReadingKind.NOT_RUN, None, why, read.lines)
    return replace(item, reading=never)


def _same(name: str, card: str) -> bool:
    """A MIG instance has its card's name with more behind it; nvidia-smi's table cuts long names ("..")."""
    name, card = _plain(name), _plain(card)
    if card.endswith(".."):
        return name.startswith(card.rstrip("."))
    return name == card or name.startswith(f"{card} MIG ")


def _plain(name: str) -> str:
    """Drivers before 470 leave the maker out of the name (nvidia-smi)."""
    return name.removeprefix("NVIDIA ")
