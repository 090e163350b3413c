"""The environment of ./run: made once, remade when half-made, one at a time, clear when it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from webapp.config import bootstrap

pytestmark = pytest.mark.service


@pytest.fixture
def nothing_needed(tmp_path: Path) -> list[str]:
    """Requirements that need no network."""
    path = tmp_path / "requirements.txt"
    path.write_text("# nothing\n")
    return [str(path)]


def test_an_environment_is_made_once_and_remade_when_it_is_half_made(tmp_path: Path, nothing_needed: list[str]) -> None:
    folder = tmp_path / "env"
    python = bootstrap.environment(folder, nothing_needed)
    assert subprocess.check_output([python, "-c", "print(6 * 7)"]).strip() == b"42"
    left_alone = folder / "left-alone"
    left_alone.touch()
    bootstrap.environment(folder, nothing_needed)
    assert left_alone.exists()
    (folder / bootstrap.MARK).unlink()  # as a start that was killed leaves it
    bootstrap.environment(folder, nothing_needed)
    assert not left_alone.exists()
    assert (folder / bootstrap.MARK).exists()


def test_other_pins_remake_it(tmp_path: Path, nothing_needed: list[str]) -> None:
    before = bootstrap.fingerprint(nothing_needed)
    Path(nothing_needed[0]).write_text("# another pin\n")
    assert bootstrap.fingerprint(nothing_needed) != before


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, nothing_needed: list[str]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(bootstrap.SetupProblemError, match=r"Cannot write to .*folder you own"):
        bootstrap.environment(tmp_path / "file" / "env", nothing_needed)


def test_a_package_that_cannot_be_had_is_one_sentence_and_leaves_no_mark(tmp_path: Path) -> None:
    wrong = tmp_path / "requirements.txt"
    wrong.write_text(f"{tmp_path}/no-such-package.whl\n")
    with pytest.raises(bootstrap.SetupProblemError, match="Check the network or proxy"):
        bootstrap.environment(tmp_path / "env", [str(wrong)])
    assert not (tmp_path / "env" / bootstrap.MARK).exists()


def test_two_starts_at_once_make_one_environment(tmp_path: Path, nothing_needed: list[str]) -> None:
    code = (
        "import sys; from pathlib import Path; from webapp.config import bootstrap;"
        "bootstrap.environment(Path(sys.argv[1]), [sys.argv[2]])"
    )
    starts = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "env"), nothing_needed[0]],
            cwd=bootstrap.ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [start.communicate(timeout=120)[1] for start in starts]
    assert [start.returncode for start in starts] == [0, 0]
    assert sum("Making the environment" in text for text in said) == 1


@pytest.mark.parametrize(
    ("table", "exit_code", "result", "unasked"),
    [
        ("jinja2 2.4.1 PYSEC-2014-8 2.7.3", 1, 1, False),
        ("", 1, 0, True),
        ("vine could not be audited", 0, 0, True),
        ("", 0, 0, False),
    ],
    ids=["hole", "no service", "package unknown", "clean"],
)
def test_of_an_audit_only_a_hole_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], table: str, exit_code: int, result: int, unasked: bool
) -> None:
    """With a stand-in for pip-audit 2.10.1, which prints a table of holes and of packages it knows nothing of."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho '{table}'\nexit {exit_code}\n")
    program.chmod(0o700)
    assert bootstrap.holes_known(str(program)) == result
    said = capfd.readouterr().err
    assert table in said
    assert ("Nobody could be asked" in said) is unasked


@pytest.mark.parametrize("command", ["run", "test"])
def test_without_a_python_that_is_new_enough_it_says_so(command: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("dirname", "sh"):
        (tools / tool).symlink_to(f"/usr/bin/{tool}")
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(bootstrap.ROOT / command)],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "needs Python 3.11" in done.stderr
    assert "Traceback" not in done.stderr
