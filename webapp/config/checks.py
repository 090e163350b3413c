"""What is looked at when Peerpath starts, beside the settings themselves."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from typing import Any

from django.core import checks

from webapp.config import environment

# Read before Python is chosen, or by what a run starts on its machine.
ELSEWHERE = {"PEERPATH_PYTHON", "PEERPATH_RUN", "PEERPATH_LISTEN", "PEERPATH_VERSION"}


@checks.register
def known_settings(**_: Any) -> list[checks.CheckMessage]:
    """A name that nobody reads is a slip of the pen: what was meant by it is not in force."""
    return list(_unknown(os.environ.keys() - environment.asked - ELSEWHERE))


def _unknown(names: set[str]) -> Iterator[checks.CheckMessage]:
    for name in sorted(name for name in names if name.startswith("PEERPATH_")):
        near = difflib.get_close_matches(name, environment.asked, 1)
        meant = f"Did you mean {near[0]}?" if near else "docs/deploying.md has all of them."
        yield checks.Warning(f"Nobody reads {name}.", hint=meant, id="peerpath.W001")
