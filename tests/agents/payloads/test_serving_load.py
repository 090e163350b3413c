"""The load on a serving engine, run for real against a streaming server on loopback."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents.agent import Reason, Watch
from agents.benchmark import all_benchmarks
from agents.facts import ReadingKind
from agents.probe import Output
from agents.ssh import SshAgent
from tests.agents.conftest import Sshd
from tests.agents.payloads.engine_server import Engine, serving
from tests.agents.payloads.running import all_gone, descendants, finish, start
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.thorough  # they start processes
BENCHMARK = all_benchmarks()["bench.serving_load"]
SHORT = ("--input-tokens", "40", "--output-tokens", "10", "--requests", "4")
SENT = (4, 5)  # by two streams: one that starts late still sends one


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shipped") / "program"
    path.write_bytes(BENCHMARK.payload_source())
    return path


def load(program: Path, engine: Engine, *argv: str) -> tuple[list[dict[str, Any]], Any]:
    """What it printed, and how that is read. Without any installed package."""
    arguments = (*SHORT, "--url", engine.url, *(argv or ("--concurrency", "2")))
    lines, out, err = finish(start(program, *arguments, isolated=True))
    assert err == ""
    reading, _ = BENCHMARK.parse(Output(out))
    return lines, reading


def test_figures_are_those_of_the_server(program: Path) -> None:
    with serving(Engine(step_s=0.02)) as engine:
        _, reading = load(program, engine, "--concurrency", "1,4", "--requests", "8")
    one, four = reading.value
    # The engine counts one whose answer is out until its thread has ended.
    assert engine.most_at_once in (4, 5)
    assert reading.missing == ()
    assert [(r.concurrency, r.errors) for r in reading.value] == [(1, 0), (4, 0)]
    assert all(8 <= r.requests < 8 + r.concurrency for r in reading.value), "a stream that starts late still sends one"
    # A token every 20 ms, and the first one after as long: 10 tokens take 200 ms and what a busy machine adds.
    for row in reading.value:
        assert 20 <= row.time_per_output_token_ms < 4 * engine.pace_ms
        assert 20 <= row.ttft_ms <= row.ttft_p95_ms <= row.ttft_p99_ms
        answer_s = (row.ttft_ms + 9 * row.time_per_output_token_ms) / 1000
        assert 0.25 < row.output_tokens_per_s * answer_s / (10 * row.concurrency) < 1.5
        assert 20 <= row.itl_ms <= row.itl_p95_ms <= row.itl_p99_ms
        assert row.tokens_per_event == 1
    assert one.output_tokens_per_s <= 50
    assert four.output_tokens_per_s <= 200
    prompt = one.prompt_tokens
    assert abs(prompt - 40) <= 2
    total = one.output_tokens_per_s * (10 + prompt) / 10
    assert one.total_tokens_per_s == pytest.approx(total, rel=1e-4)


def test_events_of_several_tokens_are_not_counted_as_tokens(program: Path) -> None:
    with serving(Engine(step_s=0.02, per_event=5, text="é\u2028\u0085")) as engine:
        _, reading = load(program, engine)
    (row,) = reading.value
    assert row.tokens_per_event == 5
    assert row.completion_tokens == 10
    assert row.itl_ms > 4 * row.time_per_output_token_ms / 2


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("429", "HTTP 429"),
        ("drop", "the connection broke"),
        ("malformed", "a malformed event"),
        ("error", "an error inside the stream"),
        ("no_done", "the stream ended before its end"),
    ],
)
def test_requests_that_bring_no_whole_answer_are_counted_and_give_no_figures(
    program: Path, fault: str, said: str
) -> None:
    with serving(Engine(fault=fault, step_s=0.001)) as engine:
        _, reading = load(program, engine, "--concurrency", "1,2")
    (row,) = reading.value
    assert (row.requests, row.output_tokens_per_s) == (0, None)
    assert row.errors >= 4
    assert any(said in words for words in reading.missing)
    assert any("no request succeeded" in words for words in reading.missing)


def test_a_stream_may_end_by_a_reason_to_finish_alone(program: Path) -> None:
    """transformers serve 5.24 sends no [DONE], and the usage beside the reason."""
    with serving(Engine(fault="unmarked", step_s=0.001)) as engine:
        _, reading = load(program, engine)
    (row,) = reading.value
    assert (row.requests in SENT, row.errors, row.completion_tokens) == (True, 0, 10)
    assert reading.missing == ()


def test_pieces_may_end_anywhere(program: Path) -> None:
    """In the middle of a line's end, of a character, of a word of JSON."""
    with serving(Engine(step_s=0.001, text="é\u2028🙂", piece=3)) as engine:
        _, reading = load(program, engine)
    (row,) = reading.value
    assert (row.requests in SENT, row.errors, row.tokens_per_event) == (True, 0, 1)


def test_what_the_engine_says_of_a_refusal_is_passed_on(program: Path) -> None:
    with serving(Engine(fault="429", step_s=0.001)) as engine:
        _, reading = load(program, engine)
        unknown, _ = load(program, engine, "--model", "huge")
    assert "at 2 at once, HTTP 429: the queue is full" in reading.detail
    assert "The model `huge` does not exist." in unknown[0]["error"]


