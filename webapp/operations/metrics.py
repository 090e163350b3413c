"""Figures for Prometheus, counted in the database when they are asked for, so that every process gives the
same; whether the storage of evidence is up is what the process that is asked sees.

For a bearer of PEERPATH_METRICS_TOKEN; without one, for programs on this machine alone.
"""

from collections import Counter
from collections.abc import Iterator
from secrets import compare_digest

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Min
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.facts import ReadingKind
from webapp.operations import evidence_storage
from webapp.records.models import Run, RunState, StoredReading
from webapp.records.models.run import ACTIVE

_HERE = ("127.0.0.1", "::1")


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read(request):
        raise PermissionDenied("Metrics are for the bearer of this installation's metrics token.")
    return HttpResponse(generate_latest(_registry()), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    """A proxy on this machine makes everybody local, so what was forwarded is not."""
    if settings.METRICS_TOKEN:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return compare_digest(token.encode(), settings.METRICS_TOKEN.encode())
    forwarded = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    return request.META.get("REMOTE_ADDR") in _HERE and not forwarded


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_FromDatabase())
    return registry


class _FromDatabase(Collector):
    def collect(self) -> Iterator[Metric]:
        yield from _runs()
        yield from _queue()
        yield from _storage()
        yield _unreadable()

    def describe(self) -> Iterator[Metric]:
        return iter(())


def _runs() -> Iterator[Metric]:
    counted = Run.objects.order_by().values_list("state", "failure").annotate(count=Count("pk"))
    states = Counter(dict.fromkeys(RunState.values, 0))
    failures: Counter[str] = Counter()
    for state, failure, count in counted:
        states[state] += count
        if failure:
            failures[failure] += count
    yield _gauge("peerpath_runs", "Runs by state.", ("state",), _by_label(states))
    yield _gauge(
        "peerpath_run_failures",
        "Runs that did not succeed, by the class of the failure.",
        ("failure",),
        _by_label(failures),
    )


def _queue() -> Iterator[Metric]:
    now = timezone.now()
    oldest = Run.objects.filter(state=RunState.QUEUED).aggregate(first=Min("created_at"))["first"]
    age = (now - oldest).total_seconds() if oldest else 0.0
    yield GaugeMetricFamily("peerpath_queue_oldest_seconds", "Age of the run that waits longest.", value=age)
    expired = Run.objects.filter(state__in=ACTIVE, lease_expires_at__lt=now).count()
    yield GaugeMetricFamily(
        "peerpath_expired_leases", "Runs whose worker went silent and that no reconciler has ended yet.", value=expired
    )


def _storage() -> Iterator[Metric]:
    """Nothing where evidence lies in the database: what is not there is not up."""
    if evidence_storage.is_used():
        yield GaugeMetricFamily(
            "peerpath_evidence_storage_up",
            "Whether the storage of evidence takes something and gives it back.",
            value=evidence_storage.state() == evidence_storage.OK,
        )


def _unreadable() -> Metric:
    rows = StoredReading.objects.filter(kind=ReadingKind.UNREADABLE.value).order_by()
    counted = dict(rows.values_list("fact_id").annotate(count=Count("pk")))
    return _gauge(
        "peerpath_unreadable_readings", "Answers that no parser could read, by fact.", ("fact",), _by_label(counted)
    )


def _by_label(counts: dict[str, int]) -> dict[tuple[str, ...], int]:
    return {(name,): count for name, count in counts.items()}


def _gauge(name: str, text: str, labels: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, count in sorted(counts.items()):
        family.add_metric(values, count)
    return family
