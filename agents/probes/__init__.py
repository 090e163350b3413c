"""The catalogue of probes, found by walking the packages guest and host."""

import importlib
import pkgutil
from functools import cache

from agents.facts.fact import View
from agents.probe import Probe


@cache
def all_probes() -> dict[str, Probe]:
    """Every probe by id, in order of id. Raises AttributeError when a file holds no `probe`."""
    probes: list[Probe] = []
    for role in ("guest", "host"):
        package = importlib.import_module(f"{__name__}.{role}")
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            probes.append(module.probe)
    return {probe.id: probe for probe in sorted(probes, key=lambda probe: probe.id)}


def probes_for(role: View) -> tuple[Probe, ...]:
    """The probes of a full collection for one role, without on-demand ones."""
    return tuple(p for p in all_probes().values() if p.role is role and not p.on_demand)


def handed_for(role: View) -> tuple[Probe, ...]:
    """The probes of the script for a person: everything that a diagnosis reads."""
    return tuple(probe for probe in probes_for(role) if not probe.for_runs)
