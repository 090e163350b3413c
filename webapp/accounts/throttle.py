"""Slows down guessing. After five wrong passwords or tokens a name and address wait a minute. An address also waits
after sixty tries at any names, right ones too: many people may share one address.
"""

import hashlib
import unicodedata

from webapp.accounts.models import Tally

TRIES = 5
TRIES_OF_AN_ADDRESS = 60
WAIT_S = 60


def _key(username: str, address: str) -> str:
    """One key for all ways of writing a name that sign in as the same person: blanks around it, and
    what Django's UsernameField makes equal (NFKC)."""
    name = unicodedata.normalize("NFKC", username[:200]).strip().casefold()
    return f"signin:{hashlib.sha256(f'{address} {name}'.encode()).hexdigest()}"


def may_try(username: str, address: str) -> bool:
    """Counts a try, before its password is looked at: many at once are not more than one by one. A name
    that waits does not use up its address."""
    return Tally.counts(_key(username, address), most=TRIES, wait_s=WAIT_S) and Tally.counts(
        _key("", address), most=TRIES_OF_AN_ADDRESS, wait_s=WAIT_S
    )


def succeeded(username: str, address: str) -> None:
    Tally.start_again(_key(username, address))
