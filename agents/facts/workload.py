"""The operator's answers: model, parallelism, observed speed, goal, and the three host questions."""

from dataclasses import dataclass

from agents.facts.fact import Fact

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Model:
    """The served model.

    active_weight_bytes: range of the bytes that all ranks together read for one token at batch 1; a part that every
    rank copies counts once for each rank. Divided by tp it is what one GPU reads. weight_bytes: size of the
    checkpoint, a range. accepted_per_step: tokens that a decode step yields per request (1 without speculative
    decoding), a range. kv_bytes_per_token: cache for one token of context over all GPUs that serve it, a range; a
    part that every rank copies counts once for each rank.
    """

    name: str | None = None
    layers: int | None = None
    hidden_size: int | None = None
    activation_bytes: int | None = None
    total_params: float | None = None
    active_params: float | None = None
    active_weight_bytes: Range | None = None
    weight_bytes: Range | None = None
    experts: int | None = None
    experts_active: int | None = None
    draft_tokens: int | None = None
    accepted_per_step: Range | None = None
    kv_bytes_per_token: Range | None = None


@dataclass(frozen=True, slots=True)
class Parallelism:
    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    dp_attention: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """One measured operating point. Throughputs are over all requests together, in tokens a second."""

    concurrency: int
    output_tokens_per_s: Range | None = None
    total_tokens_per_s: Range | None = None
    step_ms: Range | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """single_stream_tokens_per_s at concurrency 1; total_tokens_per_s: output, all requests together."""

    single_stream_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    text: str | None = None


MODEL: Fact[Model] = Fact("user.model", "Model", Model)
PARALLELISM: Fact[Parallelism] = Fact("user.parallelism", "Parallelism", Parallelism)
OBSERVED: Fact[tuple[Observed, ...]] = Fact("user.observed", "Observed speed", tuple[Observed, ...])
GOAL: Fact[Goal] = Fact("user.goal", "Goal", Goal)
HOST_ROOT: Fact[str] = Fact("user.host_root", "Root on the host", str)
WHY_VM: Fact[str] = Fact("user.why_vm", "Why a VM", str)
MAY_CHANGE: Fact[tuple[str, ...]] = Fact("user.may_change", "What may change", tuple[str, ...])
NOTES: Fact[str] = Fact("user.notes", "The operator’s own words", str)
