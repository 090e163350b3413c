"""A size given for the weights does not fit the model's parameters and their bits.

Parameters × bits ÷ 8 is the least that weights can take.

Source: arithmetic of parameters and bits.
"""

import re
from collections.abc import Iterator

from agents.facts.workload import MODEL, NOTES, Model
from webapp.diagnosis.case import Case
from webapp.diagnosis.rule import Clash, Rule

# Each number is looked at once, from its beginning: what people type may be one endless number.
_SIZE = re.compile(r"(?<!\d)(?<!\d,)(\d++(?:,\d++)*+(?:\.\d++)?)\s*+(GB|GiB|TB|TiB)\b", re.I)
_ABOUT_WEIGHTS = re.compile(r"weights?|checkpoint|model (?:size|is|takes)", re.I)
_BITS = (
    (re.compile(r"FP4|INT4|AWQ|GPTQ|W4|Q4", re.I), 4.0),
    (re.compile(r"FP8|INT8|W8|Q8", re.I), 8.0),
    (re.compile(r"BF16|FP16", re.I), 16.0),
)
_BYTES = {"gb": 1e9, "gib": 2.0**30, "tb": 1e12, "tib": 2.0**40}
TOLERANCE = 0.1
NEAR = 40


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    model = facts.value(MODEL)
    if not model:
        return
    if model.weight_bytes and (text := _too_small(model, model.weight_bytes[1])):
        yield text, facts.refs(MODEL)
    for size in _stated_sizes(facts.value(NOTES) or ""):
        text = _too_small(model, size) or _outside(model, size)
        if text:
            yield text, facts.refs(NOTES, MODEL)


def _stated_sizes(text: str) -> list[float]:
    """Sizes that stand within a few words of "weights"."""
    sizes = []
    for match in _SIZE.finditer(text):
        around = text[max(0, match.start() - NEAR) : match.end() + NEAR]
        if _ABOUT_WEIGHTS.search(around):
            sizes.append(float(match[1].replace(",", "")) * _BYTES[match[2].lower()])
    return sizes


def _too_small(model: Model, size: float) -> str | None:
    """Quantised weights still need their bits; scales and unquantised parts only add."""
    bits = next((bits for name, bits in _BITS if name.search(model.name or "")), None)
    if bits is None or not model.total_params:
        return None
    least = model.total_params * bits / 8
    if size >= least * (1 - TOLERANCE):
        return None
    return (
        f"{size / 1e9:.0f} GB of weights is less than {model.total_params / 1e9:.0f} billion "
        f"parameters of {bits:.0f} bits need, {least / 1e9:.0f} GB: it is another model’s"
    )


def _outside(model: Model, size: float) -> str | None:
    if not model.weight_bytes:
        return None
    low, high = model.weight_bytes
    if low * (1 - TOLERANCE) <= size <= high * (1 + TOLERANCE):
        return None
    return f"{size / 1e9:.0f} GB of weights is said, {low / 1e9:.0f}–{high / 1e9:.0f} GB given for the model"


rule = Rule(__name__, "A size of the weights that cannot be", check)
