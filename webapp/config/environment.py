"""Settings from the environment, each declared once: name, type, default, meaning. A bad value is one sentence.

The table in docs/deploying.md is `table()`; a test compares them.
"""

import os
import re
import secrets
import zoneinfo
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge, Le
from django.core.exceptions import ImproperlyConfigured
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError

from webapp import sealing
from webapp.config import addresses

BASE_DIR: Path = Path(__file__).resolve().parents[2]
LEAST_SECRET = 24  # characters; 16 bytes in base64 are as many
_HOST = re.compile(r"\.?[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*|\[[0-9A-Fa-f:.]+\]|\*")
_SENDER = re.compile(r"[^<>@\s]+@[^<>@\s]+|[^<>\r\n]*<[^<>@\s]+@[^<>@\s]+>")


def _hosts(text: str) -> tuple[str, ...]:
    """A comma-separated list of host names, as browsers send them."""
    hosts = tuple(host.strip() for host in text.split(",") if host.strip())
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise ValueError(f"has {host!r}; write names like peerpath.example, without https:// and port")
    return hosts


def _secret(text: str) -> str:
    """A secret that is hard to guess and fits into a header; errors do not repeat it."""
    if len(text) < LEAST_SECRET or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f"must be {LEAST_SECRET} characters or more, without blanks; openssl rand -hex 32 makes one")
    return text


def _sealing_keys(text: str) -> str:
    """The keys that seal stored credentials, as webapp.sealing reads them."""
    try:
        sealing.parsed(text)
    except sealing.SealError as error:
        raise ValueError(f"cannot be used: {error}") from None
    return text


def _sender(text: str) -> str:
    if not _SENDER.fullmatch(text):
        raise ValueError(f"is {text!r}; write Peerpath <peerpath@host.example>")
    return text


def _time_zone(text: str) -> str:
    try:
        zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"is {text!r}; write one like Europe/Berlin or UTC") from None
    return text


def _folder(path: Path) -> Path:
    return path.expanduser().absolute()


def _setting(default: Any, meaning: str, label: str = "", **limits: Any) -> Any:
    """label: the default as the table names it, where it is not the value itself. A repr shows no value."""
    return Field(default, description=meaning, json_schema_extra={"shown": label}, repr=False, **limits)


_Secret = Annotated[str, AfterValidator(_secret)]


