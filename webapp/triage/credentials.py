"""How a target becomes a connection: which keys may be used for it, and which host key it must show.

One person on one machine: their own agent and ~/.ssh. As soon as several people share an
installation, the machine's own keys are the administrators' alone.
"""

from __future__ import annotations

from pathlib import Path

from agents.agent import Agent
from agents.local import LocalAgent
from agents.ssh import SshAgent, SshSpec
from webapp.accounts.models import User
from webapp.triage.models import PinnedHostKey, Target


class RefusedError(Exception):
    """This run may not connect; the message says why and what to do, for people."""


def agent_for(target: Target, asked_by: User) -> Agent:
    """The agent that reaches this target for this person. Raises RefusedError."""
    if target.agent == "local":
        if not asked_by.is_staff:
            raise RefusedError("Only an administrator may run something on this machine itself.")
        return LocalAgent()
    if not _may_use_own_keys(asked_by):
        raise RefusedError(
            "Several people use this installation, so only an administrator may connect with this"
            " machine's own SSH keys. Ask one, or run the script there and paste its output."
        )
    return SshAgent(_spec(target))
