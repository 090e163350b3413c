"""The measuring processes, and the process that watches them."""

import ctypes
import json
import os
import select
import signal
import time

from lines import lost

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
GO_ON, ENOUGH, STILLBORN, REFUSED, STOPPED = 0, 10, 1, 3, 4  # exit codes
PART_SECONDS = 30  # the least time for one process to load torch and measure, however short the limit is
LOOK_SECONDS = 0.02  # between two looks at a process; its end waits for the next look
STUCK_SECONDS = 20  # how long a killed process may take to end


class Stopped(Exception):  # noqa: N818
    """Why the whole run ends before its end."""


def started(task):
    """Forks a process with its own group, which dies with this one."""
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
    """The exit code of a process, negative for a signal; None: it was killed when its time was up. progress: gives
    the time until which something has to happen, for a process that may hang long before its limit."""
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
    """(exit code, answer): the JSON result of task in its own process; None without a result."""
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
    """Runs each (name, task) in its own process, one after the other, and returns the exit code: 0 when everything
    possible was measured. A process that crashes or hangs becomes a note. The tasks share the remaining time, so that
    a hanging one leaves some for the next. Raises Stopped at the limit."""
    deadline = time.monotonic() + limit
    for index, (name, task) in enumerate(tasks):
        share = max(least, (deadline - time.monotonic()) / (len(tasks) - index))
        until = min(deadline, time.monotonic() + share)
        code = watched(started(task), until)
        # Not the clock once more: a wait may end a moment early, and what was cut would be said to have ended.
        if code is None and until == deadline:
            raise Stopped("the time limit was reached")
        if code is None:
            lost(name, f"not finished after {share:.0f} s")
        elif code < 0:
            lost(name, f"the process was ended by signal {-code}")
        elif code != GO_ON:
            return 0 if code == ENOUGH else code
    return 0
