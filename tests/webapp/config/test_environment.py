"""A setting that cannot be used is one sentence, never a traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp.config import addresses, checks, environment
from webapp.config.bootstrap import ROOT


@pytest.mark.service
@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("PEERPATH_DATABASE_URL", "mysql://somewhere/db", "must start with postgresql://"),
        ("PEERPATH_DATABASE_URL", "postgresql://me:pass@host", "must name a database"),
        ("PEERPATH_DATABASE_URL", "postgresql://db/x?sslmod=require", "there is no sslmod"),
        ("PEERPATH_DATABASE_URL", "postgresql://db/x?sslmode=on", "sslmode is one of disable"),
        ("PEERPATH_REDIS_URL", "redis://:me:pass@host/one", "only the number of a database"),
        ("PEERPATH_DEBUG", "perhaps", "write true or false"),
        ("PEERPATH_PUBLIC_URL", "peerpath.example", "must start with https:// or http://"),
        ("PEERPATH_PUBLIC_URL", "https://host:port", "is no address"),
        ("PEERPATH_REDIS_URL", "127.0.0.1:6379", "must start with redis:// or rediss://"),
        ("PEERPATH_TIME_ZONE", "Mars/Olympus", "like Europe/Berlin"),
        ("PEERPATH_LOG_LEVEL", "loud", "one of DEBUG, INFO"),
        ("PEERPATH_LOG_FORMAT", "xml", "one of line, json"),
        ("PEERPATH_WEB_PROCESSES", "0", "a number from 1 to 64"),
        ("PEERPATH_WEB_PROCESSES", "2", "needs PEERPATH_REDIS_URL"),
        ("PEERPATH_EVIDENCE_URL", "/srv/evidence", "must be file:///folder"),
        ("PEERPATH_EVIDENCE_URL", "s3://cases/x", "must be file:///folder"),
        ("PEERPATH_PUBLIC_URL", "https://host.example/peerpath", "nothing may follow the host"),
        ("PEERPATH_HOSTS", "https://host.example", "without https:// and port"),
        ("PEERPATH_SECRET_KEY", "me:pass", "24 characters or more"),
        ("PEERPATH_SECRET_KEYS", "one:me:pass", "written as id:base64 of 32 bytes"),
        ("PEERPATH_METRICS_TOKEN", "me:pass", "24 characters or more"),
        ("PEERPATH_MAIL_URL", "mail.example", "must be smtp://"),
        ("PEERPATH_MAIL_FROM", "Peerpath", "write Peerpath <peerpath@host.example>"),
        ("PEERPATH_WEBHOOK_PRIVATE", "maybe", "write true or false"),
        ("PEERPATH_BEHIND_PROXY", "nginx", "write true or false"),
        ("PEERPATH_LEASE_S", "1", "a number from 2 to 3600"),
        ("PEERPATH_DRAIN_S", "-1", "a number from 0 to 86400"),
        ("PEERPATH_VISIBILITY_S", "6h", "a number from 1 to"),
        ("PEERPATH_RUNS_PER_SESSION", "0", "a number from 1 to 1000"),
        ("PEERPATH_DATA", "{tmp}/a-file/data", "Set PEERPATH_DATA to a folder you own"),
    ],
)
def test_a_bad_setting_stops_the_start_with_a_sentence(tmp_path: Path, name: str, value: str, advice: str) -> None:
    (tmp_path / "a-file").touch()
    settings = {"PEERPATH_DATA": str(tmp_path), name: value.format(tmp=tmp_path)}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert advice in done.stderr
    assert "Traceback" not in done.stderr
    assert "me:pass" not in done.stderr


@pytest.mark.service
@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("PEERPATH_LEASE_S", "soon", "PEERPATH_LEASE_S is 'soon'"),
        ("PEERPATH_EVIDENCE_URL", "file:///proc/nope", "/proc/nope cannot be written"),
        ("SSL_CERT_FILE", "/proc/nope", "no certificates can be read from /proc/nope"),
    ],
)
def test_a_worker_that_cannot_start_says_the_same_sentence(tmp_path: Path, name: str, value: str, advice: str) -> None:
    """It is Celery's own command, which reads the settings by itself."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("celery")), "-A", "worker.celery_app", "worker"],
        cwd=ROOT,
        env={**os.environ, "PEERPATH_DATA": str(tmp_path), name: value},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Peerpath cannot start: ")
    assert advice in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.service
