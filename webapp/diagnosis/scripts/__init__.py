"""Scripts for the machines' own people: apply a phase, verify it, roll it back. Pure: facts in, sh out.

`phase_script` makes one; every value in it is checked against its type (`values`) and stands quoted at
the top, the rest are constant files (`sh/`).
"""

from webapp.diagnosis.scripts.host_instructions import host_instructions
from webapp.diagnosis.scripts.model import Do, PhaseScript, ScriptError
from webapp.diagnosis.scripts.outside_proxmox import Instruction, clique_instructions
from webapp.diagnosis.scripts.phase_script import ROLES, phase_script

__all__ = [
    "ROLES",
    "Do",
    "Instruction",
    "PhaseScript",
    "ScriptError",
    "clique_instructions",
    "host_instructions",
    "phase_script",
]
