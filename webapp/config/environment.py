"""Reads settings from the environment; a bad value is a clear sentence, not a traceback later."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default)


def flag(name: str, default: bool = False) -> bool:
    """true/false, yes/no, on/off, 1/0. Raises ImproperlyConfigured on anything else."""
    raw = os.environ.get(name, "").strip().lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} is {raw!r}; write true or false")


def words(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A comma-separated list."""
    raw = os.environ.get(name, "")
    return [word.strip() for word in raw.split(",") if word.strip()] or list(default)


def database(url: str, data: Path) -> dict[str, Any]:
    """Django's DATABASES entry for postgresql://user:password@host:port/name, or SQLite in `data`.

    Raises ImproperlyConfigured for any other scheme.
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
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(
            f"PEERPATH_DATABASE_URL must start with postgresql://, not {parts.scheme or url!r}"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


def _private(path: Path) -> None:
    """Evidence and sessions are for this account alone, whatever the umask and the folder are; SQLite
    gives its other files the mode of this one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)


def secret_key(data: Path) -> str:
    """PEERPATH_SECRET_KEY, else the key kept in the data folder, made on first use (mode 0600)."""
    given = os.environ.get("PEERPATH_SECRET_KEY", "")
    if given:
        return given
    path = data / "secret-key"
    try:
        if not path.exists():
            _make_key(data, path)
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"the data folder {data} cannot be used ({error.strerror}). "
            "Set PEERPATH_DATA to a folder you own."
        ) from error


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
