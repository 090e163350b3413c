"""Keys of this test alone: one that changes them would change them for tests beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _own_keys(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
