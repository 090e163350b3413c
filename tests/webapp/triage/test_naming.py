"""A missing input is named as the field that takes it."""

from __future__ import annotations

from webapp.diagnosis.naming import FIELDS, field_of, in_words
from webapp.triage.forms.workload import PointForm, WorkloadForm


def test_a_missing_input_is_named_as_its_field_is_labelled() -> None:
    labels = {str(f.label) for form in (WorkloadForm, PointForm) for f in form.base_fields.values()}
    assert set(FIELDS.values()) <= labels
    for name, label in FIELDS.items():
        assert in_words(f"{name} (for the floor)") == (
            f"“{label}” on the step “Symptom & goal” (for the floor)"
        )
        field = field_of(name)
        if field:
            assert str(WorkloadForm.base_fields[field].label) == label
    assert in_words("something else") == "something else"
    assert field_of("guest.gpus: a GPU whose memory bandwidth is known") == ""
