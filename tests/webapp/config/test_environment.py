"""A setting that cannot be used is one sentence, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp.config import environment
from webapp.config.bootstrap import ROOT


@pytest.mark.service
@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("PEERPATH_DATABASE_URL", "mysql://somewhere/db", "must start with postgresql://"),
        ("PEERPATH_DEBUG", "perhaps", "write true or false"),
        ("PEERPATH_DATA", "{tmp}/a-file/data", "Set PEERPATH_DATA to a folder you own"),
    ],
)
def test_a_bad_setting_stops_the_start_with_a_sentence(
    tmp_path: Path, name: str, value: str, advice: str
) -> None:
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


def test_a_database_address_is_taken_apart(tmp_path: Path) -> None:
    found = environment.database("postgresql://peer:p%40ss@db:5433/cases", tmp_path)
    assert found["PASSWORD"] == "p@ss"
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("db", "5433", "cases")


def test_the_key_is_made_once_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PEERPATH_SECRET_KEY", raising=False)
    first = environment.secret_key(tmp_path / "data")
    assert environment.secret_key(tmp_path / "data") == first
    assert len(first) > 40
    assert (tmp_path / "data" / "secret-key").stat().st_mode & 0o077 == 0


def test_words_and_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERPATH_HOSTS", " a.example , b.example,")
    assert environment.words("PEERPATH_HOSTS") == ["a.example", "b.example"]
    monkeypatch.setenv("PEERPATH_DEBUG", "off")
    assert environment.flag("PEERPATH_DEBUG", default=True) is False
    monkeypatch.setenv("PEERPATH_DEBUG", "perhaps")
    with pytest.raises(ImproperlyConfigured):
        environment.flag("PEERPATH_DEBUG")
