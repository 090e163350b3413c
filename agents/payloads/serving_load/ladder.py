"""One rung of the ladder: so many requests at once for a while, and their statistics."""

import statistics
import threading
import time

from completion import prompt_of
from endpoint import Failed
from lines import say

WARM_TOKENS = 8
SHORT = 0.95  # of the requested length: below it answers ended early
MOST_FAILURES = 5  # in a row: then a stream gives up


class Rung:
    """`concurrency` threads that each send one request after the other."""

    def __init__(self, call, concurrency, chosen, words):
        self.call, self.concurrency, self.chosen, self.words = call, concurrency, chosen, words
        self.answers, self.failures = [], {}
        self.left = chosen.requests or max(4, 2 * concurrency)
        self.sent = 0
        self.lock = threading.Lock()

    def warm_up(self):
        """Runs every stream once with few tokens: an engine compiles or captures at its first batch."""
        self._run_threads(lambda: self._try_request(self._next_number(), WARM_TOKENS, keep=False))

    def measure(self):
        """Runs the rung. Returns its first and last moment by time.perf_counter."""
        self.left = self.chosen.requests or max(4, 2 * self.concurrency)
        first = time.perf_counter()
        self.until = first + self.chosen.rung_seconds
        self._run_threads(self._run_stream)
        return first, time.perf_counter()

    def say_short(self):
        """Notes short answers: an engine that does not know ignore_eos may ignore it."""
        lengths = [a.completion_tokens for a in self.answers if a.completion_tokens is not None]
        output_tokens = self.chosen.output_tokens
        if lengths and statistics.fmean(lengths) < SHORT * output_tokens:
            mean = statistics.fmean(lengths)
            say(note=f"at {self.concurrency} at once answers had {mean:.0f} of {output_tokens} tokens")

    def _run_threads(self, task):
        threads = [threading.Thread(target=task, daemon=True) for _ in range(self.concurrency)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run_stream(self):
        failed, mine = 0, 0
        while failed < MOST_FAILURES and self._may_send(mine):
            mine += 1
            failed = 0 if self._try_request(self._next_number(), self.chosen.output_tokens, keep=True) else failed + 1
            if failed:
                time.sleep(0.2)

    def _may_send(self, mine):
        """Whether a stream may send: each sends at least one request, so that the rung has its concurrency."""
        with self.lock:
            self.left -= 1
            return mine == 0 or (self.left >= 0 and time.perf_counter() < self.until)

    def _next_number(self):
        with self.lock:
            self.sent += 1
            return self.concurrency * 100_000 + self.sent

    def _try_request(self, number, tokens, keep):
        try:
            answer = self.call(prompt_of(self.words, self.chosen.seed, number), tokens)
        except Failed as failed:
            with self.lock:
                kind = str(failed) if keep else f"{failed} (warm-up)"
                seen = self.failures.get(kind, 0)
                self.failures[kind] = seen + 1
            if failed.detail and not seen:
                say(note=f"at {self.concurrency} at once, {failed.whole}")
            return False
        if keep:
            with self.lock:
                self.answers.append(answer)
            say(request=number, concurrency=self.concurrency, **_figures(answer))
        return True


def _figures(answer):
    tpot_ms = answer.tpot_ms
    return {
        "ttft_ms": round(answer.ttft_ms, 3),
        "tpot_ms": None if tpot_ms is None else round(tpot_ms, 4),
        "seconds": round(answer.arrivals[-1] - answer.started, 4),
        "events": len(answer.arrivals),
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
    }


def row_of(rung, first, last, watts, client_s):
    """The row of a rung. Throughputs are over the whole rung, from the first request to the last token, as in the
    engines' own benchmarks. Without the server's usage there is no figure in tokens."""
    answers = rung.answers
    row = {
        "rung": True,
        "concurrency": rung.concurrency,
        "requests": len(answers),
        "errors": sum(rung.failures.values()),
        "failures": dict(rung.failures),
        "seconds": round(last - first, 3),
        "client_busy_percent": round(100 * client_s / (last - first), 1),
    }
    if not answers:
        return row
    row.update(spread("ttft", [answer.ttft_ms for answer in answers]))
    row.update(spread("itl", [gap for answer in answers for gap in answer.gaps_ms]))
    counted = all(a.completion_tokens is not None and a.prompt_tokens is not None for a in answers)
    return {**row, **_in_tokens(answers, last - first, watts)} if counted else row


def _in_tokens(answers, seconds, watts):
    output = sum(answer.completion_tokens for answer in answers)
    input_ = sum(answer.prompt_tokens for answer in answers)
    cached = [a.cached_tokens for a in answers if a.cached_tokens is not None]
    row = {
        "output_tokens_per_s": round(output / seconds, 4),
        "total_tokens_per_s": round((output + input_) / seconds, 4),
        "prompt_tokens": round(input_ / len(answers), 1),
        "completion_tokens": round(output / len(answers), 1),
        "tokens_per_event": round(output / sum(len(a.arrivals) for a in answers), 3),
        "cached_tokens": sum(cached) if cached else None,
        **spread("tpot", [a.tpot_ms for a in answers if a.tpot_ms is not None]),
    }
    if watts:
        row.update(power_w=round(watts, 1), tokens_per_joule=round(output / seconds / watts, 5))
    return row


def spread(name, samples):
    """Median, p95 and p99 in milliseconds; nothing without samples. By the nearest rank: with few samples the last
    two are the largest sample."""
    if not samples:
        return {}
    ordered = sorted(samples)

    def rank(share):
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {
        f"{name}_ms": round(statistics.median(ordered), 4),
        f"{name}_p95_ms": round(rank(0.95), 4),
        f"{name}_p99_ms": round(rank(0.99), 4),
    }
