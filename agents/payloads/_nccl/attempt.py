"""Runs fresh processes with one set of NCCL's settings, reads NCCL's log, and judges how they ended."""

import functools
import os
import re
from collections import Counter
from pathlib import Path

from lines import Refusal, lost
from machine import load_torch
from processes import REFUSED, started, watched
from rank import Rank
from ranks import BROKEN, Board, run

GLOO = "gloo"  # no GPU: the program is only tried
START_SECONDS = 90  # for loading torch on a cold disk; hangs are looked for only after it
VIA = re.compile(r" via (P2P/\w+|SHM(?:/\w+)*|NET/\w+|direct shared memory)")


class Attempt:
    """label: the fields of its rows, {"arm": …} and more. settings: NCCL's variables. fault: one to simulate.

    outcome: right, wrong, hang, failed or unusable; transport: from NCCL's log, "" if unknown.
    """

    def __init__(self, chosen, label, settings, fault=""):
        self.chosen, self.label, self.settings, self.fault = chosen, label, settings, fault
        self.name, self.board = "-".join(map(str, label.values())), Board()
        self.outcome, self.transport, self.why, self.channels = "", "", "", {}

    def run(self, deadline):
        """Returns self. Raises Stopped when the whole program has to end."""
        code = watched(started(self.lead), deadline, self.until)
        self.read_log()
        state = self.board.read()
        doing = state["doing"]
        if code is None and doing == "closing":
            self.outcome, self.why = self.by_values(state), "it did not come back from closing NCCL"
        elif code is None and doing != "starting":
            self.outcome = "hang"
            self.why = f"nothing came back for {self.chosen.stall_seconds:g} s, at {doing}"
        elif code == 0:
            self.outcome = self.by_values(state)
            self.why = f"{state['wrong']} elements are not the sum" if state["wrong"] else ""
        elif code == BROKEN or code is None or code < 0:
            self.outcome, self.why = "failed", f"it ended at {doing}"
        else:
            self.outcome = "unusable" if code == REFUSED else "failed"
            self.why = f"its process ended with {code}"
        return self

    def by_values(self, state):
        return "wrong" if state["wrong"] else "right"

    def until(self):
        state = self.board.read()
        started_up = state["doing"] != "starting"
        return state["at"] + (self.chosen.stall_seconds if started_up else START_SECONDS)

    def lead(self):
        """Runs in its own process, so that the settings belong to this attempt alone."""
        os.environ.update(self.settings)
        os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,ENV")
        os.environ["NCCL_DEBUG_FILE"] = f"{self.chosen.folder}/{self.name}.%p.log"
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        try:
            load_torch()  # once for all ranks, which are forks of this process
        except Refusal as refusal:
            lost(self.name, refusal)
            return REFUSED
        self.board.show()
        return run(self.chosen.ranks, functools.partial(work, self))

    def read_log(self):
        texts = (p.read_text("utf-8", "replace") for p in self.logs())
        channels = Counter(via for text in texts for via in VIA.findall(text))
        self.channels = dict(channels.most_common())
        if self.chosen.device == "cpu":
            self.transport = GLOO
        heads = {via.partition("/")[0] for via in channels}
        if len(heads) == 1:
            self.transport = next(iter(self.channels))
        elif heads:
            self.transport = "mixed: " + ", ".join(f"{via} {n}" for via, n in self.channels.items())

    def logs(self):
        return sorted(Path(self.chosen.folder).glob(f"{self.name}.*.log"))

    def line(self):
        words = " ".join(f"{name}={value}" for name, value in self.settings.items())
        more = {"settings": words, "transport": self.transport, "channels": self.channels}
        library = self.board.read().get("library", "")
        return {**self.label, "outcome": self.outcome, "why": self.why, "nccl": library, **more}


def work(attempt, rank, links):
    return Rank(attempt, rank, links).work()
