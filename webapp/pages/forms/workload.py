"""Symptom and goal: the workload file's fields as a form, in both directions.

One box takes a range: "2.9" or "2.9-9" or "2.9 to 9". The form ignores "about", "~" and the like, because they give
no width."""

import re
from typing import Any

from django import forms

from webapp.records.workload import MOST_POINTS

GB = 1e9
BILLION = 1e9
POINTS = 4
# In each field's own unit: far above every machine, and far below what arithmetic cannot hold.
MOST = 10**9
_NUMBER = r"\d+(?:[.,]\d+)?"
_ABOUT = r"(?:(?:~|≈|about|around|roughly|approx\.?|ca\.?)\s*)?"
_RANGE = re.compile(rf"\s*{_ABOUT}({_NUMBER})\s*(?:(?:-|–|\.\.|to)\s*{_ABOUT}({_NUMBER}))?\s*", re.IGNORECASE)
# Bits of a stored weight with its scales: NVFP4 has one FP8 scale for 16 values of 4 bits (NVIDIA, 2025).
BITS = (("4.5", "NVFP4: 4.5 bits"), ("8", "FP8: 8 bits"), ("16", "BF16: 16 bits"))
# The bound needs each of these; without one it is incomplete or missing.
FOR_BOUND = frozenset(
    {
        *("concurrency", "output_tokens_per_s", "model__layers", "model__hidden_size"),
        *("model__activation_bytes", "model__active_weight_bytes", "parallelism__tp"),
    }
)


class RangeField(forms.CharField):
    """One number or two, as (low, high) in the field's own unit."""

    def __init__(self, *, scale: float = 1, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=40, **kwargs)
        self.scale = scale
        self.widget.attrs["inputmode"] = "decimal"

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        match = _RANGE.fullmatch(text)
        if match is None:
            raise forms.ValidationError(f"Write a number, or a range such as 2.9-9 or ~20-24, not “{text}”.")
        low = float(match[1].replace(",", ".")) * self.scale
        high = float(match[2].replace(",", ".")) * self.scale if match[2] else low
        if low > high or high <= 0:
            raise forms.ValidationError("The low end comes first, and must be above 0.")
        if high > MOST * self.scale:
            raise forms.ValidationError(f"That is more than {MOST:,}; is the unit right?")
        return [low, high]

    def show(self, value: Any) -> str:
        if value in (None, ""):
            return ""
        low, high = value if isinstance(value, list) else (value, value)
        ends = [f"{end / self.scale:g}" for end in (low, high)]
        return ends[0] if ends[0] == ends[1] else "-".join(ends)


class Scaled(RangeField):
    """One number, in the field's own unit."""

    def clean(self, value: Any) -> Any:
        ends = super().clean(value)
        if ends and ends[0] != ends[1]:
            raise forms.ValidationError("One number here, not a range.")
        return ends and ends[0]

    def show(self, value: Any) -> Any:
        return "" if value is None else f"{value / self.scale:g}"


class Whole(forms.IntegerField):
    def __init__(self, minimum: int = 1, **kwargs: Any) -> None:
        super().__init__(required=False, min_value=minimum, max_value=MOST, **kwargs)

    def show(self, value: Any) -> Any:
        return "" if value is None else value


