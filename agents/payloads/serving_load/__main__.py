"""Loads a serving engine through its OpenAI-compatible endpoint, from the engine's machine.

Runs on the target by itself: Python 3.8 or newer, nothing else. It climbs a ladder of concurrencies; each rung has a
warm-up that does not count, then streams that send one request after the other. It prints a JSON line after each
request and each rung, first a header, last {"end": true}.

Prompts are drawn from --seed: the same seed repeats them exactly (and may then hit an engine's cache of prefixes);
without a seed each run has its own. The server's usage gives their number of tokens.
"""

import argparse
import sys
import time

from completion import caller_for
from endpoint import find, read_key, running
from ladder import Rung, row_of
from lines import Refusal, lost, say
from machine import card_settings, driver_version, program
from power import Power
from startup import leave_with, run_on_engine

SCHEMA = "peerpath.serving_load/1"
BUSY_PERCENT = 70  # of one core: above it the figures show this program, not the engine
OPTIONS = (
    ("--url", str, "", "the endpoint as this machine reaches it; default: ports 30000 and 8000"),
    ("--model", str, "", "its name in requests; default: the first that the endpoint lists"),
    ("--key-file", str, "", "a file on this machine that holds the endpoint's key"),
    ("--concurrency", str, "1,4,16,64", "requests at once, one rung each"),
    ("--input-tokens", int, 512, "about how long a prompt is"),
    ("--output-tokens", int, 128, "how many tokens are asked for"),
    ("--requests", int, 0, "of one rung; default twice its concurrency, at least 4"),
    ("--rung-seconds", float, 40.0, "after which no new request begins"),
    ("--stall-seconds", float, 120.0, "of silence, then a request has failed"),
    ("--seed", int, 0, "repeats the prompts of an earlier run"),
    ("--limit", float, 900.0, "seconds until it is killed"),
)


def options(argv):
    ask = argparse.ArgumentParser(description="Loads a serving engine, one concurrency after another.")
    for name, kind, default, text in OPTIONS:
        ask.add_argument(name, type=kind, default=default, help=text)
    ask.add_argument("--force", action="store_true", help="measure beside other requests")
    chosen = ask.parse_args(argv)
    try:
        chosen.rungs = sorted({int(word) for word in chosen.concurrency.split(",") if word.strip()})
    except ValueError:
        chosen.rungs = []
    if not chosen.rungs or not 1 <= chosen.rungs[0] <= chosen.rungs[-1] <= 1024:
        raise Refusal("no concurrency to measure", "give --concurrency 1,4,16 with figures up to 1024")
    if not (1 <= chosen.output_tokens <= 100_000 and 1 <= chosen.input_tokens <= 1_000_000):
        raise Refusal("a length in tokens is out of range", "give --input-tokens and --output-tokens")
    chosen.seed = chosen.seed or int(time.time())
    return chosen


def measured(chosen, argv):
    """Prints the whole ladder, in the process that is watched."""
    key = read_key(chosen.key_file)
    endpoint, model, engine = find(chosen.url, key, chosen.stall_seconds, chosen.model)
    busy = running(endpoint)
    if busy and not chosen.force:
        fix = "wait until the engine is idle, or give --force and accept figures beside other work"
        raise Refusal(f"the engine is working on {busy:.0f} requests", fix)
    call, first = caller_for(endpoint, model)
    _say_header(chosen, argv, endpoint, model, engine, call)
    _climb_ladder(chosen, call, _prompt_words(first, chosen.input_tokens))


def _say_header(chosen, argv, endpoint, model, engine, call):
    environment = {
        "endpoint": endpoint.url + call.path,
        "model": model,
        "engine": engine,
        "driver": driver_version(),
        **card_settings(),
        "seed": str(chosen.seed),
        "input_tokens": str(chosen.input_tokens),
        "output_tokens": str(chosen.output_tokens),
        **program(argv),
    }
    say(schema=SCHEMA, environment=environment)
    if not call.extra:
        say(note="this endpoint takes no ignore_eos: answers may end before their length")


def _prompt_words(first, tokens):
    """The number of words in a prompt of so many tokens, by the tokens of the first prompt."""
    if not first.prompt_tokens:
        say(note="the server sends no usage: no figure in tokens can be given", lost=True)
        return tokens
    return round(tokens * 200 / first.prompt_tokens)


def _climb_ladder(chosen, call, words):
    sys.setswitchinterval(0.0005)  # a thread that holds the interpreter delays other threads' arrivals
    power = Power()
    for concurrency in chosen.rungs:
        rung = Rung(call, concurrency, chosen, words)
        rung.warm_up()
        spent = time.process_time()
        first, last = rung.measure()
        client_s = time.process_time() - spent
        say(**row_of(rung, first, last, power.mean_w(first, last), client_s))
        if client_s > BUSY_PERCENT / 100 * (last - first):
            say(note=f"at {concurrency} at once this program was busy itself: figures are its own")
        rung.say_short()
        if not rung.answers:
            kinds = ", ".join(f"{n} × {kind}" for kind, n in rung.failures.items())
            lost("the rungs above it", f"at {concurrency} at once no request succeeded: {kinds}")
            return


def main(argv):
    return run_on_engine(argv, options, "the ladder", measured)


if __name__ == "__main__":
    leave_with(main)
