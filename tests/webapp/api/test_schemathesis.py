"""Thousands of requests made from the API's own description, right and wrong ones, to the real server: no
error of ours, nothing answered that the description does not say, nothing wrong accepted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.webapp.api.conftest import Served

pytestmark = [pytest.mark.service, pytest.mark.thorough]
# For hours of it by hand: PHASES = "coverage,fuzzing,stateful", SECONDS = 3600.
PHASES, SECONDS = "coverage,fuzzing", 25
# Things that are there, so that not every answer is 404; and what the description cannot say: a bundle has
# to be one, an option has to exist, a key is for one request, a version is the one that was read.
CONFIG = """
[parameters]
session_id = "{session_id}"
run_id = "{run_id}"
link_id = "{link_id}"
key_id = "{key_id}"
target_id = {target_id}
name = "{name}"
sha256 = "{sha256}"
number = {number}
answer_id = {answer_id}
webhook_id = "{webhook_id}"
benchmark = "{benchmark}"

[checks]
positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 410, 412, 414, 422, 429]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 414, 415, 422, 428, 429]
missing_required_header.expected-statuses = [400, 401, 403, 404, 406, 415, 422, 428]
# It takes a part that is not there (decision 1) for the session that it opened.
ensure_resource_availability.enabled = false
"""


def test_the_server_does_what_its_description_says(served: Served, tmp_path: Path) -> None:
    """As an operator among others: who may not use this machine's keys reaches no other machine."""
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG.format(**served.parts))
    token = f"Authorization: Bearer {served.tokens['alice']}"
    asked = ["run", f"{served.url}/api/v1/openapi.json", "--header", token, "--checks", "all"]
    bounds = ["--phases", PHASES, "--max-time", str(SECONDS), "--seed", "1"]
    done = subprocess.run(
        [str(Path(sys.executable).with_name("st")), "--config-file", str(config), *asked, *bounds],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS + 60,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    generated = re.search(r"(\d+) generated", done.stdout)
    assert generated
    assert int(generated[1]) >= 100
