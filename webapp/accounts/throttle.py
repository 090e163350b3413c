"""Slows down guessing: after five wrong passwords or tokens a name and address wait a minute."""

from __future__ import annotations

import hashlib
import unicodedata

from django.core.cache import cache

TRIES = 5
WAIT_S = 60


def _key(username: str, address: str) -> str:
    """One key for all ways of writing a name that sign in as the same person: blanks around it, and
    what Django's UsernameField makes equal (NFKC)."""
    name = unicodedata.normalize("NFKC", username[:200]).strip().casefold()
    return f"signin:{hashlib.sha256(f'{address} {name}'.encode()).hexdigest()}"


def may_try(username: str, address: str) -> bool:
    """Counts a try, before its password is looked at: many at once are not more than one by one."""
    key = _key(username, address)
    cache.add(key, 0, WAIT_S)
    return cache.incr(key) <= TRIES


def succeeded(username: str, address: str) -> None:
    cache.delete(_key(username, address))


def must_wait(name: str, address: str) -> bool:
    """Whether so much was wrong that nothing is looked at now."""
    return int(cache.get(_key(name, address), 0)) >= TRIES


def failed(name: str, address: str) -> None:
    """For what is used many times at once, so that only what was wrong counts."""
    key = _key(name, address)
    cache.add(key, 0, WAIT_S)
    try:
        cache.incr(key)
    except ValueError:  # it ended in between
        cache.add(key, 1, WAIT_S)
