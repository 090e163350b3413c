"""Processes that measure, and the one that watches them."""

import ctypes
import json
import os
import select
import signal
import time

from lines import lost

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
GO_ON, ENOUGH, STILLBORN, REFUSED, STOPPED = 0, 10, 1, 3, 4  # exit codes
PART_SECONDS = 30  # what one process may take, to load torch and measure, however short the limit is
LOOK_SECONDS = 0.02  # between two looks at a process, which its end waits for
STUCK_SECONDS = 20  # how long a killed process may take to go


class Stopped(Exception):  # noqa: N818
    """Why the whole run ends before its end."""


def started(task):
    """Forks a process with a group of its own, which dies with this one."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    code = STILLBORN
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if os.getppid() == parent:
            code = task()
    finally:
        os._exit(code)


def watched(child, until, progress=None):
    """The exit code of a process, negative for a signal; None: it was killed when its time was up.
    progress: says until when something has to happen, for one that may hang long before its time."""
    alive = True
    try:
        while time.monotonic() < (min(until, progress()) if progress else until):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                alive = False
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            if os.isatty(0):
                time.sleep(LOOK_SECONDS)
            elif select.select([0], [], [], LOOK_SECONDS)[0] and not os.read(0, 4096):
                raise Stopped("standard input was closed")
        return None
    finally:
        if alive:
            kill(child)


def answer_of(task, until):
    """(exit code, answer): what a process of its own computed, as JSON; None when it gave nothing."""
    read, write = os.pipe()

    def answering():
        os.write(write, json.dumps(task()).encode())
        return GO_ON

    with os.fdopen(read, "rb") as answer:
        try:
            code = watched(started(answering), until)
        finally:
            os.close(write)
        raw = answer.read()
    return code, json.loads(raw) if raw else None


def kill(child):
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # it has no group yet
        os.kill(child, signal.SIGKILL)
    until = time.monotonic() + STUCK_SECONDS
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > until:
            raise Stopped(f"process {child} is stuck in the driver and cannot be ended")
        time.sleep(0.01)


def end_by_signal(number, _frame):
    raise Stopped("it was told to stop")


def run_all(tasks, limit, least=PART_SECONDS):
    """Runs (name, task) in a process each, one after the other, and returns the exit code: 0 when what
    can be measured was. A process that crashes or hangs is a note. The time left is shared out, so that
    one that hangs leaves some for the next. Raises Stopped at the limit."""
    deadline = time.monotonic() + limit
    for index, (name, task) in enumerate(tasks):
        share = max(least, (deadline - time.monotonic()) / (len(tasks) - index))
        code = watched(started(task), min(deadline, time.monotonic() + share))
        if code is None and time.monotonic() >= deadline:
            raise Stopped("the time limit was reached")
        if code is None:
            lost(name, f"not finished after {share:.0f} s")
        elif code < 0:
            lost(name, f"the process was ended by signal {-code}")
        elif code != GO_ON:
            return 0 if code == ENOUGH else code
    return 0
