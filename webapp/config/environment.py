"""Reads settings from the environment; a bad value is a clear sentence, not a traceback later.

docs/deploying.md has every name in one table; a test holds it against `asked`.
"""

from __future__ import annotations

import os
import re
import secrets
import zoneinfo
from collections.abc import Collection
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from webapp.triage import sealing

# Every name that was read, so that one nobody reads (a slip of the pen) can be told at the start.
asked: set[str] = set()
LEAST_SECRET = 24  # characters; 16 bytes in base64 are as many
_HOST = re.compile(r"\.?[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*|\[[0-9A-Fa-f:.]+\]|\*")
# Of an address: a name or a number. Brackets of IPv6 are gone by then.
_PLACE = re.compile(r"[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*\.?|[0-9A-Fa-f:.]+")
# libpq's words that may follow the name of a database, and what it takes for the first.
URL_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "options")
TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
DATABASE_WAIT_S = 5  # for a connection; libpq's own default is the system's, minutes
# A bucket that says nothing is given up after 15 s, half a lease; botocore's own defaults held a page and a
# run's worker for 180 s (measured on a server that takes connections and never answers).
BUCKET_CONNECT_S, BUCKET_SILENT_S, BUCKET_ATTEMPTS = 3, 7, 2
_SENDER = re.compile(r"[^<>@\s]+@[^<>@\s]+|[^<>\r\n]*<[^<>@\s]+@[^<>@\s]+>")


def text(name: str, default: str = "") -> str:
    """An empty value, or one of blanks, counts as none: a file of settings has lines to fill in."""
    asked.add(name)
    return os.environ.get(name, "").strip() or default


def flag(name: str, default: bool = False) -> bool:
    """true/false, yes/no, on/off, 1/0. Raises ImproperlyConfigured on anything else."""
    raw = text(name).strip().lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} is {raw!r}; write true or false")


