"""What must not stand in a log: the tokens of links, which are addresses that open by themselves."""

from __future__ import annotations

import logging
import re

# Django names the path of a request it refuses: a failed CSRF check, a 4xx answer, an error.
_TOKEN = re.compile(r"(/(?:welcome|link)/)[^/\s\"'?]+")


class WithoutTokens(logging.Filter):
    """Blanks the tokens in the finished message and in a traceback, whoever logs it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _TOKEN.sub(r"\1…", record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = _TOKEN.sub(r"\1…", record.exc_text)
        return True