def test_an_endpoint_that_lists_no_model_is_asked_for_one_by_name(program: Path) -> None:
    with serving(Engine(models=(), step_s=0.001)) as engine:
        unnamed, _ = load(program, engine)
        _, reading = load(program, engine, "--model", "tiny")
    assert "lists no model" in unnamed[0]["error"]
    assert "--model" in unnamed[0]["fix"]
    assert reading.value[0].requests in SENT


def test_an_answer_that_is_no_stream_is_none(program: Path) -> None:
    with serving(Engine(fault="whole")) as engine:
        lines, _ = load(program, engine)
    assert "an answer that is no stream" in lines[0]["error"]


def test_answers_that_stop_by_themselves_are_told(program: Path) -> None:
    with serving(Engine(step_s=0.001, stops_at=5)) as engine:
        _, reading = load(program, engine)
    assert reading.value[0].completion_tokens == 5
    assert "answers had 5 of 10 tokens" in reading.detail


def test_without_usage_no_figure_in_tokens_is_given(program: Path) -> None:
    with serving(Engine(fault="no_usage", step_s=0.001)) as engine:
        _, reading = load(program, engine)
    (row,) = reading.value
    assert (row.output_tokens_per_s, row.time_per_output_token_ms) == (None, None)
    assert row.ttft_ms > 0
    assert row.itl_ms > 0


@pytest.mark.parametrize("fault", ["chat_only", "mute", "strict"])
def test_servers_that_take_less_are_asked_for_less(program: Path, fault: str) -> None:
    with serving(Engine(fault=fault, step_s=0.001)) as engine:
        _, reading = load(program, engine)
    assert reading.value[0].requests in SENT
    assert ("no ignore_eos" in reading.detail) == (fault == "strict")


def test_a_seed_repeats_the_prompts_and_another_run_has_its_own(program: Path) -> None:
    seen = []
    for seed in ("7", "7", "8"):
        with serving(Engine(step_s=0)) as engine:
            load(program, engine, "--concurrency", "2", "--seed", seed)
            seen.append(engine.prompts[1:])
    # Two warm up and four or a few more follow: a stream that starts late still sends one.
    fewer, more = sorted(map(set, seen[:2]), key=len)
    assert len(fewer) >= 6
    assert fewer <= more
    assert not more & set(seen[2])
    assert [len(set(prompts)) for prompts in seen] == [len(prompts) for prompts in seen]


def test_an_engine_that_works_is_left_alone(program: Path) -> None:
    with serving(Engine(busy=3)) as engine:
        lines, reading = load(program, engine)
        assert engine.prompts == []
    assert "working on 3 requests" in lines[0]["error"]
    assert (reading.kind, reading.value) == (ReadingKind.NOT_RUN, None)


def test_a_key_stays_on_the_machine(program: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sesame\n")
    with serving(Engine(fault="keyed", step_s=0)) as engine:
        refused, _ = load(program, engine)
        lines, reading = load(program, engine, "--key-file", str(tmp_path / "key"))
    assert "--key-file" in refused[0]["fix"]
    assert reading.kind is ReadingKind.KNOWN
    assert "sesame" not in str([*refused, *lines])


def test_nothing_listens(program: Path) -> None:
    _, reading = load(program, Engine(port=9))
    assert "no engine answers" in reading.detail


def test_a_silent_engine_is_given_up(program: Path) -> None:
    with serving(Engine(step_s=3)) as engine:
        lines, _ = load(program, engine, "--stall-seconds", "0.3")
    assert "no data for too long" in lines[-1]["error"]


def test_it_stops_when_nobody_listens_any_more(program: Path) -> None:
    with serving(Engine(step_s=0.05)) as engine:
        process = start(program, "--url", engine.url, "--output-tokens", "1000")
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        family = {process.pid, *descendants(process.pid)}
        process.stdin.close()
        assert b"standard input was closed" in process.stdout.read()
        process.wait(LIMIT_S)
        process.stdout.close()
        assert all_gone(family)
        assert process.stderr
        process.stderr.close()


@pytest.mark.service
def test_through_a_real_sshd_it_reaches_what_only_that_machine_reaches(sshd: Sshd) -> None:
    """It runs there, so the endpoint may listen on loopback alone; a cancel ends it there."""
    out = bytearray()

    async def work(until: float, *argv: str) -> Reason:
        ending = await SshAgent(sshd.spec()).run_payload(
            BENCHMARK.payload_source(),
            argv,
            interpreter=sys.executable,
            watch=Watch(out.extend, LIMIT_S, lambda: time.monotonic() > until),
        )
        assert ending.leftover is False
        return ending.reason

    with serving(Engine(step_s=0.002)) as engine:
        url = ("--url", engine.url, "--concurrency", "2")
        assert asyncio.run(work(time.monotonic() + LIMIT_S, *url, *SHORT)) is Reason.FINISHED
        reading, _ = BENCHMARK.parse(Output(out.decode()))
        rows: Any = reading.value
        assert rows[0].requests in SENT
        engine.step_s = 0.5
        assert asyncio.run(work(time.monotonic() + 2, *url)) is Reason.CANCELLED
        wait_until(lambda: engine.now == 0)
