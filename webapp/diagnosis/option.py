"""What an option is: a possible change, with what it costs and how it is undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.facts.p2p import P2pCode
from webapp.diagnosis.case import Actor, Advice, Case, Restart


@dataclass(frozen=True, slots=True)
class Option:
    """One file of webapp/diagnosis/options holds one, named `option`. Its id is the file's name.

    phase: "P0" … "P5". isolation_cost: what security isolation it removes ("none" when none).
    changes: ids of the facts that are meant to differ once it is carried out. p2p_after: what the driver
    then answers; None: as before, or not predicted where "guest.p2p_read" is among `changes`.
    by_hand: what to type where no script does it, code in backticks.
    scripted: the script of its phase carries it out; every other option is done by hand.
    kernel_option: what it adds to the host's kernel command line, for its admin; N stands for the VM's memory in GiB.
    """

    module: str
    title: str
    phase: str
    actor: Actor
    downtime: Restart
    isolation_cost: str
    rollback: str
    verified_by: str
    judge: Callable[[Case], Advice]
    changes: tuple[str, ...] = ()
    p2p_after: P2pCode | None = None
    by_hand: str = ""
    scripted: bool = False
    kernel_option: str = ""

    @property
    def id(self) -> str:
        return self.module.rpartition(".")[2]
