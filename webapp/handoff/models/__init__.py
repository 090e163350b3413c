"""Links for people without an account, the scripts they were handed, and what they gave back."""

from webapp.handoff.models.script import Download, HandedScript
from webapp.records.models.link import OPENED, Answer, Link, Step

__all__ = ["OPENED", "Answer", "Download", "HandedScript", "Link", "Step"]