class Environment(BaseModel):
    """The variable of a setting is its name in capitals after PEERPATH_."""

    model_config = ConfigDict(frozen=True, alias_generator=lambda name: f"PEERPATH_{name.upper()}")

    data: Annotated[Path, AfterValidator(_folder)] = _setting(
        BASE_DIR / "var", "the folder for database, keys and files", "`./var`"
    )
    public_url: Annotated[str, AfterValidator(addresses.public)] = _setting(
        "http://127.0.0.1:8000",
        "the address others use; links are made with it, and `https://` makes cookies secure",
        "`http://127.0.0.1:8000`",
    )
    hosts: Annotated[tuple[str, ...], BeforeValidator(_hosts)] = _setting(
        (), "further host names to answer to, comma-separated"
    )
    behind_proxy: bool = _setting(False, "believe `X-Forwarded-For`, `-Proto` and `X-Request-ID` of the proxy in front")
    web_processes: int = _setting(
        1, "processes of `serve`, with 16 threads each; more than one needs Redis", ge=1, le=64
    )
    database_url: Annotated[dict[str, Any] | None, PlainValidator(addresses.database)] = _setting(
        None,
        "`postgresql://user:password@host:port/name`; `?sslmode=verify-full&sslrootcert=FILE` and libpq's"
        " `sslcert`, `sslkey` may follow; through PgBouncer `?options=`, and a pool of sessions, not of transactions",
        "SQLite",
    )
    redis_url: Annotated[str, AfterValidator(addresses.redis)] = _setting(
        "",
        "`redis://:password@host:port/0`, Celery's broker, or `rediss://…` for TLS, whose certificate is checked;"
        " then `worker` and `reconcile` have to run too",
        "embedded worker",
    )
    secret_key: _Secret = _setting("", "Django's secret; the same on all machines", "made on first start")
    secret_keys: Annotated[str, AfterValidator(_sealing_keys)] = _setting(
        "",
        "keys that seal stored credentials, `id:base64,…`, the first seals; the same on all machines",
        "made on first use",
    )
    evidence_url: Annotated[dict[str, Any], PlainValidator(addresses.storage)] = _setting(
        {}, "where new evidence lies: `file:///folder`", "the database"
    )
    metrics_token: _Secret = _setting("", "who bears it may read `/metrics`", "this machine alone")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = _setting(
        "WARNING", "DEBUG, INFO, WARNING, ERROR, CRITICAL; INFO has a line for each request and run"
    )
    log_format: Literal["line", "json"] = _setting("line", "`line` or `json`", "`line`")
    time_zone: Annotated[str, AfterValidator(_time_zone)] = _setting("UTC", "of the pages, like `Europe/Berlin`")
    lease_s: int = _setting(30, "a run whose worker is silent for so long is lost", ge=2, le=3600)
    drain_s: int = _setting(
        20, "how long a worker asked to end lets its runs go on before it hands them back", ge=0, le=86400
    )
    visibility_s: int = _setting(
        6 * 3600, "Redis delivers again what nobody acknowledged for so long", ge=1, le=7 * 86400
    )
    runs_per_session: int = _setting(12, "runs of one session at once", ge=1, le=1000)
    mail_url: Annotated[addresses.Mail | None, PlainValidator(addresses.mail)] = _setting(
        None,
        "a mail server for notices: `smtp://user:password@host:587` (STARTTLS), `smtps://…`, `smtp+plain://…`",
        "no mail",
    )
    mail_from: Annotated[str, AfterValidator(_sender)] = _setting(
        "", "the sender of notices", "`Peerpath <peerpath@` + the public host"
    )
    webhook_private: bool = _setting(False, "webhooks may lead into private networks and to this machine, and be http")
    reach_loopback: bool = _setting(
        False, "others than administrators may reach this machine itself and its link-local network"
    )
    debug: bool = _setting(False, "Django's debug pages; never where others come")


FIELDS = {str(field.alias): field for field in Environment.model_fields.values()}


def read(variables: Mapping[str, str]) -> Environment:
    """An empty value, or one of blanks, counts as none: a file of settings has lines to fill in.

    Raises ImproperlyConfigured.
    """
    values = {name: value.strip() for name, value in variables.items() if value.strip()}
    try:
        return Environment.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
    name = str(first["loc"][0])
    if first["type"] == "value_error":
        raise ImproperlyConfigured(f"{name} {first['ctx']['error']}")
    raise ImproperlyConfigured(f"{name} is {values[name]!r}; write {_allowed_values(name)}")


def _allowed_values(name: str) -> str:
    field = FIELDS[name]
    if field.annotation is int:
        limits = {type(limit): limit for limit in field.metadata}
        return f"a number from {limits[Ge].ge} to {limits[Le].le}"
    return "true or false" if field.annotation is bool else f"one of {', '.join(get_args(field.annotation))}"


def table() -> Iterator[str]:
    """The rows of docs/deploying.md, one a setting."""
    for name, field in FIELDS.items():
        default = field.default if field.annotation is not bool else "off"
        label = (field.json_schema_extra or {})["shown"] or default or ""  # type: ignore[index]
        yield f"| `{name}` | {field.description} | {label} |".replace("|  |", "| |")


def sqlite(data: Path) -> dict[str, Any]:
    """Django's DATABASES entry for a file in this folder."""
    _make_private(data / "peerpath.sqlite3")
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": data / "peerpath.sqlite3",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


def _make_private(path: Path) -> None:
    """Restricts the data folder to this account, whatever the umask and the folder's mode are; SQLite gives its
    other files the mode of this one. Raises ImproperlyConfigured."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
    except OSError as error:
        raise _unusable(path.parent, error) from error


def secret_key(data: Path) -> str:
    """The key of the data folder, made on first use (mode 0600). Raises ImproperlyConfigured."""
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
