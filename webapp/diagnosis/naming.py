"""What people read in place of ids: hypotheses, gates and their paths, probes, tests, who acts, what
restarts, and the fields of the first step."""

import re

from agents.benchmark import all_benchmarks
from agents.facts import all_facts
from agents.probes import all_probes
from webapp.diagnosis.case import Actor, Path, Restart
from webapp.diagnosis.catalogue import all_hypotheses, all_rungs, listed

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
PATHS = {Path.NVLINK: "NVLink", Path.PCIE: "PCIe"}
ACTORS = {Actor.OPERATOR: "the operator", Actor.HOST_ADMIN: "the host’s admin"}
RESTARTS = {
    Restart.NONE: "nothing",
    Restart.ENGINE: "the engine",
    Restart.GUEST: "the guest",
    Restart.VM: "the VM",
    Restart.HOST: "the host",
}
# What a missing input begins with for programs; the sentence after it stands by itself.
_IDS = re.compile(r"^(?:guest|bench)\.\w+(?: or bench\.\w+)?: ")
_FIELD = re.compile(r"(user\.\w+: \w+)(?:, experts_active)?")
_ID = re.compile(r"\b(?:bench|guest|host|vm|user)\.[a-z][a-z0-9_]*")
_GATE = re.compile(r"gate (\w+) \((\w+)\)")


def in_words(name: str) -> str:
    """An id, a missing input, or what a moment of the pivot is about, as a sentence says it; anything else
    as it is."""
    gate = _GATE.fullmatch(name)
    if gate:
        return gate_in_words(gate[1], gate[2])
    field = _FIELD.match(name)
    if field and field[1] in FIELDS:
        return f"“{FIELDS[field[1]]}” on the step “Symptom & goal”{name[field.end() :]}"
    return _titles().get(name) or _IDS.sub("", name)


def gate_in_words(gate: str, path: str) -> str:
    """ "the gate “driver” over PCIe"; a path that there is not any more as it is."""
    return f"the gate “{gate}” over {path_in_words(path)}"


def path_in_words(path: str) -> str:
    return {path.value: name for path, name in PATHS.items()}.get(path, path)


def actor_in_words(actor: str) -> str:
    """ "the host’s admin"; one that there is not any more as it is."""
    return {one.value: name for one, name in ACTORS.items()}.get(actor, actor)


def restart_in_words(restart: str) -> str:
    """ "nothing", "the VM"; one that there is not any more as it is."""
    return {one.value: name for one, name in RESTARTS.items()}.get(restart, restart)


def by_title(text: str) -> str:
    """Ids of programs, probes and facts in it as what they are called."""
    titles = _titles()
    return _ID.sub(lambda match: titles.get(match[0], match[0]), text)


def field_of(name: str) -> str:
    """The form's name for a missing input, "model__layers"; "" where it is no field of a form."""
    field = _FIELD.match(name)
    if field is None or field[1] not in FIELDS or field[1].startswith("user.observed"):
        return ""
    return field[1].removeprefix("user.").replace(": ", "__")


@listed
def _titles() -> dict[str, str]:
    titles = {fact.id: fact.title for fact in all_facts().values()}
    titles |= {probe.id: probe.title for probe in all_probes().values()}
    titles |= {b.id: b.title for b in all_benchmarks().values()}
    titles |= {h.id: h.claim.rstrip(".") for h in all_hypotheses()}
    # Its title is a question, which a list of what to do cannot hold.
    titles["bench.delivery"] = "a check of the bytes by the GPU that receives them"
    return titles | {rung.id: f"the gate “{rung.id}”" for rung in all_rungs()}
