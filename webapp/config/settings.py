"""Settings, all from the environment; the defaults serve one person on one machine."""

from __future__ import annotations

from pathlib import Path

BASE_DIR = Path(__file__).resolve().parents[2]
SECRET_KEY = "not-secret-until-set"
USE_TZ = True