def words(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A comma-separated list."""
    return [word.strip() for word in text(name).split(",") if word.strip()] or list(default)


def hosts(name: str) -> list[str]:
    """A comma-separated list of host names, as browsers send them. Raises ImproperlyConfigured."""
    found = words(name)
    for host in found:
        if not _HOST.fullmatch(host):
            raise ImproperlyConfigured(
                f"{name} has {host!r}; write names like peerpath.example, without https:// and port"
            )
    return found


def secret(name: str) -> str:
    """A long word, or "". Raises ImproperlyConfigured for one that could be guessed, or that no header
    can carry; it is not repeated."""
    raw = text(name)
    if raw and (len(raw) < LEAST_SECRET or not raw.isascii() or not raw.isprintable() or " " in raw):
        raise ImproperlyConfigured(
            f"{name} must be {LEAST_SECRET} characters or more, without blanks; openssl rand -hex 32 makes one"
        )
    return raw


def sealing_keys(name: str) -> str:
    """What seals stored credentials, as webapp.triage.sealing reads it. Raises ImproperlyConfigured."""
    raw = text(name)
    try:
        if raw:
            sealing.parsed(raw)
    except sealing.SealError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from None
    return raw


def sender(name: str, default: str) -> str:
    """Whom mail is from. Raises ImproperlyConfigured for what is no address."""
    raw = text(name, default)
    if not _SENDER.fullmatch(raw):
        raise ImproperlyConfigured(f"{name} is {raw!r}; write Peerpath <peerpath@host.example>")
    return raw


def number(name: str, default: int, *, least: int, most: int) -> int:
    """Raises ImproperlyConfigured for what is no whole number in that range."""
    raw = text(name, str(default)).strip()
    if not (raw.isascii() and raw.isdecimal()) or not least <= int(raw) <= most:
        raise ImproperlyConfigured(f"{name} is {raw!r}; write a number from {least} to {most}")
    return int(raw)


def choice(name: str, default: str, choices: Collection[str]) -> str:
    """One of these words. Raises ImproperlyConfigured."""
    raw = text(name, default).strip()
    if raw not in choices:
        raise ImproperlyConfigured(f"{name} is {raw!r}; write one of {', '.join(choices)}")
    return raw


def time_zone(name: str) -> str:
    """Raises ImproperlyConfigured for a zone that this machine does not know."""
    raw = text(name, "UTC")
    try:
        zoneinfo.ZoneInfo(raw)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ImproperlyConfigured(f"{name} is {raw!r}; write one like Europe/Berlin or UTC") from error
    return raw


def public_address(name: str, default: str) -> str:
    """Where people reach the pages: at the top of a host. Raises ImproperlyConfigured."""
    raw = address(name, default, ("https", "http"))
    if "@" in raw:
        raise ImproperlyConfigured(f"{name} must not hold a name or password: it is in every link")
    _ends_with_its_port(name, urlsplit(raw))
    return raw


def address(name: str, default: str, schemes: Collection[str]) -> str:
    """An address with one of these schemes and a host, without a slash at its end; "" stays so.

    Raises ImproperlyConfigured; a password in it is not repeated.
    """
    raw = text(name, default).rstrip("/")
    parts = _split(name, raw)
    if raw and (parts.scheme not in schemes or not parts.hostname):
        begin = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ImproperlyConfigured(f"{name} must start with {begin} and name a host")
    return parts.geturl()  # the scheme in small letters, as whoever reads it expects


def redis_address(name: str) -> str:
    """Where the broker is, "" for none. Raises ImproperlyConfigured."""
    raw = address(name, "", ("redis", "rediss"))
    parts = urlsplit(raw)
    if not re.fullmatch(r"(/[0-9]{1,5})?", parts.path) or parts.query or parts.fragment:
        raise ImproperlyConfigured(
            f"{name}: after the host and its port only the number of a database may follow, like /0"
        )
    return raw


def _split(name: str, raw: str) -> SplitResult:
    """Raises ImproperlyConfigured for what has no host that could be one, or no such port. Nothing of it
    is repeated: a password with a slash in it looks like a host with a port."""
    try:
        parts = urlsplit(raw)
        port = parts.port  # one that is none shows only when it is asked for
    except ValueError:
        port = 0
    if port == 0 or parts.netloc.endswith(":"):
        raise ImproperlyConfigured(
            f"{name} is no address: its port must be from 1 to 65535, or left out with its colon."
            " In a password write %2F for /, %23 for #, %3F for ? and %40 for @."
        )
    if parts.hostname and not _PLACE.fullmatch(parts.hostname):
        raise ImproperlyConfigured(f"{name} names no host: write one like db.example, in ASCII, or its address")
    return parts


def _ends_with_its_port(name: str, parts: SplitResult) -> None:
    if any((parts.path.strip("/"), parts.query, parts.fragment)):
        raise ImproperlyConfigured(f"{name}: nothing may follow the host and its port")


@dataclass(frozen=True, slots=True)
class Mail:
    """Where mail is handed over. tls: from the start; starttls: asked for on a plain connection."""

    host: str
    port: int
    user: str = field(repr=False)
    password: str = field(repr=False)
    tls: bool
    starttls: bool


def mail(url: str) -> Mail | None:
    """smtp://user:password@host:port (with STARTTLS), smtps://… (TLS from the start), or smtp+plain://…
    (neither, for a server on this machine); empty: none. Raises ImproperlyConfigured."""
    name = "PEERPATH_MAIL_URL"
    parts, ports = _split(name, url), {"smtp": 587, "smtps": 465, "smtp+plain": 25}
    if not url:
        return None
    if parts.scheme not in ports or not parts.hostname:
        raise ImproperlyConfigured(f"{name} must be smtp://…, smtps://… or smtp+plain://host…")
    _ends_with_its_port(name, parts)
    return Mail(
        host=parts.hostname,
        port=parts.port or ports[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        tls=parts.scheme == "smtps",
        starttls=parts.scheme == "smtp",
    )


def storage(url: str) -> dict[str, Any]:
    """Django's STORAGES for evidence outside the database, of PEERPATH_EVIDENCE_URL; empty: inside.

    file:///folder, or s3://bucket/prefix?endpoint=https://host&region=name; the keys are boto3's own
    (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY). Raises ImproperlyConfigured.
    """
    name = "PEERPATH_EVIDENCE_URL"
    parts = _split(name, url)
    if not url:
        return {}
    if url.lower().startswith("file:///") and parts.path.strip("/") and not parts.query:
        backend, options = "webapp.triage.folder.Folder", {"location": unquote(parts.path)}
    elif parts.scheme == "s3" and parts.netloc:
        backend, options = "storages.backends.s3.S3Storage", _bucket(name, parts)
    else:
        raise ImproperlyConfigured(f"{name} must be file:///folder or s3://bucket/prefix")
    return {"evidence": {"BACKEND": backend, "OPTIONS": options}}


def _bucket(name: str, parts: SplitResult) -> dict[str, Any]:
    if not (find_spec("storages") and find_spec("boto3")):
        raise ImproperlyConfigured(f"{name} names a bucket, which needs: pip install -r requirements-s3.txt")
    from botocore.config import Config  # only there when it is needed

    asked_for = parse_qs(parts.query)
    if unknown := asked_for.keys() - {"endpoint", "region"}:
        raise ImproperlyConfigured(f"{name}: there is no {', '.join(sorted(unknown))}")
    endpoint = asked_for.get("endpoint", [""])[0]
    at = _split(f"{name}: endpoint", endpoint)
    if endpoint and not (at.scheme in {"https", "http"} and at.hostname):
        raise ImproperlyConfigured(f"{name}: endpoint must start with https:// or http:// and name a host")
    return {
        "bucket_name": parts.netloc,
        "location": parts.path.strip("/"),
        "endpoint_url": endpoint or None,
        "region_name": asked_for.get("region", [None])[0],
        "default_acl": None,  # the bucket's own rules hold
        "file_overwrite": True,  # a name is the hash of what it names
        "client_config": Config(
            connect_timeout=BUCKET_CONNECT_S,
            read_timeout=BUCKET_SILENT_S,
            retries={"total_max_attempts": BUCKET_ATTEMPTS},
        ),
    }


def database(url: str, data: Path) -> dict[str, Any]:
    """Django's DATABASES entry for postgresql://user:password@host:port/name?sslmode=…, or SQLite in
    `data`.

    Raises ImproperlyConfigured for any other scheme or option.
    """
    if not url:
        _private(data / "peerpath.sqlite3")
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": data / "peerpath.sqlite3",
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    parts = _split("PEERPATH_DATABASE_URL", url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(f"PEERPATH_DATABASE_URL must start with postgresql://, not {parts.scheme!r}")
    if not re.fullmatch(r"/[^/]+", parts.path) or parts.fragment:
        raise ImproperlyConfigured("PEERPATH_DATABASE_URL must name a database: …host/name")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "OPTIONS": {
            "connect_timeout": DATABASE_WAIT_S,
            # Every query here is short: to compile one of 1 ms took 45 ms where it was thought to be long.
            # PgBouncer takes no options; `?options=` asks for none.
            "options": "-c jit=off",
            **_libpq("PEERPATH_DATABASE_URL", parts),
        },
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


def _libpq(name: str, parts: SplitResult) -> dict[str, str]:
    """An option that was meant and not understood would leave a connection open to be read."""
    found = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := found.keys() - set(URL_OPTIONS):
        raise ImproperlyConfigured(
            f"{name}: there is no {', '.join(sorted(unknown))}; there are {', '.join(URL_OPTIONS)}"
        )
    if found.get("sslmode", "prefer") not in TLS_MODES:
        raise ImproperlyConfigured(f"{name}: sslmode is one of {', '.join(TLS_MODES)}")
    return found


def _private(path: Path) -> None:
    """Evidence and sessions are for this account alone, whatever the umask and the folder are; SQLite
    gives its other files the mode of this one. Raises ImproperlyConfigured."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
    except OSError as error:
        raise _unusable(path.parent, error) from error


def secret_key(data: Path) -> str:
    """PEERPATH_SECRET_KEY, else the key kept in the data folder, made on first use (mode 0600)."""
    given = secret("PEERPATH_SECRET_KEY")
    if given:
        return given
    path = data / "secret-key"
    try:
        if not path.exists():
            _make_key(data, path)
        return path.read_text().strip()
    except OSError as error:
        raise _unusable(data, error) from error


def _unusable(data: Path, error: OSError) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"the data folder {data} cannot be used ({error.strerror}). Set PEERPATH_DATA to a folder you own."
    )


def _make_key(data: Path, path: Path) -> None:
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = path.with_name(f"secret-key.{os.getpid()}")
    made.touch(mode=0o600)
    made.write_text(secrets.token_urlsafe(50))
    try:
        os.link(made, path)  # the first of two starts wins, the other reads its key
    except FileExistsError:
        pass
    finally:
        made.unlink()