@pytest.mark.parametrize("command", ["invite --admin", "migrate --no-input", "purge --older-than 9"])
def test_a_database_that_is_away_is_a_sentence_too(tmp_path: Path, command: str) -> None:
    away = "postgresql://me:pass-word@127.0.0.1:9/peerpath"
    done = subprocess.run(
        [sys.executable, "manage.py", *command.split()],
        cwd=ROOT,
        env={**os.environ, "PEERPATH_DATA": str(tmp_path), "PEERPATH_DATABASE_URL": away},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The database cannot be used: connection failed")
    assert "Traceback" not in done.stderr
    assert "pass-word" not in done.stderr


def test_the_table_of_settings_is_the_declarations() -> None:
    rows = (ROOT / "docs" / "deploying.md").read_text().splitlines()
    told = [row for row in rows if row.startswith("| `PEERPATH_") and "PEERPATH_PYTHON" not in row]
    assert told == list(environment.table())


def test_containers_get_every_setting() -> None:
    """Save those that the image sets, and those that no container needs."""
    compose = (ROOT / "docker-compose.yml").read_text()
    given = set(re.findall(r"^    (PEERPATH_[A-Z_]+):", compose, re.M))
    not_there = {"PEERPATH_DATA", "PEERPATH_DEBUG", "PEERPATH_REACH_LOOPBACK"}
    assert given == environment.FIELDS.keys() - not_there


def test_a_name_that_nobody_reads_is_told_with_what_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERPATH_REDIS_URI", "redis://127.0.0.1/0")
    (found,) = checks.known_settings()
    assert "PEERPATH_REDIS_URI" in found.msg
    assert found.hint == "Did you mean PEERPATH_REDIS_URL?"


def test_a_folder_for_evidence_that_cannot_be_written_is_found_out_at_once(settings: Any, tmp_path: Path) -> None:
    def found(folder: Path) -> list[str]:
        url = f"file://{folder}"
        settings.STORAGES = {**settings.STORAGES, **addresses.storage(url)}
        return [str(each.id) for each in checks.evidence_folder()]

    (tmp_path / "file").write_text("no folder")
    assert found(tmp_path / "file" / "below") == ["peerpath.E001"]
    assert found(Path("/proc/nope")) == ["peerpath.E001"]
    assert found(tmp_path / "new" / "below") == []
    assert (tmp_path / "new" / "below").is_dir()


@pytest.mark.service
@pytest.mark.parametrize(
    ("public", "host"),
    [("https://peerpath.example:8443", "'peerpath.example:8443'"), ("https://peerpath.example", None)],
)
def test_plain_http_is_led_to_the_port_that_people_use(tmp_path: Path, public: str, host: str | None) -> None:
    """A proxy's Host header has no port: redirects led to 443, whatever the public address was."""
    done = subprocess.run(
        [sys.executable, "manage.py", "diffsettings", "--all"],
        cwd=ROOT,
        env={
            **os.environ,
            "PEERPATH_DATA": str(tmp_path),
            "PEERPATH_PUBLIC_URL": public,
            "PEERPATH_BEHIND_PROXY": "true",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"SECURE_SSL_HOST = {host}" in done.stdout
    assert "SECURE_SSL_REDIRECT = True" in done.stdout


def test_authorities_that_cannot_be_read_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = tmp_path / "authorities.pem"
    empty.touch()
    for path in (empty, tmp_path, tmp_path / "none"):
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        assert [each.id for each in checks.authorities()] == ["peerpath.E003"], path
    monkeypatch.setenv("SSL_CERT_FILE", "")
    assert checks.authorities() == []


def test_a_database_address_is_taken_apart() -> None:
    found = addresses.database("postgresql://peer:p%40ss@db:5433/cases")
    assert found["PASSWORD"] == "p@ss"
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("db", "5433", "cases")


def test_what_is_asked_of_the_connection_reaches_it() -> None:
    asked = "postgresql://db/cases?sslmode=verify-full&sslrootcert=/etc/ca%201.pem"
    options = addresses.database(asked)["OPTIONS"]
    assert options.pop("connect_timeout") == addresses.DATABASE_WAIT_S
    assert options.pop("options") == "-c jit=off"
    assert options == {"sslmode": "verify-full", "sslrootcert": "/etc/ca 1.pem"}


def test_a_pooler_that_takes_no_options_is_asked_for_none() -> None:
    plain = addresses.database("postgresql://db/peerpath")
    assert plain["OPTIONS"]["options"] == "-c jit=off"
    pooled = addresses.database("postgresql://db/peerpath?options=")
    assert pooled["OPTIONS"]["options"] == ""


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    first = environment.secret_key(tmp_path / "data")
    assert environment.secret_key(tmp_path / "data") == first
    assert len(first) > 40
    assert (tmp_path / "data" / "secret-key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hosts", "peerpath.example,.lan,[::1],gpu_box"),
        ("metrics_token", "x" * 24),
        ("mail_from", "GPU team <peerpath@mail.example>"),
        ("mail_from", "peerpath@localhost"),
        ("public_url", "https://[fd00::1]:8443"),
    ],
)
def test_what_can_be_used_is_used(name: str, value: str) -> None:
    found = _read(name, value)
    assert (",".join(found) if isinstance(found, tuple) else found) == value


def _read(name: str, value: str) -> Any:
    return getattr(environment.read({f"PEERPATH_{name.upper()}": value}), name)


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("redis_url", "redis://host/abc", "number of a database"),
        ("redis_url", "redis://host/-1", "number of a database"),
        ("redis_url", "redis://host/99999999999", "number of a database"),
        ("redis_url", "redis://host/\u0661", "number of a database"),
        ("redis_url", "redis://host?db=abc", "number of a database"),
        ("redis_url", "redis://host/0#1", "number of a database"),
        ("redis_url", "redis://host:0/0", "from 1 to 65535"),
        ("redis_url", "redis://host:/0", "from 1 to 65535"),
        ("redis_url", "redis://:me/pass@host/0", "%2F for /"),
        ("redis_url", "redis://red is/0", "names no host"),
        ("public_url", "https://*", "names no host"),
        ("public_url", "https://me:pass@host", "name or password"),
        ("public_url", "https://host:", "from 1 to 65535"),
        ("database_url", "postgresql://host:0/name", "from 1 to 65535"),
        ("database_url", "postgresql://host/a/b", "must name a database"),
        ("database_url", "postgresql://host/name#x", "must name a database"),
        ("mail_url", "smtp://host:0", "from 1 to 65535"),
        ("mail_url", "smtp://host/inbox", "nothing may follow"),
        ("mail_url", "smtp://host?tls=1", "nothing may follow"),
        ("evidence_url", "file:relative", "must be file:///folder"),
        ("evidence_url", "file:///srv?mode=1", "must be file:///folder"),
        ("drain_s", "\u0661", "a number from 0 to 86400"),
    ],
)
def test_what_nothing_could_reach_is_refused(name: str, value: str, advice: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=re.escape(advice)) as refused:
        _read(name, value)
    assert not {"me", "pass@host", "me:pass@host"} & set(str(refused.value).split())


