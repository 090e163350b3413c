"""The one place that gives work to a worker: by task name, ids only, as JSON.

The database is the truth. A message that gets lost, or that a broker out of reach never took, is sent
again from the database by the reconciler, so nothing here raises for a broker's sake.
"""

import logging
import ssl
from uuid import UUID

from celery import Celery
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from webapp import logs
from webapp.records.models import Run

RUN_TASK = "peerpath.run"
REQUEST_ID = "request_id"
_CHECKED = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True}
_POLLING_INTERVAL_S = 0.02  # the in-memory transport's own default is a whole second

logger = logging.getLogger(__name__)


def make_celery(redis_url: str) -> Celery:
    """The application that sends and, in a worker, receives. Empty: the in-memory broker."""
    app = Celery("peerpath", set_as_current=False)
    app.conf.update(
        broker_url=redis_url or "memory://localhost",
        broker_transport_options=(
            # A message that is not acknowledged by then is delivered again; claims make it harmless.
            {"visibility_timeout": settings.VISIBILITY_S, "socket_connect_timeout": 3}
            if redis_url
            else {"polling_interval": _POLLING_INTERVAL_S}
        ),
        # Without it Celery accepts any certificate.
        broker_use_ssl=_CHECKED if redis_url.startswith("rediss://") else None,
        task_publish_retry_policy={"max_retries": 1, "interval_start": 0.1},
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
    )
    return app


celery = make_celery(settings.REDIS_URL)


def send_run_after_commit(run_id: UUID) -> None:
    """Once the transaction that made the run is committed, so that the worker finds it."""
    transaction.on_commit(lambda: send_run(run_id))


def send_run(run_id: UUID) -> bool:
    """Gives the run's id to the broker and notes when; False when no broker took it."""
    try:
        # The id of the request that asked for it, so that the worker's log can name it.
        headers = {REQUEST_ID: logs.current(REQUEST_ID)}
        celery.send_task(RUN_TASK, args=[str(run_id)], headers=headers)
    except (OperationalError, OSError) as error:
        logger.warning("run %s waits in the database, the broker is out of reach: %s", run_id, error)
        return False
    Run.objects.filter(pk=run_id).update(sent_at=timezone.now())
    logger.info("run sent to the workers", extra={"run_id": str(run_id)})
    return True
