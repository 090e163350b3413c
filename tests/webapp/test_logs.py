"""Log entries: one line each, with what they belong to, and nothing that opens a door."""

from __future__ import annotations

import io
import json
import logging
import logging.config
from collections.abc import Iterator

import pytest
from django.test import Client

from webapp import logs


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a handler of `configuration(form="json")` writes for a logger of its own."""
    told = logs.configuration(level="INFO", form="json")
    stream = io.StringIO()
    told["handlers"]["stderr"]["stream"] = stream
    handlers, level = logging.root.handlers[:], logging.root.level
    logging.config.dictConfig(told)
    yield stream
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def entries(written: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_an_entry_names_what_it_belongs_to_and_nothing_unasked(written: io.StringIO) -> None:
    extra = {"status": 200, "password": "hunter2", "run_id": "the-run"}
    with logs.belonging_to(request_id="r1", run_id="another"), logs.belonging_to(task_id="t1"):
        logging.getLogger("x").info("%s and\nmore", "done", extra=extra)
    logging.getLogger("x").info("after")
    first, after = entries(written)
    assert first["message"] == "done and\nmore"
    assert (first["request_id"], first["task_id"], first["run_id"]) == ("r1", "t1", "the-run")
    assert first["status"] == 200
    assert "hunter2" not in written.getvalue()
    assert "request_id" not in after


def test_a_traceback_is_a_field_and_tokens_are_blanked(written: io.StringIO) -> None:
    try:
        raise ValueError("/welcome/the-token-of-a-link is gone")
    except ValueError:
        logging.getLogger("x").exception("at /link/another-token?x=1")
    (entry,) = entries(written)
    assert "ValueError" in str(entry["traceback"])
    assert "the-token" not in written.getvalue()
    assert "another-token" not in written.getvalue()


def test_what_was_asked_for_begins_no_line_of_its_own() -> None:
    line = logs.AsLine("%(levelname)s %(message)s")
    asked = "/x\n2026-11-30 WARNING carol\r\x1b[2J\x9b\u2028é"
    told = {"msg": "%s", "args": (asked,), "levelname": "INFO", "path": asked}
    shown = line.format(logging.makeLogRecord(told))
    assert shown.isprintable()
    assert shown.startswith("INFO /x\\n2026-11-30 WARNING carol\\r\\x1b[2J\\x9b\\u2028é [path=/x\\n")


@pytest.mark.django_db
def test_a_request_has_an_id_and_an_entry_without_its_query(client: Client, written: io.StringIO) -> None:
    answer = client.get("/sign-in?next=/sessions/something-private")
    (entry,) = [e for e in entries(written) if e.get("path") == "/sign-in"]
    assert entry["request_id"] == answer.headers["X-Request-ID"]
    assert (entry["method"], entry["status"]) == ("GET", 200)
    assert "private" not in written.getvalue()
    sent = client.get("/sign-in", headers={"X-Request-ID": "chosen-by-the-client"})
    assert sent.headers["X-Request-ID"] != "chosen-by-the-client"


@pytest.mark.django_db
@pytest.mark.parametrize("place", ["welcome", "link"])
def test_a_request_for_a_link_leaves_its_token_nowhere(client: Client, written: io.StringIO, place: str) -> None:
    client.get(f"/{place}/the-token-of-a-link")
    assert [e["path"] for e in entries(written) if "path" in e] == [f"/{place}/…"]
    assert "the-token" not in written.getvalue()
