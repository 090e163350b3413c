"""What people read in place of ids: fields, titles, paths, and what a reading lacks."""

from __future__ import annotations

from webapp.diagnosis.contradictions import all_rules
from webapp.diagnosis.naming import FIELDS, actor_in_words, by_title, field_of, in_words, restart_in_words
from webapp.diagnosis.next_test import CANDIDATES, title_of
from webapp.diagnosis.wording import typeset
from webapp.pages.forms.workload import PointForm, WorkloadForm
from webapp.presenting.fact_lists import lacking


def test_a_missing_input_is_named_as_its_field_is_labelled() -> None:
    labels = {str(f.label) for form in (WorkloadForm, PointForm) for f in form.base_fields.values()}
    assert set(FIELDS.values()) <= labels
    for name, label in FIELDS.items():
        assert in_words(f"{name} (for the floor)") == (f"“{label}” on the step “Symptom & goal” (for the floor)")
        field = field_of(name)
        if field:
            assert str(WorkloadForm.base_fields[field].label) == label
    assert in_words("something else") == "something else"
    assert field_of("guest.gpus: a GPU whose memory bandwidth is known") == ""


def test_what_has_an_id_has_a_title_of_its_own() -> None:
    tests = [candidate.test for candidate in CANDIDATES]
    for titles in ([test.title for test in tests], [rule.title for rule in all_rules()]):
        assert len(titles) == len(set(titles))
        assert not any("_" in title or title.endswith(".") for title in titles)
    assert title_of("nccl_log") == "Read NCCL’s log"
    assert title_of("of another version") == "of another version"


def test_ids_inside_of_texts_become_titles() -> None:
    assert by_title("bench.copy per pair; guest.none") == "Copies between the GPUs per pair; guest.none"
    assert by_title("user.observed") == "Observed speed"
    assert in_words("gate driver (pcie)") == "the gate “driver” over PCIe"
    assert in_words("bench.copy or bench.allreduce: no copy was measured") == "no copy was measured"
    assert (actor_in_words("host admin"), restart_in_words("vm")) == ("the host’s admin", "the VM")
    assert restart_in_words("of another version") == "of another version"


def test_what_a_reading_lacks_is_said_in_words() -> None:
    assert lacking(("default_domain", "row GPU7")) == "its default domain, row GPU7"


def test_a_docstring_is_set_as_a_page_is() -> None:
    said = """the GPUs' BARs, the VM's `it's`, prints "no such 'x'", GPUs "" when none"""
    assert typeset(said) == """the GPUs’ BARs, the VM’s `it's`, prints “no such 'x'”, GPUs "" when none"""
