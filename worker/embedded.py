"""Worker and reconciler as threads of the web process, for one machine without Redis.

Started in gunicorn's post_worker_init: after the fork, in the one process whose in-memory queue the
web application fills. Never in AppConfig.ready, where every command would start one.
"""

import threading
from dataclasses import dataclass

from worker import lease, reconciler
from worker.celery_app import app


@dataclass(frozen=True, slots=True)
class Embedded:
    """The running threads. stop: runs are stopped on their machines and handed back, and no new one is
    started."""

    stopping: threading.Event
    controller: object
    threads: tuple[threading.Thread, ...]

    def stop(self, timeout_s: float = 5.0) -> None:
        lease.drain(0)
        self.stopping.set()
        self.controller.stop()  # type: ignore[attr-defined]
        for thread in self.threads:
            thread.join(timeout_s)


def start() -> Embedded:
    controller = app.WorkController(
        app=app,
        pool="threads",
        concurrency=4,
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
        hostname="embedded@localhost",
    )
    stopping = threading.Event()
    threads = (
        threading.Thread(target=controller.start, name="worker", daemon=True),
        threading.Thread(target=reconciler.reconcile_until, args=(stopping,), name="reconciler", daemon=True),
    )
    for thread in threads:
        thread.start()
    return Embedded(stopping, controller, threads)
