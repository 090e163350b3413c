"""The script for the guest's own people: NCCL's environment and engine flags.

NCCL reads its variables once, when a communicator is made (NCCL 2.30 environment variables), so every
change restarts the engine. Only settings that an option recommends are written.
"""

from agents.facts.nccl import ENGINE, NCCL_ENV, NCCL_TRANSPORTS
from agents.facts.p2p import TOPOLOGY
from agents.facts.workload import PARALLELISM
from webapp.diagnosis.case import GateState, OptionStatus, Path, Restart
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.facts import Facts
from webapp.diagnosis.options.cuda_graphs_on import OFF
from webapp.diagnosis.scripts.model import Do, Plan, ScriptError
from webapp.diagnosis.scripts.values import checked
from webapp.diagnosis.situation.pairs import gpu_count

_LOG = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,P2P,SHM,GRAPH,TUNING",
    "NCCL_DEBUG_FILE": "/tmp/nccl.%h.%p",  # noqa: S108 - on the guest, and read by its owner
}
_WHERE = "WHERE: --unit NAME.service | --compose FILE --service NAME | --file START-SCRIPT"
_RISK = "The engine is restarted, and serves nobody meanwhile; if it does not come up, the old settings are put back."
_NONE = {
    "P0": "In the guest, P0 is evidence alone: what the collector reads. The later scripts each keep what they change.",
    "P2": "P2 changes the VM from outside. In the guest, rename ~/.cache/vllm/gpu_p2p_access_cache_for_*.json, so that "
    "vLLM asks the driver again.",
    "P3": "P3 changes the VM from outside. Before it, fix each network card's name in the guest, by a file "
    "/etc/systemd/network/10-NAME.link with its MACAddress and Name, and `update-initramfs -u`.",
    "P4": "P4 changes the VM from outside; the guest has nothing to change.",
    "P5": "P5 is other ground: the machine is set up anew, which no script does safely. Its steps stand with "
    "each of its options.",
}


def plan(phase: str, do: Do, result: Diagnosis) -> Plan:
    """Raises ScriptError where the phase has nothing for the guest, or P1 nothing to set."""
    if phase != "P1":
        raise ScriptError(_NONE[phase])
    return _settings_plan(do, result)


def parts(do: Do) -> tuple[str, ...]:
    """The files of sh/ that make up a guest script, in order."""
    return ("base", "guest_target", f"guest_{do}")


def _settings_plan(do: Do, result: Diagnosis) -> Plan:
    settings, flags = _settings(result), _flags(result.facts)
    if not settings and not flags and do is not Do.ROLLBACK:
        raise ScriptError(
            "P1 has no setting to write: no option recommends one from what is known. Profile the engine "
            "first; it says where the time goes."
        )
    effects = tuple(f"{name}={value}" for name, value in settings.items())
    written = (*effects, *(f"without {flag}" for flag in flags))
    return Plan(
        title="NCCL's environment and engine flags",
        values={"drop_flags": " ".join(flags)},
        settings=tuple((checked("an environment variable", n), v) for n, v in settings.items()),
        effects=("what the apply script wrote is taken out",) if do is Do.ROLLBACK else written,
        reads=("the unit, compose file or start script that you name", "whether the engine runs"),
        refusals=(
            "it is not run as root",
            "what is named is not there, is a container started by a unit, or has such a file already",
        ),
        left_out=(
            "Channels, protocol and algorithm are tried in nccl-tests first; only a measured winner is "
            "worth a setting.",
        ),
        downtime=Restart.ENGINE,
        risk=_RISK,
        predicted_effect=result.advice["nccl_p2p_level"].predicted_effect,
        arguments="WHERE",
        hint=_WHERE,
    )


def _settings(result: Diagnosis) -> dict[str, str]:
    facts, parallel = result.facts, result.facts.value(PARALLELISM)
    if gpu_count(facts) == 1 or (parallel is not None and parallel.tp == 1):
        return {}
    log = {} if facts.value(NCCL_TRANSPORTS) else _LOG
    if result.advice["nccl_p2p_disable"].status is OptionStatus.RECOMMENDED:
        return {"NCCL_P2P_DISABLE": "1", **log}
    return {**_p2p_level(result), **log}


def _p2p_level(result: Diagnosis) -> dict[str, str]:
    """Needed now, or once the driver allows P2P; it costs nothing until then."""
    status = result.advice["nccl_p2p_level"].status
    refused = any(
        gate.gate == "driver" and gate.path is Path.PCIE and gate.state is GateState.FAIL for gate in result.ladder
    )
    if status is not OptionStatus.RECOMMENDED and not (status is OptionStatus.POSSIBLE and refused):
        return {}
    switched_off = (result.facts.value(NCCL_ENV) or {}).get("NCCL_P2P_DISABLE", "0") != "0"
    return {"NCCL_P2P_LEVEL": _level_for(result.facts)} | ({"NCCL_P2P_DISABLE": "0"} if switched_off else {})


def _level_for(facts: Facts) -> str:
    matrix = facts.value(TOPOLOGY)
    links = {cell for row in matrix.links for cell in row} if matrix else set()
    return "SYS" if links & {"SYS", "NODE"} else "PHB"


def _flags(facts: Facts) -> list[str]:
    """Flags that switch CUDA graphs off, as the engine was started with them."""
    engine = facts.value(ENGINE)
    names = engine.flags if engine else ()
    return sorted({"--" + name for raw in names if (name := raw.lstrip("-")).replace("_", "-") in OFF})
