"""A time as people say it."""

from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format

# (up to so many seconds, the unit's seconds, its word)
_UNITS = ((90 * 60, 60, "min"), (36 * 3600, 3600, "h"), (30 * 86400, 86400, "d"))


def time_ago(when: datetime) -> str:
    """ "3 min ago", "in 2 h"; a date where it is more than a month away."""
    seconds = (timezone.now() - when).total_seconds()
    if -60 < seconds < 60:
        return "just now"
    for most, unit, word in _UNITS:
        if abs(seconds) < most:
            amount = f"{abs(seconds) / unit:.0f} {word}"
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return date_format(when, "j M Y")
