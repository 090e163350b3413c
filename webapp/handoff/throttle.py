"""Slows down guessing addresses of links, and flooding through one that is known."""

import hashlib
from uuid import UUID

from django.http import HttpRequest

from webapp.accounts.models import Tally

WRONG_LINKS, WRONG_WAIT_S = 20, 60
ANSWERS, FETCHES, ANSWERS_WAIT_S = 30, 120, 600
# All that one link may bring in, in bytes: three times what one request may hold.
LARGEST_TOTAL_BYTES = 300 * 2**20


def guesses_too_often(request: HttpRequest) -> bool:
    """Counts one wrong link or script; True when there were too many from this address within a minute.

    Only what is wrong is counted and refused. Behind a proxy everybody has one address, and a right link
    must open whatever the others tried; its token alone is beyond guessing at any pace.
    """
    address = hashlib.sha256(request.META.get("REMOTE_ADDR", "").encode()).hexdigest()
    return not Tally.counts(f"wrong-link:{address}", most=WRONG_LINKS, wait_s=WRONG_WAIT_S)


def may_answer(link: UUID) -> bool:
    """Counts one answer; False when there were too many within ten minutes."""
    return Tally.counts(f"answers:{link}", most=ANSWERS, wait_s=ANSWERS_WAIT_S)


def may_fetch(link: UUID) -> bool:
    """Counts one script, as each download is kept; False when there were too many within ten minutes."""
    return Tally.counts(f"fetches:{link}", most=FETCHES, wait_s=ANSWERS_WAIT_S)
