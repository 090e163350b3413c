"""Every planted secret is found, nothing harmless is; the same secret has the same token everywhere."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.framing import clean
from agents.probe import Output
from agents.probes import all_probes
from agents.redaction import all_redactors, redact
from tests.agents.redaction.planted import HARMLESS, PLANTED, Planted

pytestmark = pytest.mark.thorough

# XML's text holds no brackets, so a domain's name is not read again; everything else is.
CASES = sorted(
    case
    for case in (Path(__file__).parents[1] / "probes").glob("*/*/*/stdout.txt")
    if b"<domain" not in case.read_bytes()
)
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from([p.text for p in PLANTED] + list(HARMLESS)), max_size=4).map("".join),
    st.text("alice@host:0123456789abcdef.-_<>/$# \n\u0130\u00df", max_size=300),
)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.name)
def test_every_planted_secret_is_replaced_and_counted(planted: Planted) -> None:
    result = redact(planted.text)
    for kind, secrets in planted.secrets.items():
        for secret in secrets:
            assert secret not in result.text, f"{kind}: {secret}"
    counts = {entry.kind: entry.count for entry in result.report}
    for kind, secrets in planted.secrets.items():
        assert counts.get(kind, 0) >= len(secrets), kind
    for text in planted.stays:
        assert text in result.text
    assert counts.keys() == planted.secrets.keys()


@pytest.mark.parametrize("text", HARMLESS)
def test_nothing_harmless_is_replaced(text: str) -> None:
    assert redact(text).text == text


def test_a_redacted_output_still_reads_the_same() -> None:
    """All that a parser needs is left. Values that are secrets themselves became their tokens."""
    differ = [case for case in CASES if _read(case) != _read(case, redacted=True)]
    assert not differ, ["/".join(case.parts[-4:-1]) for case in differ]
    assert len(CASES) > 100


def _read(case: Path, *, redacted: bool = False) -> list[tuple[object, ...]]:
    probe = all_probes()[f"{case.parts[-4]}.{case.parts[-3]}"]
    meta = tomllib.loads((case.parent / "case.toml").read_text())
    result = redact(clean(case.read_bytes()))
    text = result.text if redacted else clean(case.read_bytes())
    output = Output(text, "", meta.get("exit_code", 0), meta.get("alternative", 0))
    return [(r.fact_id, r.kind, r.lines, _hidden(repr(r.value), result.tokens)) for r in probe.parse(output)]


def _hidden(shown: str, tokens: Mapping[str, str]) -> str:
    for secret, token in sorted(tokens.items(), key=lambda pair: -len(pair[0])):
        shown = token.join(re.split(re.escape(secret), shown, flags=re.IGNORECASE))
    return shown


def test_the_same_secret_has_the_same_token_in_every_text_of_a_case() -> None:
    first = redact("mirela@kestrel:~$ hostname -I\n198.51.100.23\n")
    second = redact("ping KESTREL (198.51.100.23), ask mirela; then 198.51.100.24", first.tokens)
    assert second.text == "ping <host-1> (<ip-1>), ask <user-1>; then <ip-2>"
    assert second.tokens["198.51.100.23"] == "<ip-1>"


def test_the_report_says_where() -> None:
    result = redact("a\nip 198.51.100.1 and 198.51.100.1\n198.51.100.2\n")
    (entry,) = result.report
    assert (entry.kind, entry.count, entry.lines) == ("ip_address", 3, (2, 3))


def test_a_name_like_a_tools_word_is_replaced_only_where_it_is_a_name() -> None:
    result = redact("name: vllm\nvllm serve --tensor-parallel-size 8\nroot@gpu0:~# \nGPU0 X\n")
    assert result.text == ("name: <host-1>\nvllm serve --tensor-parallel-size 8\nroot@<host-2>:~# \nGPU0 X\n")


def test_tokens_of_a_text_that_was_redacted_before_are_not_given_again() -> None:
    assert redact("<ip-1> -> 198.51.100.7").text == "<ip-1> -> <ip-2>"


def test_the_catalogue_has_each_kind_once() -> None:
    words = [redactor.word for redactor in all_redactors()]
    assert len(words) == len(set(words)) == 8


@settings(max_examples=60)
@given(text=TEXTS, other=TEXTS)
def test_lines_stay_and_a_second_pass_changes_nothing(text: str, other: str) -> None:
    kept = redact(other).tokens
    once = redact(text, kept)
    assert once.text.count("\n") == text.count("\n")
    assert redact(once.text).text == once.text
    assert kept.items() <= once.tokens.items()
    assert len(set(once.tokens.values())) == len(once.tokens)


def test_a_case_with_many_secrets_does_not_slow_a_short_text() -> None:
    addresses = [f"10.{i // 65536}.{i // 256 % 256}.{i % 256}" for i in range(30_000)]
    tokens = redact("\n".join(addresses)).tokens
    began = time.process_time()
    for address in addresses[:20]:
        assert redact(f"at {address}, twice", tokens).text == f"at {tokens[address]}, twice"
    assert redact("at 10.9.9.9", tokens).text == "at <ip-30001>"
    assert time.process_time() - began < 3
