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
# Both engines take these beside the OpenAI fields; what refuses them is asked without.
WHOLE_LENGTH = {"ignore_eos": True}
PATHS = ("/v1/completions", "/v1/chat/completions")


class Failed(Exception):  # noqa: N818
    """A request that brought no whole answer. The text is a kind of failure, short enough to count."""


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

    def _open(self, method, path, body, stall):
        if self.parts.scheme == "https":
            trust = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                self.parts.hostname, self.parts.port, timeout=stall, context=trust
            )
        else:
            connection = http.client.HTTPConnection(
                self.parts.hostname, self.parts.port, timeout=stall
            )
        sent = None if body is None else json.dumps(body).encode()
        connection.request(method, self.prefix + path, sent, self.headers)
        return connection

    def ask(self, method, path, body=None, stall=None):
        """(status, answer). Raises OSError or HTTPException when nothing answers."""
        connection = self._open(method, path, body, stall or self.stall)
        try:
            response = connection.getresponse()
            return response.status, response.read(64 * MOST_LINE)
        finally:
            connection.close()

    def stream(self, path, body):
        """(arrival, event) of each event, arrival by time.perf_counter. Raises Failed."""
        try:
            connection = self._open("POST", path, body, self.stall)
        except (OSError, http.client.HTTPException) as error:
            raise Failed(_kind(error)) from None
        try:
            response = connection.getresponse()
            if response.status != 200:
                raise Failed(f"HTTP {response.status}")
            yield from _said(events(response))
        except (OSError, http.client.HTTPException) as error:
            raise Failed(_kind(error)) from None
        finally:
            connection.close()


def events(response):
    """(arrival, data) of server-sent events, as the WHATWG HTML standard frames them.

    Lines are split as bytes: a token may hold U+2028 or U+0085, at which text splits and an event does
    not. arrival: when the first line of the event was whole. An event cut off by the end is none.
    """
    data, arrival = [], 0.0
    while True:
        line = response.readline(MOST_LINE)
        now = time.perf_counter()
        if not line:
            return
        if not line.endswith(b"\n") and len(line) >= MOST_LINE:
            raise Failed("an event without end")
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            arrival = arrival if data else now
            data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and data:
            yield arrival, b"\n".join(data)
            data = []


def _said(found):
    """The JSON of each event until [DONE]; a stream that ends without it was dropped."""
    for arrival, data in found:
        if data.strip() == b"[DONE]":
            return
        try:
            said = json.loads(data)
        except ValueError:
            raise Failed("a malformed event") from None
        if not isinstance(said, dict):
            raise Failed("a malformed event")
        if "error" in said:
            raise Failed("an error inside the stream")
        yield arrival, said
    raise Failed("the stream ended before its end")


def _kind(error):
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


def find(url, key, stall):
    """(endpoint, model, engine): the one asked for, else what answers at an engine's usual port."""
    tried = [url] if url else [f"http://127.0.0.1:{port}" for port in PORTS]
    problems = []
    for address in tried:
        endpoint = Endpoint(address, key, stall)
        try:
            status, body = endpoint.ask("GET", "/v1/models", stall=10)
            model = json.loads(body)["data"][0] if status == 200 else None
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError) as error:
            problems.append(f"{address}: {type(error).__name__}")
            continue
        if isinstance(model, dict) and isinstance(model.get("id"), str):
            return endpoint, model["id"], str(model.get("owned_by", ""))
        problems.append(f"{address}: HTTP {status}")
    fix = (
        "start the engine, or give --url; if it wants a key, --key-file with a file on this machine"
    )
    raise Refusal("no engine answers /v1/models: " + ", ".join(problems), fix)


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
