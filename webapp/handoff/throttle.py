"""Slows down guessing addresses of links, and flooding through one that is known."""

from __future__ import annotations

import hashlib
from uuid import UUID

from django.core.cache import cache

WRONG_LINKS, WRONG_WAIT_S = 20, 60
ANSWERS, FETCHES, ANSWERS_WAIT_S = 30, 120, 600
# All that one link may bring in, in bytes: three times what one request may hold.
LARGEST_TOTAL_BYTES = 300 * 2**20


def may_guess(address: str) -> bool:
    """False when this address tried too many wrong links within a minute."""
    return int(cache.get(_wrong(address), 0)) < WRONG_LINKS


def guessed_wrong(address: str) -> None:
    cache.add(_wrong(address), 0, WRONG_WAIT_S)
    cache.incr(_wrong(address))


def may_answer(link: UUID) -> bool:
    """Counts one answer; False when there were too many within ten minutes."""
    return _counted(f"answers:{link}") <= ANSWERS


def may_fetch(link: UUID) -> bool:
    """Counts one script, as each download is kept; False when there were too many within ten minutes."""
    return _counted(f"fetches:{link}") <= FETCHES


def _counted(key: str) -> int:
    cache.add(key, 0, ANSWERS_WAIT_S)
    return int(cache.incr(key))


def _wrong(address: str) -> str:
    return f"wrong-link:{hashlib.sha256(address.encode()).hexdigest()}"
