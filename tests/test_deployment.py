"""docker-compose.yml, .env.example and the units of deploy/: valid, hardened, and their own commands work.

No engine here: images are never built. Every service's command runs natively, with the environment that
the file gives it, against a real Redis (started by its own command, too) and a real PostgreSQL.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import port_for
import psycopg
import pytest
import yaml

from tests.browser import outputs
from tests.http_browser import HttpBrowser
from tests.waiting import wait_until
from webapp.accounts import throttle

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.service
OURS = ("migrate", "web", "worker", "reconciler")
_STATE = re.compile(r'data-run="1" data-state="(\w+)"')
NEEDS_COMPOSE = pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")


@pytest.fixture(scope="module")
def dot_env(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """.env.example as someone fills it in: each empty secret with one of its own."""
    path = tmp_path_factory.mktemp("compose") / ".env"
    text = re.sub(
        r"^(PEERPATH_SECRET_KEY|POSTGRES_PASSWORD|REDIS_PASSWORD)=$",
        lambda line: line[0] + secrets.token_hex(32),
        (ROOT / ".env.example").read_text(),
        flags=re.M,
    )
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def services(dot_env: Path) -> dict[str, Any]:
    """As docker-compose understands the file."""
    said = subprocess.run(
        ["docker-compose", "-f", "docker-compose.yml", "--env-file", str(dot_env), "config"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    found: dict[str, Any] = yaml.safe_load(said.stdout)["services"]
    return found


@NEEDS_COMPOSE
def test_every_service_is_hardened_watched_and_limited(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service["user"].startswith(("0", "root")), name
        assert all(not volume.startswith(("/", ".")) for volume in service.get("volumes", [])), name
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}, name
        if name != "migrate":
            assert service["healthcheck"]["test"][0] == "CMD", name


@NEEDS_COMPOSE
def test_nothing_starts_without_secrets_of_its_own() -> None:
    """.env.example holds no secret that would work."""
    said = subprocess.run(
        ["docker-compose", "--env-file", ".env.example", "config"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode != 0
    assert "fill it in" in said.stderr


@dataclass
class Fleet:
    """The services, natively: their commands, their environment, other ports."""

    services: dict[str, Any]
    folder: Path
    places: dict[str, str]  # what stands in the file -> what it is here
    web_port: int
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def command(self, name: str) -> list[str]:
        programs = {"python": sys.executable, "celery": str(Path(sys.executable).with_name("celery"))}
        return [programs.get(word, self.here(word)) for word in self.services[name]["command"]]

    def environment(self, name: str) -> dict[str, str]:
        given = {k: self.here(str(v)) for k, v in self.services[name]["environment"].items()}
        # Nothing but what the file gives, and what a process needs to start at all.
        base = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"}
        return base | given | {"PEERPATH_DATA": str(self.folder / "data")}

    def here(self, text: str) -> str:
        for there, here in self.places.items():
            text = text.replace(there, here)
        return text

    def start(self, name: str) -> subprocess.Popen[str]:
        with (self.folder / f"{name}.log").open("a") as log:
            self.processes[name] = subprocess.Popen(
                self.command(name), cwd=ROOT, env=self.environment(name), stdout=log, stderr=log, text=True
            )
        return self.processes[name]

    def run(self, name: str, *arguments: str) -> str:
        """A command in a container of that service."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment(name),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def alive(self) -> bool:
        for name in ("web", "worker", "reconciler"):
            assert self.processes[name].poll() is None, self.log(name)[-3000:]
        return True

    def entries(self, name: str) -> list[dict[str, Any]]:
        lines = self.log(name).splitlines()
        for_people = ("Peerpath is at", "Nobody has an account", "worker: ")
        return [json.loads(line) for line in lines if line and not line.startswith(for_people)]

    def answers(self, path: str) -> int:
        """Status, 0 for none; as the container's own health check asks: from inside, without TLS."""
        connection = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()


