"""Makes the environment of `./run` and `./test` and hands over to it. Standard library only.

An environment is whole when its mark names the pinned requirements and the Python it was made from;
anything else (half made, older pins) is made anew. A lock file keeps two starts apart.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "peerpath-ready"
# Debian packages that the full tests use: program looked for, package that has it.
TEST_PROGRAMS = {
    "sshd": "openssh-server",
    "redis-server": "redis-server",
    "pg_lsclusters": "postgresql",
    "chromium": "chromium",
    "shellcheck": "shellcheck",
    "docker-compose": "docker-compose",
}
# torch is only for the tests that run the benchmark payloads for real, and large elsewhere.
PINNED = ["requirements.txt"]
TESTED = [*PINNED, "requirements-test.txt"]
TORCH = "torch==2.13.0"
AUDIT = ["-P", "-m", "pip_audit", "--disable-pip", "--no-deps", "--progress-spinner=off"]
# Tests of one file share its fixtures, so a file stays with one process.
PURE = ("tests/agents", "tests/webapp/diagnosis", "tests/architecture")
SIDE_BY_SIDE = ("-n", "auto", "--dist", "loadfile")


class SetupProblemError(Exception):
    """Carries one sentence that says what to do."""


def main(argv: list[str]) -> int:
    what, arguments = argv[0], argv[1:]
    try:
        return run(arguments) if what == "run" else test(arguments)
    except SetupProblemError as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 130


def run(arguments: list[str]) -> int:
    if arguments[:1] == ["remote"]:  # a client needs no environment of its own
        return hand_over(sys.executable, ["-P", str(ROOT / "webapp" / "api" / "remote.py"), *arguments[1:]])
    if arguments[:1] == ["screenshots"]:  # a browser is among what tests need
        python = environment(ROOT / ".venv-test", TESTED, [TORCH])
        os.environ["PYTHONPATH"] = str(ROOT)
        return hand_over(python, ["-m", "bench.screenshots", *arguments[1:]])
    python = environment(ROOT / ".venv", ["requirements.txt"])
    if arguments == ["setup"]:
        return hand_over(python, ["manage.py", "migrate", "--verbosity", "0"])
    if not arguments or arguments[0].startswith("-"):
        arguments = ["serve", *arguments]
    command = arguments[0].replace("-", "_")  # rotate-keys: a command's name is a module's
    return hand_over(python, ["manage.py", command, *arguments[1:]])


def audit() -> int:
    """Whether pip-audit knows holes in what the application needs; not part of the tests, it needs a network."""
    try:
        python = environment(ROOT / ".venv-audit", ["requirements-audit.txt"])
    except SetupProblemError as problem:
        say(f"Nobody was asked whether holes are known in the pinned packages. {problem}")
        return 0
    return holes_known(python)


def holes_known(python: str) -> int:
    """1 where a hole is known, else 0. pip-audit ends with 1, too, where it reaches no service, but prints no
    table then; with 0 its table names packages that no service knows."""
    files = [part for name in PINNED for part in ("-r", str(ROOT / name))]
    done = subprocess.run([python, *AUDIT, *files], stdout=subprocess.PIPE, text=True, check=False)
    table = done.stdout.strip()
    if table:
        say(table)
    if table and done.returncode:
        return 1
    if table or done.returncode:
        say(f"Nobody could be asked about {'these' if table else 'the pinned'} packages: nothing is known of them.")
    return 0


def test(arguments: list[str]) -> int:
    if arguments == ["audit"]:
        return audit()
    fast = arguments[:1] == ["fast"]
    extra = arguments[1:] if fast else arguments
    if not fast:
        install_programs()
    python = environment(ROOT / ".venv-test", TESTED, [TORCH])
    os.environ["PEERPATH_DATA"] = str(ROOT / ".venv-test" / "data")
    # Without bytecode every run compiles and rewrites all tests anew, which takes half its time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if fast:
        pure = "not service and not browser and not database and not thorough"
        chosen = extra or PURE
        return subprocess.call([python, "-m", "pytest", *SIDE_BY_SIDE, "-m", pure, *chosen], cwd=ROOT)
    for check in (["ruff", "check", "."], ["ruff", "format", "--check", "-q", "."], ["mypy", "."], ["lint_imports"]):
        say(f"{check[0]} …")
        command = [str(Path(python).with_name("lint-imports"))] if check == ["lint_imports"] else [python, "-m", *check]
        if subprocess.call(command, cwd=ROOT):
            return 1
    return subprocess.call([python, "-m", "pytest", *SIDE_BY_SIDE, *extra], cwd=ROOT)


def environment(folder: Path, requirements: list[str], optional: list[str] | None = None) -> str:
    """Path of the environment's python, made when it is not there or not whole."""
    python = folder / "bin" / "python"
    mark = folder / MARK
    contents = fingerprint(requirements)
    if _file_text(mark) == contents and python.exists():
        return str(python)
    with lock(folder):
        if _file_text(mark) == contents and python.exists():  # another start made it meanwhile
            return str(python)
        make(folder, python, requirements, optional or [])
        mark.write_text(contents)
    return str(python)


def make(folder: Path, python: Path, requirements: list[str], optional: list[str]) -> None:
    say(f"Making the environment in {folder.name} (once; needs the Python package index) …")
    shutil.rmtree(folder, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True, check=False)
    if made.returncode:
        raise SetupProblemError(
            "Python's venv module does not work here: "
            f"{last_line(made.stdout + made.stderr)} On Debian or Ubuntu: apt install python3-venv."
        )
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    files = [part for name in requirements for part in ("-r", str(ROOT / name))]
    installed = subprocess.run([*pip, *files], capture_output=True, text=True, check=False)
    if installed.returncode:
        raise SetupProblemError(
            f"Installing the pinned packages failed: {last_line(installed.stderr)} "
            "Check the network or proxy and start again; nothing half-made is kept in use."
        )
    for package in optional:
        if subprocess.run([*pip, package], capture_output=True, check=False).returncode:
            say(f"{package} could not be installed; the tests that need it will be skipped.")


def install_programs() -> None:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [package for program, package in TEST_PROGRAMS.items() if shutil.which(program, path=path) is None]
    if not missing:
        return
    apt = shutil.which("apt-get")
    if os.geteuid() != 0 or apt is None:
        say(f"Not installed: {', '.join(missing)}. Tests that need them will fail; as root: ")
        say(f"  apt-get install {' '.join(missing)}")
        return
    say(f"Installing {', '.join(missing)} …")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.call([apt, "update", "-qq"], env=quiet, stdout=subprocess.DEVNULL)
    if subprocess.call(
        [apt, "install", "-y", "-qq", "--no-install-recommends", *missing], env=quiet, stdout=subprocess.DEVNULL
    ):
        raise SetupProblemError(f"apt-get could not install {', '.join(missing)}.")


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    path = folder.with_name(folder.name + ".lock")
    try:
        handle = path.open("w")
    except OSError as error:
        raise SetupProblemError(
            f"Cannot write to {folder.parent}: {error.strerror}. "
            "Put the checkout in a folder you own, or run as its owner."
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another start is setting up; waiting for it …")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def fingerprint(requirements: list[str]) -> str:
    digest = hashlib.sha256(sys.version.encode() + str(ROOT).encode())
    for name in requirements:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def hand_over(python: str, arguments: list[str]) -> int:
    """Replaces this process, so that signals and exit codes are the command's own."""
    if arguments[0] == "manage.py":
        arguments = [str(ROOT / "manage.py"), *arguments[1:]]
    os.execv(python, [python, *arguments])  # noqa: S606 - no shell is the point


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".") + "." if lines else ""


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _file_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
