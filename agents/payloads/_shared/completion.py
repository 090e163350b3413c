"""One streamed completion: the arrival of its text, and its tokens by the server's usage."""

import random
import time

from endpoint import PATHS, WHOLE_LENGTH, Failed, choice_of
from lines import Refusal

# Failures which show that a path is missing, or that another kind of request may work.
ABSENT = ("HTTP 404", "HTTP 405", "HTTP 501")
REFUSED = ("HTTP 400", "HTTP 422", "an answer without text", "an answer that is no stream")
WORDS = "river stone window market letter garden winter engine paper bridge silver morning"


class Answer:
    """Times by time.perf_counter. arrivals: of every event with text. prompt_tokens and completion_tokens: from the
    server's usage; None: it sent none, and events are no tokens."""

    def __init__(self, started):
        self.started = started
        self.arrivals = []
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = None

    @property
    def ttft_ms(self):
        return (self.arrivals[0] - self.started) * 1e3

    @property
    def tpot_ms(self):
        """Milliseconds for each token after the first; None when unknown."""
        if not self.completion_tokens or self.completion_tokens < 2 or len(self.arrivals) < 2:
            return None
        return (self.arrivals[-1] - self.arrivals[0]) * 1e3 / (self.completion_tokens - 1)

    @property
    def gaps_ms(self):
        return [(self.arrivals[i] - self.arrivals[i - 1]) * 1e3 for i in range(1, len(self.arrivals))]


class Caller:
    """Asks this endpoint for completions: by the path and the extra fields that it accepts."""

    def __init__(self, endpoint, model, path=PATHS[0], extra=WHOLE_LENGTH):
        self.endpoint, self.model, self.path, self.extra = endpoint, model, path, extra

    def __call__(self, prompt, tokens):
        """The whole answer. Raises Failed."""
        answer = Answer(time.perf_counter())
        for arrival, event in self.events(prompt, tokens):
            if _has_text(event):
                answer.arrivals.append(arrival)
            _note_usage(answer, event.get("usage"))
        if not answer.arrivals:
            raise Failed("an answer without text")
        return answer

    def arrivals(self, prompt, tokens):
        """The arrival of each event with text. Raises Failed."""
        return (arrival for arrival, event in self.events(prompt, tokens) if _has_text(event))

    def events(self, prompt, tokens):
        chat = self.path == PATHS[1]
        prompt_body = {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
        body = {
            "model": self.model,
            "max_tokens": tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **prompt_body,
            **self.extra,
        }
        return self.endpoint.stream(self.path, body)


def _has_text(event):
    choice = choice_of(event)
    delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
    texts = (choice.get("text"), *(delta.get(k) for k in ("content", "reasoning_content", "reasoning")))
    return any(isinstance(text, str) and text for text in texts)


def _note_usage(answer, usage):
    if not isinstance(usage, dict):
        return
    for name in ("prompt_tokens", "completion_tokens"):
        if isinstance(usage.get(name), int):
            setattr(answer, name, usage[name])
    details = usage.get("prompt_tokens_details")
    if isinstance(details, dict) and isinstance(details.get("cached_tokens"), int):
        answer.cached_tokens = details["cached_tokens"]


def caller_for(endpoint, model):
    """(Caller, its first answer): the first kind of request that this endpoint accepts.

    Raises Refusal when none works.
    """
    problems = []
    for path in PATHS:
        for extra in (WHOLE_LENGTH, {}):
            caller = Caller(endpoint, model, path, extra)
            try:
                return caller, caller(prompt_of(200, 0, 0), 16)
            except Failed as failed:
                last = failed
            if str(last) not in (*ABSENT, *REFUSED):
                raise _no_first(last)
        problems.append(last)
    raise _no_first(next((p for p in problems if str(p) not in ABSENT), problems[0]))


def _no_first(failed):
    fix = "look at the engine's own log"
    if str(failed) in ("HTTP 401", "HTTP 403"):
        fix = "give --key-file with a file on this machine that holds the engine's key"
    return Refusal(f"a first short request failed: {failed.whole}", fix)


def prompt_of(words, seed, number):
    """The same text for the same seed and number. Other texts differ from the first word on, so that no cache of
    prefixes answers for the engine."""
    draw = random.Random(f"{seed}/{number}")
    return " ".join([f"{seed}.{number}", *draw.choices(WORDS.split(), k=max(1, words))])
