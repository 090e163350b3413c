"""The lease and the cancel flag of a run, checked while it runs."""

import logging
import threading
import time
from dataclasses import dataclass, field
from enum import Enum

from django.db import DatabaseError, connection

from webapp.runs import lifecycle

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
RENEW_EVERY_S = lifecycle.LEASE.total_seconds() / 6  # a few slow writes do not lose a run

# Set when this process is asked to end: no run is begun any more.
shutting_down = threading.Event()
# Set a while later: what still runs is stopped on its machine and handed back.
handing_back = threading.Event()


def drain(seconds: float) -> None:
    """Starts no more runs, and gives running ones this many seconds to end by themselves."""
    shutting_down.set()
    if not seconds:
        handing_back.set()
        return
    timer = threading.Timer(seconds, handing_back.set)
    timer.daemon = True
    timer.start()


class Stop(Enum):
    """Why our side stops a run."""

    ASKED = "asked"
    FENCED = "fenced"
    SHUTDOWN = "shutdown"


@dataclass(slots=True)
class LeaseKeeper:
    claim: lifecycle.Claim
    reason: Stop | None = None
    _looked: float = field(default_factory=time.monotonic)
    _renewed: float = field(default_factory=time.monotonic)
    _tried: float = 0.0

    def must_stop(self) -> bool:
        """Call often. Once true it stays so, and `reason` says why. The lease is renewed all the same: a
        machine may take longer to be rid of a run than a lease lasts."""
        if self.reason is None and handing_back.is_set():
            self.reason = Stop.SHUTDOWN  # at once, also while the database says nothing
        else:
            reason = self._check()
            self.reason = self.reason or reason
        return self.reason is not None

    def _check(self) -> Stop | None:
        try:
            return self._check_database()
        except DatabaseError as error:
            # The reconciler has no database either; the next check decides.
            logger.warning("the lease of run %s could not be renewed: %s", self.claim.run_id, error)
            connection.close()
        return None

    def _check_database(self) -> Stop | None:
        now = time.monotonic()
        if now - max(self._renewed, self._tried) >= RENEW_EVERY_S:
            self._tried = now
            if not lifecycle.renew(self.claim):
                return Stop.FENCED
            self._renewed = now
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            if lifecycle.cancel_requested(self.claim):
                return Stop.ASKED
        return None
