"""Logs: one line an entry, for people or as JSON, with what it belongs to and without the tokens of links,
which are addresses that open by themselves."""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

# Django names the path of a request it refuses: a failed CSRF check, a 4xx answer, an error.
_TOKEN = re.compile(r"(/(?:welcome|link)/)[^/\s\"'?]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# What an entry may carry beside its message, and nothing else: whatever `extra` a library gives may be
# an object that knows a secret.
FIELDS = ("request_id", "task_id", "run_id", "method", "path", "status", "duration_ms", "failure")
_belongs_to: ContextVar[dict[str, str]] = ContextVar("belongs_to", default={})  # noqa: B039 never changed


@contextmanager
def belonging_to(**ids: str) -> Iterator[None]:
    """Entries made meanwhile, in this thread, carry these ids: request_id, task_id, run_id."""
    token = _belongs_to.set(_belongs_to.get() | {name: i for name, i in ids.items() if i})
    try:
        yield
    finally:
        _belongs_to.reset(token)


def current(name: str) -> str:
    return _belongs_to.get().get(name, "")


class WithIds(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in _belongs_to.get().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class WithoutTokens(logging.Filter):
    """Blanks the tokens in the finished message, in its path and in a traceback, of every logger."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _TOKEN.sub(r"\1…", record.getMessage()), ()
        if path := getattr(record, "path", ""):
            record.path = _TOKEN.sub(r"\1…", path)
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = _TOKEN.sub(r"\1…", record.exc_text)
        return True


class AsLine(logging.Formatter):
    """Lines for people, with the ids at the end. Text from a request cannot begin a line of its own, and writes no
    control codes to a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 logging's name
        fields = _fields(record)
        line = super().formatMessage(record)
        suffix = f" [{' '.join(f'{n}={v}' for n, v in fields.items())}]" if fields else ""
        return _CONTROL.sub(lambda one: ascii(one[0])[1:-1], line + suffix)


class AsJson(logging.Formatter):
    """One object a line; a traceback is a field of it, so that it stays one line."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            entry["traceback"] = record.exc_text
        return json.dumps(entry, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}


def configuration(*, level: str, form: str) -> dict[str, Any]:
    """For logging.config.dictConfig."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"ids": {"()": "webapp.logs.WithIds"}, "tokens": {"()": "webapp.logs.WithoutTokens"}},
        "formatters": {
            "line": {"()": "webapp.logs.AsLine", "format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
            "json": {"()": "webapp.logs.AsJson"},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form, "filters": ["ids", "tokens"]}},
        "root": {"handlers": ["stderr"], "level": level},
        # A connection's every step, with user and host names, says nothing that a run does not say.
        "loggers": {
            "asyncssh": {"level": "WARNING"},
            "botocore": {"level": "WARNING"},
            "gunicorn.error": {"propagate": True, "level": "WARNING"},
        },
    }
