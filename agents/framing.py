"""Reads text from a wire: removes what terminals add, and splits a collector's answer into frames.

A collector prints marks ("=nonce= probe guest.cpu"), and between a probe's two marks its output, every line prefixed:
"| " for stdout, "! " for stderr. One newline is added to each stream, so the lines joined by newlines are the stream,
byte for byte. A pasted text may start with a login message, be quoted by a mail program, hold CRLF, or be cut
anywhere.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from agents.cleaning import clean as clean
from agents.noise import LineStore, Noise
from agents.probe import Output

_LEAD = re.compile(rb"(?:\x1b\[[0-?]*[ -/]*[@-~]|[ \t>])*")
_MARK = re.compile(r"=([0-9A-Za-z]{8,64})= (begin|about|probe|done|end)(?: (.*))?\Z")
_OPENING = re.compile(
    rb"(?m)^(?:\x1b\[[0-?]*[ -/]*[@-~]|[ \t>])*=([0-9A-Za-z]{8,64})= (begin peerpath\.|probe \w+\.\w)"
)
_PROBE_ID = re.compile(r"[a-z]+\.[a-z0-9_]+")
_LONGEST_LINE = 16 * 2**20  # bytes; above every probe's output limit
_BLOCK = 128 * 2**10  # bytes taken apart at once
_NO_LEAD = (b"|", b"!", b"")
# Above what any collector prints; a frame or an answer more is noise. A text of marks alone costs no memory then.
MOST_FRAMES = 4096
MOST_ANSWERS = 1024
_HEADER_FIELDS = frozenset(
    {"schema", "script", "ran", "redacted", "group", "role", "time", "uid", "sudo", "session", "folder"}
)


@dataclass(frozen=True, slots=True)
class Header:
    """The collector's header. Every value is unchecked text; "" or None where the text has none.

    script_sha256: as the script states it; ran_sha256: of the file that ran, "" when the script came over a wire.
    redacted: the script replaced names, addresses, serials and UUIDs.
    """

    nonce: str
    schema: str
    role: str = ""
    script_sha256: str = ""
    time: str = ""
    uid: str = ""
    sudo: str = ""
    process_group: int | None = None
    session: str = ""
    folder: str = ""
    ran_sha256: str = ""
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ProbeStarted:
    probe_id: str


@dataclass(frozen=True, slots=True)
class Frame:
    """One probe's answer. Line numbers are 1-based within the whole text.

    first_line: the number of stdout's first line; of the opening mark when stdout is empty. Line n of output.stdout
    is line first_line + n - 1. duration_ms None: unknown, because the frame was cut.
    """

    probe_id: str
    output: Output
    raw_stdout: bytes
    raw_stderr: bytes
    duration_ms: int | None
    first_line: int
    stderr_first_line: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The last line: the number of probes, and the SHA-256 over their output."""

    probes: int | None
    sha256: str


Event = Header | ProbeStarted | Frame | End


@dataclass(frozen=True, slots=True)
class Bundle:
    """One collector's answer, as far as it arrived.

    complete: the end and every frame are there. hash_matches None: there is no end to compare with. edited: the text
    differs from what the script printed (altered, lines lost).
    """

    header: Header | None
    frames: tuple[Frame, ...]
    complete: bool
    noise: Noise
    hash_matches: bool | None
    edited: bool


@dataclass(slots=True)
class _Open:
    """A frame that is being read. stdout, stderr: each line with a line end; bare: lines that lost their prefix.
    first_line, stderr_first_line: 0 while there is none."""

    probe_id: str
    line: int
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    bare: LineStore = field(default_factory=LineStore)
    bare_words: bool = False
    first_line: int = 0
    stderr_first_line: int = 0
    overlong: bool = False


