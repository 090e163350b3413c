"""A small OpenAI-compatible streaming server on loopback, with the faults that real ones have."""

from __future__ import annotations

import gzip
import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, cast


@dataclass
class Engine:
    """How the server behaves. step_s: between two tokens. per_event: tokens in one event. piece: bytes
    of one HTTP chunk; 0: an event. models: those it lists; it takes "tiny" whatever it lists. stops_at:
    tokens after which it stops by itself.

    fault: "", "drop" (ends after three events), "429", "malformed", "no_usage", "error", "no_done",
    "unmarked" (a reason to finish and the usage in one event, and no [DONE], as transformers serve has
    it), "whole" (no stream), "mute" (no text but in a chat), "chat_only", "strict" (refuses fields OpenAI
    does not have), "keyed". trace: what the profiler writes; None: no profiler was set up.
    admin_key: the profiler's own, as SGLang has it.
    """

    step_s: float = 0.004
    per_event: int = 1
    fault: str = ""
    busy: int | None = None
    text: str = "w"
    piece: int = 0
    models: tuple[str, ...] = ("tiny",)
    stops_at: int = 10**9
    admin_key: bool = False
    trace: dict[str, Any] | None = None
    hides: Path | None = None  # where it writes traces although it was asked for another folder
    also: Path | None = None  # where another engine writes at that moment
    trace_folder: Path | None = None
    port: int = 0
    prompts: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    most_at_once: int = 0
    now: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    pauses_ms: list[float] = field(default_factory=list)

    @property
    def pace_ms(self) -> float:
        """The mean pause before an event, as this machine kept it: step_s and what a busy one adds."""
        return statistics.fmean(self.pauses_ms)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(engine: Engine) -> Iterator[Engine]:
    server = _Server(("127.0.0.1", 0), _handler(engine))
    server.daemon_threads = True
    engine.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield engine
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is what some tests are about."""


def _handler(engine: Engine) -> type[BaseHTTPRequestHandler]:
    return cast(type[BaseHTTPRequestHandler], type("Handler", (_Handler,), {"engine": engine}))


class _Handler(BaseHTTPRequestHandler):
    engine: ClassVar[Engine]
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            rows = [{"id": name, "owned_by": "sglang"} for name in self.engine.models]
            self._answer(200, {"object": "list", "data": rows})
        elif self.path == "/metrics" and self.engine.busy is not None:
            self._answer(200, f'sglang:num_running_reqs{{model="tiny"}} {self.engine.busy}.0\n')
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self.engine.asked.append(self.path)
        if self.path in ("/v1/completions", "/v1/chat/completions"):
            self._complete(asked)
        elif self.engine.admin_key and self.path == "/start_profile":
            self._answer(401, {"error": "Unauthorized"})
        elif self.engine.trace is not None and self.path == "/start_profile":
            self.engine.trace_folder = self.engine.hides or Path(asked["output_dir"])
            self._answer(200, "Start profiling.\n")
        elif self.engine.trace is not None and self.path == "/stop_profile":
            self._write_traces()
            self._answer(200, "Stop profiling.\n")
        else:
            self._answer(404, {})

    def _write_traces(self) -> None:
        assert self.engine.trace_folder
        for folder in filter(None, (self.engine.also, self.engine.trace_folder)):
            folder.mkdir(exist_ok=True, parents=True)
            for rank in (1, 0):
                said = {**(self.engine.trace or {}), "distributedInfo": {"rank": rank}}
                path = folder / f"1700000000.5-TP-{rank}.trace.json.gz"
                path.write_bytes(gzip.compress(json.dumps(said, indent=1).encode()))

    def _answer(self, status: int, body: Any) -> None:
        raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _complete(self, asked: dict[str, Any]) -> None:
        engine = self.engine
        chat = self.path.startswith("/v1/chat")
        if engine.fault == "chat_only" and not chat:
            return self._answer(404, {})
        if engine.fault == "keyed" and self.headers.get("Authorization") != "Bearer sesame":
            return self._answer(401, {"error": {"message": "no such key: " + "sesame"}})
        if engine.fault == "strict" and "ignore_eos" in asked:
            return self._answer(422, {"detail": "Unexpected fields: {'ignore_eos'}"})
        if asked["model"] != "tiny":
            message = f"The model `{asked['model']}` does not exist."
            return self._answer(404, {"error": {"message": message, "code": 404}})
        if engine.fault == "whole":
            return self._answer(200, {"choices": [{"text": "w", "finish_reason": "length"}]})
        prompt = asked["messages"][0]["content"] if chat else asked["prompt"]
        with engine.lock:
            engine.prompts.append(prompt)
            first = len(engine.prompts) == 1
            engine.now += 1
            engine.most_at_once = max(engine.most_at_once, engine.now)
        try:
            if engine.fault == "429" and not first:
                return self._answer(429, {"error": {"message": "the queue is full"}})
            tokens = min(int(asked["max_tokens"]), engine.stops_at)
            spared = first and engine.fault not in ("unmarked", "mute")
            self._stream(prompt, tokens, chat, "" if spared else engine.fault)
        finally:
            with engine.lock:
                engine.now -= 1
        return None

    def _stream(self, prompt: str, tokens: int, chat: bool, fault: str) -> None:
        engine = self.engine
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if chat:
            self._event(json.dumps({"choices": [{"delta": {"role": "assistant", "content": ""}}]}))
        for sent, given in enumerate(range(0, tokens, engine.per_event)):
            began = time.monotonic()
            time.sleep(engine.step_s)
            engine.pauses_ms.append(1000 * (time.monotonic() - began))
            if fault == "drop" and sent == 3:
                self.close_connection = True
                return
            text = engine.text * min(engine.per_event, tokens - given)
            text = "" if fault == "mute" and not chat else text
            delta = {"delta": {"content": text}} if chat else {"text": text}
            if fault == "malformed" and sent == 2:
                self._event('{"choices": [{"te')
            elif fault == "error" and sent == 2:
                self._event(json.dumps({"error": {"message": "out of memory"}}))
            else:
                self._event(json.dumps({"choices": [delta]}, ensure_ascii=False))
        self._finish(fault, {"prompt_tokens": 2 * len(prompt.split()), "completion_tokens": tokens})

    def _finish(self, fault: str, usage: dict[str, int]) -> None:
        last = {"choices": [{"text": "", "delta": {}, "finish_reason": "length"}]}
        if fault == "unmarked":
            self._event(json.dumps({**last, "usage": usage}))
        elif fault != "no_done":
            self._event(json.dumps(last))
            if fault != "no_usage":
                self._event(json.dumps({"choices": [], "usage": usage}))
            self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: str) -> None:
        raw = f": keep-alive\n\ndata: {data}\r\n\r\n".encode()
        size = self.engine.piece or len(raw)
        for piece in (raw[i : i + size] for i in range(0, len(raw), size)):
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
