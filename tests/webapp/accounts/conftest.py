"""Keys of this test alone: one that changes them would change them for tests beside it. And a clock that
stands still, for codes that are good for half a minute."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _own_keys(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def clock_in_mid_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of the half minute of one code: however long a test takes, none of its codes grows old."""
    moment = time.time() // 30 * 30 + 15
    monkeypatch.setattr(time, "time", lambda: moment)
