"""rediss://: messages go to a broker that an authority one trusts vouches for, and to no other."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import port_for
import pytest
from kombu.exceptions import OperationalError

from tests.waiting import wait_until
from tests.webapp.notices.certificates import Authority
from webapp.runs import queue

pytestmark = pytest.mark.service


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def broker(authority: Authority, tmp_path: Path) -> Iterator[str]:
    """Its address. TLS alone, certified as 127.0.0.1 by the authority."""
    authority.server("127.0.0.1")
    port, log = port_for.select_random(), tmp_path / "log"
    server = subprocess.Popen(
        [
            *("redis-server", "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1"),
            *("--tls-cert-file", str(tmp_path / "127.0.0.1.pem"), "--tls-auth-clients", "no"),
            *("--tls-key-file", str(tmp_path / "127.0.0.1.key"), "--logfile", str(log)),
            *("--tls-ca-cert-file", str(authority.path), "--save", "", "--dir", str(tmp_path)),
        ]
    )
    wait_until(lambda: log.exists() and "Ready to accept" in log.read_text())
    yield f"rediss://127.0.0.1:{port}/0"
    server.kill()
    server.wait()


def test_a_broker_that_our_authority_vouches_for_is_told(
    broker: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    with queue.make_celery(broker) as app:
        app.send_task("nothing")


def test_one_that_nobody_we_trust_vouches_for_is_told_nothing(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(Authority(tmp_path, "another").path))
    with queue.make_celery(broker) as app, pytest.raises(OperationalError, match="CERTIFICATE"):
        app.send_task("nothing")
