"""What a worker looks after while a run is on: its lease and the cancel flag."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from enum import Enum

from webapp.triage import runs

LOOK_EVERY_S = 0.5
RENEW_EVERY_S = 5.0  # a sixth of the lease: a few slow writes do not lose a run

# Set when this process is asked to end: runs are stopped on their machines, not left behind.
shutting_down = threading.Event()


class Stop(Enum):
    """Why a run is stopped from our side."""

    ASKED = "asked"
    FENCED = "fenced"
    SHUTDOWN = "shutdown"


@dataclass(slots=True)
class Duties:
    claim: runs.Claim
    reason: Stop | None = None
    _looked: float = field(default_factory=time.monotonic)
    _renewed: float = field(default_factory=time.monotonic)

    def must_stop(self) -> bool:
        """Call often. Once true it stays so, and `reason` says why."""
        if self.reason is None:
            self.reason = self._look()
        return self.reason is not None

    def _look(self) -> Stop | None:
        if shutting_down.is_set():
            return Stop.SHUTDOWN
        now = time.monotonic()
        if now - self._renewed >= RENEW_EVERY_S:
            self._renewed = now
            if not runs.renew(self.claim):
                return Stop.FENCED
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            if runs.cancel_requested(self.claim):
                return Stop.ASKED
        return None
