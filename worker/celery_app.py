"""The Celery application of the worker: `celery -A worker.celery_app worker`.

Messages carry ids as JSON. They are acknowledged late, so that a message a killed worker had taken
comes back (Redis: after the visibility timeout that webapp/runs/queue.py sets); a run is claimed by
a conditional UPDATE, so a message that comes twice does nothing the second time.
"""

import logging
import os
import sys

import django
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
try:
    django.setup()
except ImproperlyConfigured as problem:
    sys.exit(f"Peerpath cannot start: {problem}")
logging.captureWarnings(True)

# These need Django's settings.
from celery.signals import celeryd_init, setup_logging, worker_ready, worker_shutting_down  # noqa: E402
from celery.worker.consumer.gossip import Gossip  # noqa: E402
from celery.worker.consumer.mingle import Mingle  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management.base import BaseCommand, SystemCheckError  # noqa: E402

from webapp.runs.queue import celery as app  # noqa: E402
from worker import lease  # noqa: E402
from worker.gc_freeze import freeze_loaded  # noqa: E402

__all__ = ["app"]

# Workers need not know of each other. The queues they would have for it are deleted when Redis goes away,
# over the connection that was lost, and a worker does not survive that (kombu issue 582).
Gossip.compatible_transports = Mingle.compatible_transports = frozenset()

app.conf.update(
    imports=("worker.tasks",),
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    # Runs wait for machines far away; threads cost nothing while they wait. They cannot be killed:
    # the runner watches the run's cancel flag instead.
    worker_pool="threads",
    worker_concurrency=16,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
)


@setup_logging.connect  # type: ignore[untyped-decorator]
def _keep_logging(**_: object) -> None:
    """Django's settings have set up logging; Celery would add its own handlers."""


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _check(**_: object) -> None:
    """Runs Django's checks, as manage.py does: a worker may have an environment of its own."""
    try:
        BaseCommand().check()
    except SystemCheckError as problem:
        sys.exit(f"Peerpath cannot start: {problem}")


@worker_ready.connect  # type: ignore[untyped-decorator]
def _settle(**_: object) -> None:
    freeze_loaded()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _stop_runs(**_: object) -> None:
    lease.drain(settings.DRAIN_S)
