"""A person assigns lines of an evidence to a reader or a machine."""

from typing import Any

from django import forms

from agents.benchmark import all_benchmarks
from agents.facts import View
from agents.probes import probes_for
from webapp.records.assignments import TAKE_BACK, AssignmentError, assignable, check_assignment
from webapp.records.models import DiagnosisSession, Evidence

Group = tuple[str, list[tuple[str, str]]]


def reader_choices() -> list[Group]:
    """Every probe and benchmark by title: guest, host, benchmarks."""
    groups = [
        ("Guest", [(probe.id, probe.title) for probe in probes_for(View.GUEST)]),
        ("Host", [(probe.id, probe.title) for probe in probes_for(View.HOST)]),
        ("Benchmarks", [(b.id, b.title) for b in all_benchmarks().values()]),
    ]
    return [(name, sorted(choices, key=lambda choice: choice[1])) for name, choices in groups]


class AssignmentForm(forms.Form):
    """Assigns the lines first to last to this reader or this machine; without either, withdraws the assignment."""

    evidence = forms.ModelChoiceField(queryset=Evidence.objects.none())
    first = forms.IntegerField(min_value=1)
    last = forms.IntegerField(min_value=1)
    reader = forms.ChoiceField(choices=[], required=False)
    view = forms.ChoiceField(choices=[(v, v) for v in (View.GUEST, View.HOST)], required=False)
    take_back = forms.BooleanField(required=False)

    def __init__(self, session: DiagnosisSession, data: Any) -> None:
        super().__init__(data)
        self.fields["evidence"].queryset = assignable(session)  # type: ignore[attr-defined]
        self.fields["reader"].choices = reader_choices()  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        answers = self.cleaned_data
        if self.errors:
            return answers
        meant = answers["reader"] or answers["view"] or ("" if not answers["take_back"] else TAKE_BACK)
        try:
            check_assignment(answers["evidence"], (answers["first"], answers["last"]), meant)
        except AssignmentError as error:
            raise forms.ValidationError(str(error)) from error
        return answers
