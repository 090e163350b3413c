"""Real outputs of other people's machines, kept beside the checkout and never copied into it."""

from __future__ import annotations

from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
MEASUREMENTS = CORPUS.parent / "data"

NO_CORPUS = "no corpus beside this checkout"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
