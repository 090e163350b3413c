"""What is loaded is set aside, and garbage that comes afterwards does not lie about."""

from __future__ import annotations

import subprocess
import sys

# A process of its own: what it sets aside stays so.
LOADED_THEN_KEPT = """
import gc
loaded = [[] for _ in range(400_000)]
from worker.gc_freeze import freeze_loaded
freeze_loaded()
before = gc.get_stats()[2]["collections"]
kept = [[] for _ in range(30_000)]
print(gc.get_freeze_count() > len(loaded), gc.get_stats()[2]["collections"] - before)
"""


def test_full_collections_come_although_much_was_loaded() -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOADED_THEN_KEPT], capture_output=True, text=True, check=True
    ).stdout.split()
    assert said[0] == "True"
    assert int(said[1]) >= 1
