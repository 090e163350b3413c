"""A server that speaks S3 and can be stopped and started, as on a bad day."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import port_for
from moto.server import ThreadedMotoServer

KEYS = {"AWS_ACCESS_KEY_ID": "for-a-test", "AWS_SECRET_ACCESS_KEY": "for-a-test"}


class Bucket:
    """url: for PEERPATH_EVIDENCE_URL, with KEYS in the environment. What it holds outlives a stop."""

    def __init__(self) -> None:
        self._port = port_for.select_random()
        at = f"http://127.0.0.1:{self._port}"
        self.url = f"s3://cases/peerpath?endpoint={at}&region=us-east-1"
        self.start()
        keys = {name.lower(): value for name, value in KEYS.items()}
        self.made: Any = boto3.resource("s3", endpoint_url=at, region_name="us-east-1", **keys).Bucket("cases")
        self.made.create()
        self.made.objects.all().delete()  # moto's buckets are the process's

    def start(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", self._port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        """Its port is free afterwards: a connection is refused."""
        self._server.stop()
        assert self._server._server is not None
        self._server._server.server_close()

    @property
    def names(self) -> list[str]:
        return [item.key for item in self.made.objects.all()]


@contextmanager
def running_bucket() -> Iterator[Bucket]:
    bucket = Bucket()
    yield bucket
    bucket.stop()