class WorkloadForm(forms.Form):
    """Field names are "<table>__<key>" of the workload file."""

    title = forms.CharField(label="Name of this case", max_length=200)
    symptom = forms.CharField(
        label="What is wrong?",
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 3, "placeholder": "Eight GPUs, 11 tok/s single stream; I expected a hundred."}
        ),
    )
    model__name = forms.CharField(label="Model", required=False, max_length=120)
    model__layers = Whole(label="Layers")
    model__hidden_size = Whole(label="Hidden size")
    model__activation_bytes = Whole(label="Activation bytes", help_text="bf16 is 2")
    model__total_params = Scaled(label="Parameters, total (10⁹)", scale=BILLION)
    model__active_params = Scaled(label="Active per token (10⁹)", scale=BILLION)
    model__weight_bytes = RangeField(label="Checkpoint size (GB)", scale=GB)
    model__bits = forms.ChoiceField(
        label="Weights are kept in",
        required=False,
        choices=(("", "something else"), *BITS),
        help_text="computes what is read from the active parameters, in place of the figure there",
    )
    model__active_weight_bytes = RangeField(
        label="Weights read per token (GB)",
        scale=GB,
        help_text="active parameters × bytes each, all GPUs together; a range is fine",
    )
    model__experts = Whole(label="Experts", help_text="empty for a dense model")
    model__experts_active = Whole(label="Experts per token")
    model__kv_bytes_per_token = RangeField(
        label="KV cache per token (KiB)", scale=1024, help_text="all layers, all GPUs together"
    )
    model__draft_tokens = Whole(0, label="Draft tokens", help_text="speculative decoding")
    model__accepted_per_step = RangeField(label="Tokens accepted per step", help_text="1 without drafts")
    parallelism__tp = Whole(label="Tensor parallel (tp)")
    parallelism__pp = Whole(label="Pipeline (pp)")
    parallelism__ep = Whole(label="Expert parallel (ep)")
    parallelism__dp = Whole(label="Data parallel (dp)")
    parallelism__dp_attention = forms.BooleanField(label="DP attention", required=False)
    goal__single_stream_tokens_per_s = Scaled(label="Goal, single stream (tok/s)")
    goal__total_tokens_per_s = Scaled(label="Goal, all requests (output tok/s)")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("model__experts_active") and not data.get("model__experts"):
            self.add_error("model__experts", "Say how many experts there are in all.")
        bits, active = data.pop("model__bits", ""), data.get("model__active_params")
        if bits and active:
            data["model__active_weight_bytes"] = [read_bytes(active, bits)] * 2
        elif bits and not self.errors:
            self.add_error("model__active_params", "Say how many, or choose “something else”.")
        return data

    def workload(self) -> dict[str, Any]:
        """The tables [model], [parallelism] and [goal], without empty fields."""
        tables: dict[str, dict[str, Any]] = {}
        for name, value in self.cleaned_data.items():
            table, _, key = name.partition("__")
            if key and value not in (None, "", False):
                tables.setdefault(table, {})[key] = value
        return tables


def read_bytes(active_params: float, bits: str) -> float:
    return active_params * float(bits) / 8


def bits_of(model: dict[str, Any]) -> str:
    """The entry of BITS that the typed weights per token match, "" without a match."""
    active, read = model.get("active_params"), model.get("active_weight_bytes")
    ends = set(read) if isinstance(read, list) else {read}
    if not active or None in ends:
        return ""
    return next((bits for bits, _ in BITS if ends == {read_bytes(active, bits)}), "")


def computed(model: dict[str, Any]) -> str:
    """The formula of the weights read per token; "" if a person typed them."""
    if not (bits := bits_of(model)):
        return ""
    return f"computed from {model['active_params'] / BILLION:g}·10⁹ active parameters × {bits} bits"


class PointForm(forms.Form):
    """One observed operating point."""

    concurrency = Whole(label="Requests at once")
    output_tokens_per_s = RangeField(label="Output tok/s", help_text="all requests together, output only")
    total_tokens_per_s = RangeField(label="Total tok/s", help_text="if that is all you have")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        speeds = [data.get("output_tokens_per_s"), data.get("total_tokens_per_s")]
        if any(speeds) and not data.get("concurrency"):
            self.add_error("concurrency", "How many requests ran at once? 1 for a single stream.")
        return data


PointFormSet = forms.formset_factory(PointForm, extra=0, min_num=POINTS, max_num=MOST_POINTS)


def initial(workload: dict[str, Any]) -> dict[str, Any]:
    """The form's starting values from a workload as stored."""
    values: dict[str, Any] = {}
    for name, field in WorkloadForm.base_fields.items():
        table, _, key = name.partition("__")
        if not key:
            continue
        stored = workload.get(table, {}).get(key)
        values[name] = field.show(stored) if hasattr(field, "show") else stored
    return values | {"model__bits": bits_of(workload.get("model", {}))}


def initial_points(workload: dict[str, Any]) -> list[dict[str, Any]]:
    fields = PointForm.base_fields
    points = [
        {key: field.show(point.get(key)) for key, field in fields.items()}  # type: ignore[attr-defined]
        for point in workload.get("observed", [])[:MOST_POINTS]
    ]
    return points + [{}] * (POINTS - len(points))


def observed(formset: Any) -> list[dict[str, Any]]:
    """The [[observed]] tables of the points that have any value."""
    rows = [{key: value for key, value in form.cleaned_data.items() if value is not None} for form in formset]
    return [row for row in rows if len(row) > 1]