class FrameReader:
    """Splits a collector's answer while it arrives. It raises nothing on any bytes.

    nonce: the script's; marks with another nonce are noise. None (a paste): the nonce of the first mark counts.
    """

    def __init__(self, nonce: str | None = None) -> None:
        self.noise = Noise()
        self.saw_bare_lines = False
        self._nonce = nonce
        self._tail = bytearray()
        self._overlong = False
        self._line = 0
        self._frames = 0
        self._crlf = False
        self._header: dict[str, str] | None = None
        self._open: _Open | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes."""
        if len(chunk) <= _BLOCK:
            return self._feed_block(chunk)
        starts = range(0, len(chunk), _BLOCK)
        return [event for start in starts for event in self._feed_block(chunk[start : start + _BLOCK])]

    def _feed_block(self, chunk: bytes) -> list[Event]:
        searched = len(self._tail)
        self._tail += chunk
        if self._tail.find(b"\n", searched) < 0:
            self._bound_tail()
            return []
        *lines, rest = bytes(self._tail).split(b"\n")
        self._tail = bytearray(rest)
        events = [event for line in lines for event in self._read_line(line)]
        self._bound_tail()
        return events

    def close(self) -> list[Event]:
        """The remaining events at the end of the input; an open frame was cut."""
        last, self._tail = bytes(self._tail), bytearray()
        events = self._read_line(last) if last else []
        return [*events, *self._flush_header(), *self._close_cut_frame()]

    def _bound_tail(self) -> None:
        if len(self._tail) > _LONGEST_LINE:
            del self._tail[_LONGEST_LINE:]
            self._overlong = True

    def _read_line(self, line: bytes) -> list[Event]:
        self._line += 1
        overlong, self._overlong = self._overlong, False
        if overlong and self._open:
            self._open.overlong = True
        # Most lines start with their prefix, or are empty: nothing to strip there.
        text = line if line[:1] in _NO_LEAD else line[_LEAD.match(line, 0, 256).end() :]  # type: ignore[union-attr]
        if text.startswith(b"=") and len(text) < 1000:
            mark = _MARK.match(clean(text).rstrip())
            if mark and self._nonce in (None, mark[1]):
                self._nonce, self._crlf = mark[1], line.endswith(b"\r")
                return self._read_mark(mark[2], mark[3] or "", line)
        if self._crlf and text.endswith(b"\r"):
            text = text[:-1]
        self._read_content(text, line)
        return []

    def _read_content(self, text: bytes, line: bytes) -> None:
        frame = self._open
        if frame and (text.startswith(b"| ") or text == b"|"):
            frame.first_line = frame.first_line or self._line
            frame.stdout += text[2:] + b"\n"
        elif frame and (text.startswith(b"! ") or text == b"!"):
            frame.stderr_first_line = frame.stderr_first_line or self._line
            frame.stderr += text[2:] + b"\n"
        elif frame:
            frame.bare.add(self._line, line.removesuffix(b"\r") if self._crlf else line)
            frame.bare_words = frame.bare_words or bool(line.strip())
        else:
            self.noise.add(self._line, line)

    def _read_mark(self, kind: str, rest: str, line: bytes) -> list[Event]:
        word, _, more = rest.partition(" ")
        match kind:
            case "begin":
                self._header = {"schema": word, **_header_fields(more)}
                return self._close_cut_frame()
            case "about" if self._header is not None:
                self._header |= _header_fields(rest)
                return []
            case "probe" if _PROBE_ID.fullmatch(word) and self._frames < MOST_FRAMES:
                self._frames += 1
                events = [*self._flush_header(), *self._close_cut_frame()]
                self._open = _Open(word, self._line)
                return [*events, ProbeStarted(word)]
            case "done" if self._open and self._open.probe_id == word:
                return self._finish_frame(_fields(more))
            case "end":
                fields = _fields(rest)
                end = End(_integer(fields.get("probes")), fields.get("sha256", ""))
                return [*self._flush_header(), *self._close_cut_frame(), end]
        self.noise.add(self._line, line)
        return []

    def _flush_header(self) -> list[Event]:
        if self._header is None:
            return []
        fields, self._header = self._header, None
        return [_header(self._nonce or "", fields)]

    def _close_cut_frame(self) -> list[Event]:
        return self._finish_frame(None) if self._open else []

    def _finish_frame(self, fields: dict[str, str] | None) -> list[Event]:
        assert self._open
        frame, self._open = self._open, None
        if frame.bare_words:
            self.saw_bare_lines = True
            if fields is not None and not frame.stdout and not frame.stderr:
                frame.stdout, frame.first_line = frame.bare.text, frame.bare.runs[0]
            else:
                for number, line in frame.bare:
                    self.noise.add(number, line)
        return [_frame(frame, fields)]


def read_bundle(raw: bytes, *, nonce: str | None = None) -> Bundle:
    """Reads a whole answer at once: streamed, downloaded or pasted. It raises nothing on any bytes.

    Of several answers in one text the first is read and the others are noise; see read_bundles.
    """
    reader = FrameReader(nonce)
    events = [*reader.feed(raw), *reader.close()]
    frames = tuple(event for event in events if isinstance(event, Frame))
    header = next((event for event in events if isinstance(event, Header)), None)
    end = next((event for event in events if isinstance(event, End)), None)
    whole = end is not None and end.probes == len(frames) and not any(f.cut for f in frames)
    hash_matches = None
    if end and re.fullmatch(r"[0-9a-f]{64}", end.sha256):
        hash_matches = end.sha256 == _answer_sha256(frames)
    twice = len(frames) != len({frame.probe_id for frame in frames})
    edited = hash_matches is False or reader.saw_bare_lines or twice
    edited = edited or (end is not None and not whole)
    complete = whole and header is not None
    return Bundle(header, frames, complete, reader.noise, hash_matches, edited)


def read_bundles(raw: bytes) -> tuple[tuple[int, Bundle], ...]:
    """Several answers in one text, each with the number of lines before it (for line numbers).

    Lines before the first answer are its noise.
    """
    starts: dict[bytes, int] = {}
    for match in _OPENING.finditer(raw):
        if match[2].startswith(b"begin"):
            starts.setdefault(match[1], match.start())
        if len(starts) == MOST_ANSWERS:
            break
    cuts = [0, *sorted(starts.values())[1:], len(raw)]
    bundles, before = [], 0
    for start, end in pairwise(cuts):
        bundles.append((before, read_bundle(raw[start:end])))
        before += raw.count(b"\n", start, end)
    return tuple(bundles)


def looks_like_bundle(raw: bytes) -> bool:
    """Whether a collector printed this text, or a part of it that names a probe."""
    return _OPENING.search(raw) is not None


def _answer_sha256(frames: Iterable[Frame]) -> str:
    """The hash as collector.sh computes it: all stdout in order of id, then all stderr, with the added newlines."""
    ordered = sorted(frames, key=lambda frame: frame.probe_id + ".")
    digest = hashlib.sha256()
    for stream in [*(f.raw_stdout for f in ordered), *(f.raw_stderr for f in ordered)]:
        if stream:
            digest.update(stream)
            digest.update(b"\n")
    return digest.hexdigest()


def _fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S*)", text))


def _header_fields(text: str) -> dict[str, str]:
    return {name: value for name, value in _fields(text).items() if name in _HEADER_FIELDS}


def _integer(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?[0-9]{1,12}", text) else None


def _header(nonce: str, fields: dict[str, str]) -> Header:
    names = ("schema", "role", "time", "uid", "sudo", "session", "folder")
    return Header(
        nonce=nonce,
        script_sha256=fields.get("script", ""),
        ran_sha256=fields.get("ran", ""),
        redacted=fields.get("redacted") == "yes",
        process_group=_integer(fields.get("group")),
        **{name: fields.get(name, "") for name in names},
    )


def _stream(lines: bytearray) -> bytes:
    """The lines joined by newlines; empties the buffer, so that they are not there twice while they are cleaned."""
    del lines[-1:]
    stream = bytes(lines)
    lines.clear()
    return stream


def _frame(frame: _Open, fields: dict[str, str] | None) -> Frame:
    stdout, stderr = _stream(frame.stdout), _stream(frame.stderr)
    says = fields or {}
    alternative = _integer(says.get("alternative"))
    output = Output(
        clean(stdout),
        clean(stderr),
        exit_code=_integer(says.get("exit")),
        alternative=-1 if alternative is None else alternative,
        truncated=fields is None or frame.overlong or says.get("truncated") == "yes",
        timed_out=says.get("timed_out") == "yes",
    )
    return Frame(
        frame.probe_id,
        output,
        stdout,
        stderr,
        _integer(says.get("ms")),
        frame.first_line or frame.line,
        frame.stderr_first_line or frame.line,
        cut=fields is None,
    )
