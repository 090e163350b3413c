"""serve, bench and reconcile as processes, the way people start them."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import port_for
import pytest

from tests.waiting import wait_until
from tests.worker.conftest import manage
from tests.worker.test_benchmark_job import END, HEAD, PRINTS, ROW
from worker.management.commands import serve

CAPPED = """{"telemetry": ["gpu", "power_w", "throttle_bits", "busy_percent"], "every_s": 0.4}
{"at_s": 0.4, "gpus": [[0, 700.0, 4, 99]]}"""

pytestmark = pytest.mark.service  # whole processes take seconds to start


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """An installation of its own, without services."""
    return {"PEERPATH_DATA": str(tmp_path / "data"), "PEERPATH_REDIS_URL": "", "PEERPATH_DATABASE_URL": ""}


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def test_serve_sets_up_says_where_it_is_and_ends_cleanly(alone: dict[str, str]) -> None:
    port = port_for.select_random()
    server = manage("serve", "--port", str(port), env=alone)
    try:
        assert server.stdout
        assert server.stdout.readline().startswith(f"Peerpath is at http://127.0.0.1:{port} ")
        assert "first administrator" in server.stdout.readline()
        link = server.stdout.readline().strip()
        assert link.startswith(f"http://127.0.0.1:{port}/welcome/")
        wait_until(lambda: answers(link))
    finally:
        server.terminate()
    assert server.wait(60) == 0


def test_a_port_in_use_is_one_clear_sentence(alone: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said, _ = manage("serve", "--port", str(port), env=alone).communicate(timeout=60)
    assert f"Port {port} on 127.0.0.1 is in use" in said
    assert "Traceback" not in said
    assert "welcome" not in said


def test_a_number_that_is_no_port_is_not_served_at_another(alone: dict[str, str]) -> None:
    """The system would take 70000 for 4464."""
    said, _ = manage("serve", "--port", "70000", env=alone).communicate(timeout=60)
    assert said == "CommandError: 70000 is not a port; ports are 1 to 65535\n"


def test_bench_prints_result_lines_and_nothing_else(alone: dict[str, str], tools: Callable[[str, str], Path]) -> None:
    python = tools("py", PRINTS + END)
    done = bench(alone, "local:", "copy", "--json", "--python", str(python))
    assert done.returncode == 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == [json.loads(HEAD), json.loads(ROW), {"end": True}]
    assert "loads the machine" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("local:", "no_such"), 2, "no benchmark"),
        (("telnet://gpu-vm", "copy"), 2, "ssh://"),
        (("ssh://ops@127.0.0.1:9", "copy"), 4, "127.0.0.1:9"),
        (("local:", "copy", "--python", "/no/such/python"), 5, "exit code"),
    ],
)
def test_bench_says_what_went_wrong_by_its_exit_code(
    alone: dict[str, str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = bench(alone, *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("prints", "code", "said"),
    [
        (f"{PRINTS}cat <<'ROWS'\n{CAPPED}\nROWS\n{END}", 0, "slowed by software power cap while"),
        ("echo all is well", 5, "nothing was measured"),
        (PRINTS + END, 0, "done"),
    ],
)
def test_bench_says_what_its_figures_are_worth(
    alone: dict[str, str], tools: Callable[[str, str], Path], prints: str, code: int, said: str
) -> None:
    done = bench(alone, "local:", "copy", "--python", str(tools("py", prints)))
    assert (done.returncode, said in done.stderr) == (code, True)
    for other in ("slowed by", "nothing was measured"):
        assert (other in done.stderr) is (other in said)


def bench(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    process = manage("bench", *arguments, env=env, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def test_a_client_that_sends_nothing_does_not_keep_its_thread() -> None:
    """The limit is set on the socket that listens; what is accepted there has it, too."""
    with serve._listen("127.0.0.1", 0) as listener, socket.socket() as client:
        client.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            limit = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)
    assert struct.unpack("ll", limit)[0] == serve.IDLE_S