def test_blanks_and_capitals_are_not_a_mistake() -> None:
    assert _read("redis_url", " REDISS://host:6380/1 ") == "rediss://host:6380/1"  # else nobody checks its certificate
    assert _read("redis_url", "  ") == ""
    assert _read("lease_s", " ") == 30
    assert _read("public_url", "HTTPS://host.example/ ") == "https://host.example"


def test_words_and_flags() -> None:
    assert _read("hosts", " a.example , b.example,") == ("a.example", "b.example")
    assert _read("debug", "off") is False
    assert _read("debug", "Yes") is True
    with pytest.raises(ImproperlyConfigured):
        _read("debug", "perhaps")


def test_no_value_shows_in_a_repr() -> None:
    assert "secret-word" not in repr(environment.read({"PEERPATH_REDIS_URL": "redis://:secret-word@db/0"}))


def test_a_data_folder_that_cannot_be_made_is_a_sentence() -> None:
    with pytest.raises(ImproperlyConfigured, match="/proc/nope cannot be used"):
        environment.sqlite(Path("/proc/nope"))


@pytest.mark.service
@pytest.mark.parametrize("read_only", ["", "peerpath.sqlite3"])
def test_a_database_that_cannot_be_written_is_found_out_at_the_start(tmp_path: Path, read_only: str) -> None:
    (tmp_path / "peerpath.sqlite3").touch(0o600)
    (tmp_path / read_only).chmod(0o500)
    # Root writes everywhere, save without these.
    as_usual = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] * (os.geteuid() == 0)
    done = subprocess.run(
        [*as_usual, sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, "PEERPATH_DATA": str(tmp_path), "PEERPATH_SECRET_KEY": "x" * 40},
        capture_output=True,
        text=True,
        check=False,
    )
    (tmp_path / read_only).chmod(0o700)
    assert done.returncode == 1
    assert "peerpath.sqlite3 or its folder cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
