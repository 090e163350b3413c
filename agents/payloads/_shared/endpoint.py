"""An engine's OpenAI-compatible endpoint: plain requests, and streamed completions with arrival times."""

import http.client
import json
import ssl
import time
from pathlib import Path
from urllib.parse import urlsplit

from lines import Refusal

PORTS = (30000, 8000)  # SGLang's and vLLM's own defaults
MOST_LINE = 1 << 20  # bytes of one event's line
PIECE = 1 << 16
# Both engines accept these besides the OpenAI fields; other endpoints get requests without them.
WHOLE_LENGTH = {"ignore_eos": True}
PATHS = ("/v1/completions", "/v1/chat/completions")


class Failed(Exception):  # noqa: N818
    """A request without a whole answer. The text is the kind of failure, short enough to count;
    detail: the engine's own words about it, if any."""

    def __init__(self, kind, detail=""):
        super().__init__(kind)
        self.detail = detail

    @property
    def whole(self):
        return ": ".join(filter(None, (str(self), self.detail)))


class Endpoint:
    """url: "http://127.0.0.1:30000", with or without a last /v1. key: sent as a bearer token.
    stall: seconds of silence after which a request has failed."""

    def __init__(self, url, key="", stall=120.0):
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Refusal(f"{url!r} is no address", "give --url http://127.0.0.1:30000")
        self.parts, self.stall = parts, stall
        self.prefix = parts.path.rstrip("/")
        if self.prefix.endswith("/v1"):
            self.prefix = self.prefix[:-3]
        self.headers = {"Content-Type": "application/json", "Connection": "close"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"

    @property
    def url(self):
        return f"{self.parts.scheme}://{self.parts.netloc}{self.prefix}"

    def _connect(self, method, path, body, stall):
        if self.parts.scheme == "https":
            trust = ssl.create_default_context()
            connection = http.client.HTTPSConnection(self.parts.hostname, self.parts.port, timeout=stall, context=trust)
        else:
            connection = http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=stall)
        sent = None if body is None else json.dumps(body).encode()
        connection.request(method, self.prefix + path, sent, self.headers)
        return connection

    def ask(self, method, path, body=None, stall=None):
        """(status, answer). Raises OSError or HTTPException when nothing answers."""
        connection = self._connect(method, path, body, stall or self.stall)
        try:
            response = connection.getresponse()
            return response.status, response.read(64 * MOST_LINE)
        finally:
            connection.close()

    def stream(self, path, body):
        """(arrival, event) of each event, arrival by time.perf_counter. Raises Failed."""
        try:
            connection = self._connect("POST", path, body, self.stall)
        except (OSError, http.client.HTTPException) as error:
            raise Failed(_failure_kind(error)) from None
        try:
            response = connection.getresponse()
            if response.status != 200:
                raise refused(response.status, response.read(PIECE))
            if response.headers.get_content_type() == "application/json":
                raise Failed("an answer that is no stream")
            yield from _json_events(events(response))
        except (OSError, http.client.HTTPException) as error:
            raise Failed(_failure_kind(error)) from None
        finally:
            connection.close()


def events(response):
    """(arrival, data) of server-sent events, as the WHATWG HTML standard frames them.

    arrival: when the first line of the event was complete. An event without its end does not count.
    """
    data, arrival = [], 0.0
    for now, line in _lines(response):
        if line.startswith(b"data:"):
            arrival = arrival if data else now
            data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and data:
            yield arrival, b"\n".join(data)
            data = []


def _lines(response):
    """(arrival, line) without its end. Raises Failed, and IncompleteRead when the connection broke; readline would
    see an end there.

    Lines are split as bytes: a token may hold U+2028 or U+0085, which split text but not events, and a piece may end
    inside a character.
    """
    rest = b""
    while True:
        piece = response.read1(PIECE)
        now = time.perf_counter()
        if not piece:
            return
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > MOST_LINE:
            raise Failed("an event without end")
        for line in whole:
            yield now, line.rstrip(b"\r")


def _json_events(events):
    """The JSON of each event until [DONE], which some engines do not send. A stream that ends without it and without
    a finish_reason was dropped."""
    finished = False
    for arrival, data in events:
        if data.strip() == b"[DONE]":
            return
        try:
            event = json.loads(data)
        except ValueError:
            raise Failed("a malformed event") from None
        if not isinstance(event, dict):
            raise Failed("a malformed event")
        if "error" in event:
            raise Failed("an error inside the stream", words_of(data))
        finished = finished or isinstance(choice_of(event).get("finish_reason"), str)
        yield arrival, event
    if not finished:
        raise Failed("the stream ended before its end")


def choice_of(event):
    """The first choice of an event; {} when it has none."""
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def refused(status, raw):
    """The Failed of an answer that is not 200. Words about a key may contain it and are left out."""
    return Failed(f"HTTP {status}", "" if status in (401, 403) else words_of(raw))


def words_of(raw):
    """An engine's words about a request: OpenAI's {"error": {"message": …}} or FastAPI's {"detail": …}; "" for other
    answers."""
    try:
        answer = json.loads(raw)
    except ValueError:
        return ""
    for name in ("error", "detail", "message"):
        answer = answer.get(name, answer) if isinstance(answer, dict) else answer
    answer = answer[0] if isinstance(answer, list) and answer else answer
    answer = answer.get("msg") if isinstance(answer, dict) else answer
    return answer[:200] if isinstance(answer, str) else ""


def _failure_kind(error):
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return "no data for too long"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, (ConnectionError, http.client.IncompleteRead)):
        return "the connection broke"
    return type(error).__name__


def read_key(path):
    if not path:
        return ""
    try:
        return Path(path).expanduser().read_text().strip()
    except OSError as error:
        raise Refusal(f"the key file cannot be read: {error}", "name a file there") from None


def find(url, key, stall, model=""):
    """(endpoint, model, engine): the given endpoint, else one at an engine's usual port. model: its name; an endpoint
    that loads models on demand may not list it."""
    tried = [url] if url else [f"http://127.0.0.1:{port}" for port in PORTS]
    problems = []
    for address in tried:
        endpoint = Endpoint(address, key, stall)
        try:
            status, body = endpoint.ask("GET", "/v1/models", stall=10)
        except (OSError, http.client.HTTPException) as error:
            problems.append(f"{address}: {_failure_kind(error)}")
            continue
        listed = _models(body) if status == 200 else {}
        chosen = model or next(iter(listed), "")
        if chosen and (listed or url):
            return endpoint, chosen, listed.get(chosen, "")
        problems.append(f"{address}: {'it lists no model' if status == 200 else f'HTTP {status}'}")
    fix = (
        "start the engine, or give --url; if it wants a key, --key-file with a file on this machine;"
        " if it lists no model, --model"
    )
    raise Refusal("no engine answers /v1/models: " + ", ".join(problems), fix)


def _models(body):
    """{name: owner} of the endpoint's models; {} when it lists none."""
    try:
        rows = json.loads(body)["data"]
        return {row["id"]: str(row.get("owned_by", "")) for row in rows if row["id"]}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}


def running(endpoint):
    """Requests in progress by the engine's own metrics; None when it publishes none."""
    try:
        status, body = endpoint.ask("GET", "/metrics", stall=10)
    except (OSError, http.client.HTTPException):
        return None
    names = (b"vllm:num_requests_running", b"sglang:num_running_reqs")
    lines = [line for line in body.splitlines() if line.startswith(names)] if status == 200 else []
    try:
        return sum(float(line.split()[-1]) for line in lines) if lines else None
    except ValueError:
        return None