@pytest.fixture(scope="module")
def fleet(services: dict[str, Any], postgresql_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    web, redis = port_for.select_random(), port_for.select_random()
    secret = services["postgres"]["environment"]["POSTGRES_PASSWORD"]
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        server.execute(f"CREATE ROLE peerpath LOGIN PASSWORD '{secret}'")
        server.execute("CREATE DATABASE peerpath OWNER peerpath")
    places = {
        "@postgres/": f"@127.0.0.1:{urlsplit(postgresql_url).port}/",
        "@redis:6379": f"@127.0.0.1:{redis}",
        "/run/redis.conf": f"{folder}/redis.conf",
        "--save": f"--bind 127.0.0.1 --port {redis} --dir {folder} --save",
        "0.0.0.0": "127.0.0.1",
        "8000": str(web),
        "$$": "$",
    }
    found = Fleet(services, folder, places, web)
    found.start("redis")
    wait_until(lambda: "Ready to accept connections" in found.log("redis"))
    assert found.start("migrate").wait(120) == 0, found.log("migrate")
    for name in ("web", "worker", "reconciler"):
        found.start(name)
    yield found
    for process in reversed(found.processes.values()):
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def person(fleet: Fleet) -> HttpBrowser:
    """The first administrator, by the command; there is no other way in."""
    public = fleet.services["web"]["environment"]["PEERPATH_PUBLIC_URL"]
    browser = HttpBrowser(public, "127.0.0.1", fleet.web_port)
    wait_until(lambda: fleet.alive() and fleet.answers("/healthz/ready") == 200)
    link = fleet.run("web", "invite", "--admin").strip()
    assert link.startswith(f"{public}/welcome/")
    browser.get(link.removeprefix(public))
    browser.post(link.removeprefix(public), username="first", password="a-long-secret-of-mine")
    assert browser.at == "/"
    return browser


@NEEDS_COMPOSE
def test_the_main_journey_over_http(fleet: Fleet, person: HttpBrowser) -> None:
    """Sign in, open a session, paste, run the probes here by the worker's process, diagnose, decide."""
    person.post("/sessions/open", title="Two GPUs, 11 tok/s")
    session = "/".join(person.at.split("/")[:3])
    person.get(f"{session}/guest")
    person.post(f"{session}/paste/guest", text=outputs.GUEST)
    assert person.shows("understood")
    person.get(f"{session}/guest")
    person.post(f"{session}/targets/guest", agent="local")
    start = re.search(rf"{session}/targets/\d+/run", person.page)
    assert start
    person.post(start[0])
    watch = re.search(rf"{session}/runs/[0-9a-f-]+", person.page)
    assert watch

    def ended() -> bool:
        person.get(watch[0])
        return bool(_STATE.search(person.page)) and state() not in {"queued", "claimed", "running"}

    def state() -> str:
        return str(_STATE.findall(person.page)[0])

    wait_until(ended)
    assert state() in {"succeeded", "partly"}
    person.get(f"{session}/host")
    person.post(f"{session}/paste/host", text=outputs.HOST)
    person.get(f"{session}/diagnosis")
    assert person.shows("NS on 2 of 2")
    person.get(f"{session}/decide")
    person.post(
        f"{session}/decide",
        version="0",
        then="propose",
        chosen="engine_profile",
        title="Profile first",
        reason="Most of the step is unexplained.",
    )
    assert person.shows("Evidence it rests on")
    request_of_the_run(fleet, watch[0].rpartition("/")[2])


def request_of_the_run(fleet: Fleet, run_id: str) -> None:
    """Every line of every process is JSON, and the run's lines name the request that asked for it."""
    entries = {name: fleet.entries(name) for name in ("web", "worker")}
    sent = [e for e in entries["web"] if e.get("run_id") == run_id and "sent" in e["message"]]
    ended = [e for e in entries["worker"] if e.get("run_id") == run_id and "ended" in e["message"]]
    assert sent[0]["request_id"] == ended[0]["request_id"]
    assert ended[0]["task_id"]
    asked = [e for e in entries["web"] if e.get("request_id") == sent[0]["request_id"]]
    assert any(e.get("method") == "POST" for e in asked)


@NEEDS_COMPOSE
def test_all_web_processes_count_wrong_passwords_as_one(fleet: Fleet, person: HttpBrowser) -> None:
    """A new connection each, which the kernel gives to any of them."""

    def guess(number: int) -> int:
        browser = HttpBrowser(person.public, "127.0.0.1", fleet.web_port, client="192.0.2.99")
        browser.get("/sign-in")
        return browser.post("/sign-in", username="first", password=f"guess-{number}").status

    assert int(fleet.services["web"]["environment"]["PEERPATH_WEB_PROCESSES"]) > 1
    with ThreadPoolExecutor(8) as together:
        answers = Counter(together.map(guess, range(24)))
    assert answers == {403: throttle.TRIES, 429: 24 - throttle.TRIES}


@NEEDS_COMPOSE
def test_health_says_what_is_missing_and_logs_hold_no_secret(fleet: Fleet, person: HttpBrowser) -> None:
    assert fleet.answers("/healthz/live") == 200
    assert "broker: ok" in fleet.run("worker", "ready")
    for name in OURS:
        log = fleet.log(name)
        for key, value in fleet.services[name]["environment"].items():
            if key in {"PEERPATH_SECRET_KEY", "PEERPATH_DATABASE_URL", "PEERPATH_REDIS_URL"}:
                secret = urlsplit(value).password or value
                assert secret not in log, (name, key)
        assert "a-long-secret-of-mine" not in log
    fleet.processes["redis"].terminate()
    fleet.processes["redis"].wait(30)
    wait_until(lambda: fleet.answers("/healthz/ready") == 503)
    assert fleet.answers("/healthz/live") == 200
    fleet.start("redis")
    wait_until(lambda: fleet.answers("/healthz/ready") == 200)


@NEEDS_COMPOSE
def test_check_deploy_is_clean(services: dict[str, Any], fleet: Fleet) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env=fleet.environment("web"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    """With programs that are here: the units name those of an installation in /opt."""
    units = sorted((ROOT / "deploy").glob("*.service")) + sorted((ROOT / "deploy").glob("*.timer"))
    assert units
    for unit in units:
        text = re.sub(r"/opt/peerpath\S*/(python|celery)", "/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "peerpath" in line]
    assert (done.returncode, ours) == (0, [])
