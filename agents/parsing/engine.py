"""Serving engines by their command lines, and by the arguments they print at start.

Command lines: `ps -eo args`, /proc/PID/cmdline, or as a person typed them (with backslash continuations):
"python -m sglang.launch_server --model-path M --tp 8", "vllm serve M --tensor-parallel-size 8". Start
lines: SGLang "server_args=ServerArgs(tp_size=8, …)", vLLM "non-default args: {…}", "args: Namespace(…)", "LLM
engine (v0.11.0) with config: …". Values of flags that carry a secret are replaced before they are kept.
"""

import re
from dataclasses import dataclass

from agents.facts.nccl import Engine
from agents.parsing.smi_value import unquoted

_LINE_CAP = 20_000
_MASK = "***"
_COMMANDS = (
    ("sglang", re.compile(r"(?:^|[\s/])(?:sglang\.launch_server|sglang serve)(?=\s|$)")),
    (
        "vllm",
        re.compile(
            r"(?:^|[\s/])(?:vllm serve|vllm-openai(?::\S{1,80})?|vllm\.entrypoints\.(?:openai\.)?"
            r"(?:cli\.main serve|api_server))(?=\s|$)"
        ),
    ),
    ("tensorrt-llm", re.compile(r"(?:^|[\s/])trtllm-serve(?=\s|$)")),
    ("lmdeploy", re.compile(r"(?:^|[\s/])lmdeploy serve(?: api_server)?(?=\s|$)")),
    ("llama.cpp", re.compile(r"(?:^|[\s/])llama-server(?=\s|$)")),
)
_PRINTED = (
    ("sglang", re.compile(r"server_args=ServerArgs\(")),
    ("vllm", re.compile(r"non-default args: \{")),
    ("vllm", re.compile(r"\bargs: Namespace\(")),
    ("vllm", re.compile(r"LLM engine \(v?(?P<version>[\w.+-]{1,40})\) with config: ")),
)
_WORKERS = (
    ("sglang", re.compile(r"\bsglang::(?:scheduler|detokenizer|data_parallel)")),
    ("vllm", re.compile(r"\bVLLM::(?:Worker|EngineCore)")),
)
_MENTIONS = ("sglang", "vllm", "vLLM", "VLLM", "LLM engine", "server_args", "args: ", "trtllm", "lmdeploy", "llama-")
_VLLM_VERSION = re.compile(r"vLLM API server version (?P<version>\d[\w.+-]{1,40})")
_FLAG = re.compile(r"--?[A-Za-z][\w.-]{0,60}")
_SECRET = re.compile(r"(?:^|[-_.])(?:api-?key|key|token|password|passwd|secret|credentials?)(?:$|[-_.])", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,})|(?<=://)[^\s/:@]{1,100}:[^\s/@]{1,100}(?=@)"
    r"|(?<=[Kk][Ee][Yy]\": \")[^\"]{1,200}|(?<=[Kk][Ee][Yy]\":\")[^\"]{1,200}"
)
_PAIR = re.compile(
    r"[\'\"]?(?P<key>[A-Za-z_]\w{0,60})[\'\"]?\s?[=:]\s?(?P<value>'[^']{0,2000}'|\"[^\"]{0,2000}\""
    r"|\[[^\]]{0,2000}\]|\{[^}]{0,2000}\}|[^,(){}\s]{1,300})"
)


@dataclass(frozen=True, slots=True)
class EngineMention:
    """lines: first and last. flags_seen False: the text only shows a worker's process title."""

    engine: Engine
    lines: tuple[int, ...]
    flags_seen: bool = True


def parse(text: str) -> tuple[EngineMention, ...]:
    """Every engine in the text, the one with the most flags first."""
    engines: list[EngineMention] = []
    version: str | None = None
    for first, last, line in _logical_lines(text):
        if not any(mention in line for mention in _MENTIONS):
            continue
        version_match = _VLLM_VERSION.search(line)
        version = version_match["version"] if version_match else version
        engine = _from_command(line) or _from_printed(line)
        if engine:
            engines.append(EngineMention(engine, tuple(sorted({first, last}))))
        elif name := _worker(line):
            engines.append(EngineMention(Engine(name), (first,), flags_seen=False))
    engines.sort(key=lambda item: len(item.engine.flags), reverse=True)
    return tuple(_with_version(item, version) for item in engines)


def masked(text: str) -> str:
    """The text without tokens and passwords in addresses."""
    return _SECRET_VALUE.sub(_MASK, text)


def _with_version(item: EngineMention, version: str | None) -> EngineMention:
    engine = item.engine
    if engine.name != "vllm" or engine.version or not version:
        return item
    return EngineMention(Engine("vllm", version, engine.flags), item.lines, item.flags_seen)


def _logical_lines(text: str) -> list[tuple[int, int, str]]:
    """(first line, last line, text) with backslash continuations joined."""
    joined: list[tuple[int, int, str]] = []
    parts: list[str] = []
    size = first = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = unquoted(raw) if len(raw) < 4000 else raw[:_LINE_CAP]
        first = first or number
        goes_on = line.rstrip().endswith("\\") and size < _LINE_CAP
        parts.append(line.rstrip()[:-1] if goes_on else line)
        size += len(line)
        if not goes_on:
            joined.append((first, number, " ".join(parts)))
            parts, size, first = [], 0, 0
    if parts:
        joined.append((first, first + len(parts) - 1, " ".join(parts)))
    return joined


def _from_command(line: str) -> Engine | None:
    for name, pattern in _COMMANDS:
        match = pattern.search(line)
        if match and not re.search(r"\b(?:grep|ps|kill|pip|pgrep)\b", line[: match.start()]):
            return Engine(name, None, _flags(line[match.end() :].split()))
    return None


def _flags(words: list[str]) -> dict[str, str]:
    """Flag -> value without leading dashes; "true" for a flag alone; "model" for a bare first word."""
    flags: dict[str, str] = {}
    name = "model"
    values: list[str] = []
    for word in [*words, "--end"]:
        if _FLAG.match(word) is None:
            values.append(word)
            continue
        if values or name != "model":
            flags[name] = _value(name, " ".join(values) or "true")
        name, equals, value = word.lstrip("-").partition("=")
        values = [value] if equals else []
    return flags


def _value(name: str, value: str) -> str:
    value = value.strip("\"'")
    return _MASK if _SECRET.search(name) and value != "true" else masked(value)


def _from_printed(line: str) -> Engine | None:
    for name, pattern in _PRINTED:
        match = pattern.search(line)
        if match is None:
            continue
        flags: dict[str, str] = {}
        for pair in _PAIR.finditer(line, match.end()):
            value = pair["value"].strip("'\"")
            if value != "None":
                key = pair["key"].replace("_", "-")
                flags.setdefault(key, _value(key, value))
        return Engine(name, match.groupdict().get("version"), flags)
    return None


def _worker(line: str) -> str | None:
    return next((name for name, pattern in _WORKERS if pattern.search(line)), None)
