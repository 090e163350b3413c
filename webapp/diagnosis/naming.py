"""What people read in place of ids: hypotheses, gates, probes, and the fields of the first step."""

from __future__ import annotations

import re

from agents.benchmark import all_benchmarks
from agents.facts import all_facts
from agents.probes import all_probes
from webapp.diagnosis.catalogue import all_hypotheses
from webapp.diagnosis.ladder import GATES

# Labels of the first step's form, by fact and field; a test holds them to the form's own.
FIELDS = {
    "user.model: layers": "Layers",
    "user.model: hidden_size": "Hidden size",
    "user.model: activation_bytes": "Activation bytes",
    "user.model: active_weight_bytes": "Weights read per token (GB)",
    "user.model: weight_bytes": "Checkpoint size (GB)",
    "user.model: experts": "Experts",
    "user.parallelism: tp": "Tensor parallel (tp)",
    "user.observed: output_tokens_per_s": "Output tok/s",
}
# What a missing input begins with for programs; the sentence after it stands by itself.
_IDS = re.compile(r"^(?:guest|bench)\.\w+(?: or bench\.\w+)?: ")
_FIELD = re.compile(r"(user\.\w+: \w+)(?:, experts_active)?")


def in_words(name: str) -> str:
    """An id, or a missing input, as a sentence says it; anything else as it is."""
    field = _FIELD.match(name)
    if field and field[1] in FIELDS:
        return f"“{FIELDS[field[1]]}” on the step “Symptom & goal”{name[field.end() :]}"
    return _titles().get(name) or _IDS.sub("", name)


def field_of(name: str) -> str:
    """The form's name for a missing input, "model__layers"; "" where it is no field of a form."""
    field = _FIELD.match(name)
    if field is None or field[1] not in FIELDS or field[1].startswith("user.observed"):
        return ""
    return field[1].removeprefix("user.").replace(": ", "__")


def _titles() -> dict[str, str]:
    found = {fact.id: fact.title for fact in all_facts().values()}
    found |= {probe.id: probe.title for probe in all_probes().values()}
    found |= {b.id: b.title for b in all_benchmarks().values()}
    found |= {h.id: h.claim.rstrip(".") for h in all_hypotheses()}
    # Its title is a question, which a list of what to do cannot hold.
    found["bench.delivery"] = "a check of the bytes by the GPU that receives them"
    return found | {gate: f"the gate “{gate}”" for gate in GATES}
