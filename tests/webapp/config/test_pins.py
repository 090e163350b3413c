"""What is installed is what is pinned, on the oldest Python that is served and on the newest."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from webapp.config.bootstrap import PINNED, ROOT

OLDEST = {"python_full_version": "3.11.0", "python_version": "3.11"}
NEWEST = {"python_full_version": "3.14.0", "python_version": "3.14"}


def pinned() -> Iterator[Requirement]:
    for name in PINNED:
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith("#"):
                yield Requirement(line)


@pytest.mark.parametrize("python", [OLDEST, NEWEST], ids=["3.11.0", "3.14"])
def test_nothing_is_pulled_in_that_no_file_pins(python: dict[str, str]) -> None:
    here = [r for r in pinned() if r.marker is None or r.marker.evaluate(python)]
    names = {canonicalize_name(r.name) for r in here}
    assert len(names) > 38
    assert all(str(r.specifier).startswith("==") for r in here)
    wanted = {
        (r.name, canonicalize_name(needed.name))
        for r in here
        if r.marker is None or r.marker.evaluate()  # else it is not here to be asked
        for needed in map(Requirement, requires(r.name) or ())
        if needed.marker is None or needed.marker.evaluate(python | {"extra": ""})
    }
    assert [pair for pair in sorted(wanted) if pair[1] not in names] == []
