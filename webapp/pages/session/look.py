"""Steps 3 to 5: look at the guest, measure the path, ask the host."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agents.collector import PreviewLine, limits_s, preview, run_limit_s
from agents.facts import ReadingKind, View, all_facts
from agents.facts.bench import ALLREDUCE, COPY
from agents.probes import probes_for
from webapp.diagnosis.contradictions.sources_disagree import differ
from webapp.diagnosis.facts import Facts, Sourced
from webapp.diagnosis.prediction.baselines import Figure, figures
from webapp.pages.forms.target import SshTargetForm
from webapp.pages.session.start import uploads_sent
from webapp.pages.session.symptom import version_sent
from webapp.pages.session_page import render_page, session_page
from webapp.pages.shell import acting, on_session
from webapp.records.case_facts import facts_of
from webapp.records.intake import Intake, take_uploads
from webapp.records.models import DiagnosisSession, Run, Target
from webapp.records.sessions import EditedMeanwhileError, session_save
from webapp.runs.benchmark_options import Offer, offers
from webapp.runs.manual_run import Recording, recordings
from webapp.runs.results import ResultPanel, result_panels

ANSWERS = {
    "host_root": (
        ("yes", "Yes, I have root there"),
        ("ask admin", "No, but I can ask its admin"),
        ("no", "No, and nobody will"),
    ),
    "may_change": (
        ("guest", "the guest: its software and settings"),
        ("vm", "the VM’s configuration (it is stopped and started once)"),
        ("host", "the host: kernel, BIOS (it reboots, with everything on it)"),
        ("bare metal", "the VM itself: run on the host, without one"),
    ),
}


# The commands that tell most about a guest in one paste, most decisive first; each is read with its prompt.
WORTH_PASTING = (
    "systemd-detect-virt",
    "nvidia-smi topo -p2p r",
    "nvidia-smi topo -p2p w",
    "nvidia-smi topo -m",
    "nvidia-smi -q",
    "lspci -nn -d 10de:",
    "cat /proc/cmdline",
    "sudo lspci -vvv -d 10de:",
    "sudo dmesg | grep -iE 'nvrm|xid|bar|iommu'",
)


@dataclass(frozen=True, slots=True)
class FactRow:
    """best: the reading that counts. others: different readings from other outputs of the same state."""

    title: str
    best: Sourced
    others: tuple[Sourced, ...] = ()


def fact_rows(facts: Facts, *prefixes: str) -> list[FactRow]:
    """Known facts first, then the others; by id within each group."""
    named = all_facts()
    rows = [
        FactRow(named[fact_id].title if fact_id in named else fact_id, group[0], _other_readings(group))
        for fact_id, group in sorted(facts.readings.items())
        if fact_id.startswith(prefixes)
    ]
    return sorted(rows, key=lambda row: row.best.reading.kind is not ReadingKind.KNOWN)


def _other_readings(group: tuple[Sourced, ...]) -> tuple[Sourced, ...]:
    """Repeated measurements differ by nature; the figures show them, so they are left out here."""
    best = group[0]
    if best.reading.fact_id.startswith("bench."):
        return ()
    others: list[Sourced] = []
    for item in group[1:]:
        known = item.reading.kind is ReadingKind.KNOWN and item.epoch == best.epoch
        if known and all(differ(item, other) for other in (best, *others)):
            others.append(item)
    return tuple(others)


def preview_of(role: View) -> list[tuple[PreviewLine, list[PreviewLine]]]:
    """Every command by probe: the probe's first line, and all its alternatives."""
    lines = preview(probes_for(role))
    return [(group[0], group) for _, rows in groupby(lines, key=lambda line: line.probe_id) if (group := list(rows))]


