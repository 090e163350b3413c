"""What many tests share: people, a session, and the real services of this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import port_for
import pytest
from django.conf import settings
from django.contrib.auth.hashers import make_password
from hypothesis import HealthCheck
from hypothesis import settings as drawn_examples

from tests.corpus import NO_CORPUS
from tests.evidence_store import EvidenceStore
from webapp.accounts.models import User
from webapp.config import addresses
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import session_open

# How long an example takes tells how busy the machine is: no deadline, and no complaint of slow drawing.
# In CI the examples are those of the code alone, so that a red run means the change; elsewhere they are new ones.
drawn_examples.register_profile(
    "peerpath",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
drawn_examples.load_profile("peerpath")

POSTGRESQL = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use the database or other people's outputs are not part of `./test fast`."""
    for item in items:
        if any(mark.kwargs.get("reason") == NO_CORPUS for mark in item.iter_markers("skipif")):
            item.add_marker("thorough")
        asks = getattr(item, "fixturenames", ())
        if item.get_closest_marker("django_db") or {"db", "transactional_db"} & set(asks):
            item.add_marker("database")


@pytest.fixture(scope="session")
def database_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the tests' database: give it to a process as PEERPATH_DATA to share it."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(database_folder: Path, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """A database in a file, as in real life: threads and other processes see it too."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database.setdefault("TEST", {})["NAME"] = str(database_folder / "peerpath.sqlite3")


@cache
def _hashed(password: str) -> str:
    return make_password(password)  # slow on purpose, so once a session


@pytest.fixture
def person(db: None) -> Callable[..., User]:
    """Makes a person whose password is "<name>-secret-1"; `is_staff=True`: an administrator."""

    def make(name: str, **fields: bool) -> User:
        return User.objects.create(username=name, password=_hashed(f"{name}-secret-1"), **fields)

    return make


@pytest.fixture
def alice(person: Callable[..., User]) -> User:
    """An operator."""
    return person("alice")


@pytest.fixture
def bob(person: Callable[..., User]) -> User:
    """Another operator, of other sessions."""
    return person("bob")


@pytest.fixture
def carol(person: Callable[..., User]) -> User:
    """An administrator."""
    return person("carol", is_staff=True)


@pytest.fixture
def session_of_alice(alice: User) -> DiagnosisSession:
    return session_open(owner=alice, title="Eight GPUs, eleven tokens a second")


@pytest.fixture(scope="session")
def postgresql_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of our own, run as the user postgres because initdb refuses root."""
    if POSTGRESQL is None:
        pytest.skip("PostgreSQL is not installed")
    base = Path("/tmp") / f"peerpath-pg-{os.getpid()}"  # postgres cannot enter pytest's folders
    base.mkdir(mode=0o700)
    port = port_for.select_random()
    as_postgres: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(base, pwd.getpwnam("postgres").pw_uid)
        as_postgres = ["runuser", "-u", "postgres", "--"]
    control = [*as_postgres, str(POSTGRESQL / "pg_ctl"), "-D", str(base / "data"), "-w", "-s"]
    options = f"-p {port} -k {base} -c listen_addresses=127.0.0.1 -c fsync=off"
    try:
        subprocess.run([*control, "-o", "-A trust -U postgres -N", "init"], check=True, capture_output=True)
        subprocess.run([*control, "-o", options, "-l", str(base / "log"), "start"], check=True)
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False)
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def store(settings: Any, tmp_path: Path) -> EvidenceStore:
    """Where evidence lies for this test; it can be stopped and started."""
    made = EvidenceStore(tmp_path / "evidence-store")
    settings.STORAGES = settings.STORAGES | addresses.storage(made.url)
    return made
