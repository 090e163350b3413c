"""Parses the addresses among the settings: a database, a broker, a mail server, a store of evidence.

Raises ValueError for an address that leads nowhere; the message follows the setting's name and repeats nothing of
the address, which may hold a password.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

# Of an address: a name or a number. Brackets of IPv6 are gone by then.
_PLACE = re.compile(r"[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*\.?|[0-9A-Fa-f:.]+")
# libpq's words that may follow the name of a database, and what it takes for the first.
URL_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "options")
TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
DATABASE_WAIT_S = 5  # for a connection; libpq's own default is the system's, minutes


def public(url: str) -> str:
    """Where people reach the pages: at the top of a host."""
    checked = _address(url, ("https", "http"))
    if "@" in checked:
        raise ValueError("must not hold a name or password: it is in every link")
    _ends_with_its_port(urlsplit(checked))
    return checked


def redis(url: str) -> str:
    """Where the broker is."""
    checked = _address(url, ("redis", "rediss"))
    parts = urlsplit(checked)
    if not re.fullmatch(r"(/[0-9]{1,5})?", parts.path) or parts.query or parts.fragment:
        raise ValueError("may have only the number of a database, like /0, after the host and its port")
    return checked


def _address(url: str, schemes: Collection[str]) -> str:
    """With one of these schemes and a host, without a slash at its end; the scheme in small letters."""
    parts = _split_url(url.rstrip("/"))
    if parts.scheme not in schemes or not parts.hostname:
        raise ValueError(f"must start with {' or '.join(f'{scheme}://' for scheme in schemes)} and name a host")
    return parts.geturl()


def _split_url(url: str) -> SplitResult:
    """Refuses a host that cannot be one, and such a port. A password with a slash in it looks like a host
    with a port."""
    try:
        parts = urlsplit(url)
        port = parts.port  # one that is none shows only when it is read
    except ValueError:
        port = 0
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError(
            "is no address: its port must be from 1 to 65535, or left out with its colon."
            " In a password write %2F for /, %23 for #, %3F for ? and %40 for @."
        )
    if parts.hostname and not _PLACE.fullmatch(parts.hostname):
        raise ValueError("names no host: write one like db.example, in ASCII, or its address")
    return parts


def _ends_with_its_port(parts: SplitResult) -> None:
    if any((parts.path.strip("/"), parts.query, parts.fragment)):
        raise ValueError("is too long: nothing may follow the host and its port")


@dataclass(frozen=True, slots=True)
class Mail:
    """Where mail is handed over. tls: from the start; starttls: asked for on a plain connection."""

    host: str
    port: int
    user: str = field(repr=False)
    password: str = field(repr=False)
    tls: bool
    starttls: bool


def mail(url: str) -> Mail:
    """smtp://user:password@host:port (with STARTTLS), smtps://… (TLS from the start), or smtp+plain://…
    (neither, for a server on this machine)."""
    parts, ports = _split_url(url), {"smtp": 587, "smtps": 465, "smtp+plain": 25}
    if parts.scheme not in ports or not parts.hostname:
        raise ValueError("must be smtp://…, smtps://… or smtp+plain://host…")
    _ends_with_its_port(parts)
    return Mail(
        host=parts.hostname,
        port=parts.port or ports[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        tls=parts.scheme == "smtps",
        starttls=parts.scheme == "smtp",
    )


def storage(url: str) -> dict[str, Any]:
    """Django's STORAGES for evidence outside the database: file:///folder."""
    parts = _split_url(url)
    if not (url.lower().startswith("file:///") and parts.path.strip("/")) or parts.query:
        raise ValueError("must be file:///folder")
    options = {"location": unquote(parts.path)}
    return {"evidence": {"BACKEND": "webapp.records.blob_folder.Folder", "OPTIONS": options}}


def database(url: str) -> dict[str, Any]:
    """Django's DATABASES entry for postgresql://user:password@host:port/name?sslmode=…"""
    parts = _split_url(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ValueError(f"must start with postgresql://, not {parts.scheme!r}")
    if not re.fullmatch(r"/[^/]+", parts.path) or parts.fragment:
        raise ValueError("must name a database: …host/name")
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
            **_libpq(parts),
        },
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


def _libpq(parts: SplitResult) -> dict[str, str]:
    """An option that was meant and not understood would leave a connection open to be read."""
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := options.keys() - set(URL_OPTIONS):
        raise ValueError(f"has an unknown option: there is no {unknown.pop()}; there are {', '.join(URL_OPTIONS)}")
    if options.get("sslmode", "prefer") not in TLS_MODES:
        raise ValueError(f"cannot be used: sslmode is one of {', '.join(TLS_MODES)}")
    return options