@require_safe
@on_session
def guest(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    return look_page(request, session, View.GUEST)


@dataclass(frozen=True, slots=True)
class LookPage:
    """target_form: None if a machine exists and the reader adds none. rows: known facts. commands: of each probe the
    first line, and all of them. limits_s, run_limit_s: upper limits of a script and a run, in seconds. answers:
    choices of the form about the host, host_answers: its values. theirs: answers that somebody else saved meanwhile,
    None without them."""

    role: str
    target_form: SshTargetForm | None
    targets: list[Target]
    runs: Iterable[Run]
    rows: list[FactRow]
    commands: list[tuple[PreviewLine, list[PreviewLine]]]
    run_limit_s: int
    limits_s: int
    worth_pasting: tuple[str, ...]
    answers: Mapping[str, tuple[tuple[str, str], ...]]
    host_answers: dict[str, Any]
    theirs: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PathPage:
    """active, ended: runs. with_engine, alone: measurements that use the engine, and measurements that load the
    GPUs. opened: the measurement with an open form. bounded: whether the share of communication has a bound."""

    role: str
    targets: Iterable[Target]
    active: list[Run]
    ended: list[Run]
    with_engine: list[Offer]
    alone: list[Offer]
    opened: str
    recordings: tuple[Recording, ...]
    results: list[ResultPanel]
    expected: tuple[Figure, ...]
    bounded: bool


@dataclass(frozen=True, slots=True)
class UnderstoodPage:
    """role: the machine of the outputs. back: the step of the paste."""

    received: Intake
    role: str
    back: str


def look_page(
    request: HttpRequest,
    session: DiagnosisSession,
    role: View,
    form: SshTargetForm | None = None,
    status: int = 200,
    typed: dict[str, Any] | None = None,
) -> HttpResponse:
    """form: the sent form; without one, a new form if no machine exists, or with ?add=1. typed: answers about the
    host that lost against a newer save."""
    facts = facts_of(session)
    targets = list(session.targets.filter(role=role.value).with_pins())
    if form is None and (not targets or request.GET.get("add")):
        form = SshTargetForm(user=acting(request))
    runs = session.runs.filter(kind="probes", target__role=role.value)
    own = LookPage(
        role=role.value,
        target_form=form,
        targets=targets,
        runs=runs[:3] if form is None else (),
        rows=fact_rows(facts, f"{role.value}.", "vm." if role is View.HOST else f"{role.value}."),
        commands=preview_of(role),
        run_limit_s=run_limit_s(probes_for(role)),
        limits_s=limits_s(probes_for(role)),
        worth_pasting=WORTH_PASTING if role is View.GUEST else (),
        answers=ANSWERS,
        host_answers=session.workload.get("host", {}) if typed is None else typed,
        theirs=None if typed is None else session.workload.get("host", {}),
    )
    page = session_page(session, role.value, facts=facts)
    return render_page(request, f"session/{role.value}.html", page, own, status=status)


@require_safe
@on_session
def path(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    facts = facts_of(session)
    offered = offers(facts)
    runs = session.runs.filter(kind="benchmark").select_related("target")[:12]
    own = PathPage(
        role="guest",
        targets=session.targets.filter(role="guest"),
        active=[run for run in runs if not run.ended],
        ended=[run for run in runs if run.ended][:3],
        with_engine=[offer for offer in offered if offer.benchmark.engine_runs],
        alone=[offer for offer in offered if not offer.benchmark.engine_runs],
        opened=request.GET.get("measure", ""),
        recordings=recordings(),
        results=result_panels(facts),
        expected=figures(facts),
        bounded=facts.value(COPY) is not None or facts.value(ALLREDUCE) is not None,
    )
    return render_page(request, "session/path.html", session_page(session, "path", facts=facts), own)


@require_http_methods(["GET", "HEAD", "POST"])
@on_session
def host(request: HttpRequest, session: DiagnosisSession) -> HttpResponse:
    if request.method == "POST":
        answers: dict[str, Any] = {
            "host_root": request.POST.get("host_root", ""),
            "why_vm": request.POST.get("why_vm", "").strip(),
            "may_change": request.POST.getlist("may_change"),
        }
        answered = {name: value for name, value in answers.items() if value}
        try:
            session_save(
                session,
                user=acting(request),
                version=version_sent(request),
                what="host",
                values={"workload": {**session.workload, "host": answered}},
            )
            messages.success(request, "Kept.")
        except EditedMeanwhileError as error:
            return look_page(request, error.current, View.HOST, status=409, typed=answered)
        return redirect("session:host", session.pk)
    return look_page(request, session, View.HOST)


@require_POST
@on_session
def paste(request: HttpRequest, session: DiagnosisSession, role: str) -> HttpResponse:
    """Takes pasted text or files, and shows at once which parts were understood."""
    back = role if role in {"guest", "host", "path"} else "diagnosis"
    uploads = uploads_sent(request)
    if not uploads:
        return redirect(f"session:{back}", session.pk)
    view = View(role) if role in {"guest", "host"} else None
    received = take_uploads(
        session,
        uploads,
        user=acting(request),
        view=view,
        label=f"a paste on “{back}”",
        hide=bool(request.POST.get("hide")),
    )
    own = UnderstoodPage(received, role, back)
    return render_page(request, "session/understood.html", session_page(session, back), own)
