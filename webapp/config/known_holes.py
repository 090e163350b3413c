"""`./test audit`: asks pip-audit whether holes are known in the pinned packages. Standard library only.

A known hole fails. That a service cannot be asked fails nothing, since it tells nothing about the packages;
but it is said, and what was not asked about never counts as clean (pip-audit itself ends with 0 then).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

OPTIONS = ("--disable-pip", "--no-deps", "--format=json", "--progress-spinner=off")


@dataclass(frozen=True, slots=True)
class Answer:
    """holes: a line each. asked: how many packages were looked up; unasked: why others were not."""

    holes: tuple[str, ...]
    asked: int
    unasked: tuple[str, ...]

    def said(self) -> str:
        if self.unasked:
            missing = f"{len(self.unasked)} could not be asked about, and nothing is known of them: "
            return f"{self.asked} packages looked up; {missing}{self.unasked[0]}"
        return f"{self.asked} packages looked up, {len(self.holes) or 'no'} known holes."


def answer_of(printed: str, complaint: str) -> Answer:
    """printed: pip-audit's JSON; what is none, as when it ended by a network's error, says nothing at all."""
    try:
        found = json.loads(printed)["dependencies"]
    except ValueError:
        last = complaint.strip().splitlines()[-1:] or ["it printed nothing"]
        return Answer((), 0, (f"pip-audit ended with {last[0][:300]}",))
    asked = [one for one in found if "skip_reason" not in one]
    return Answer(
        tuple(_hole(one, hole) for one in asked for hole in one["vulns"]),
        len(asked),
        tuple(one["skip_reason"] for one in found if "skip_reason" in one),
    )


def _hole(package: dict[str, str], hole: dict[str, list[str]]) -> str:
    mended = ", ".join(hole["fix_versions"]) or "no version yet"
    return f"{package['name']} {package['version']}: {hole['id']}, mended in {mended}"


def main(files: Sequence[str]) -> int:
    """1 where a hole is known, else 0."""
    named = [part for file in files for part in ("-r", file)]
    command = [sys.executable, "-m", "pip_audit", *OPTIONS, *named]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = answer_of(done.stdout, done.stderr)
    sys.stderr.writelines(f"{line}\n" for line in (*answer.holes, answer.said()))
    return 1 if answer.holes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
