"""The arms (without P2P as the control, as NCCL chooses, forced) and their common verdict."""

from attempt import GLOO, Attempt

CONTROL, DEFAULT, FORCED = "no_p2p", "default", "p2p_forced"
SETTINGS = {
    CONTROL: {"NCCL_P2P_DISABLE": "1"},
    DEFAULT: {"NCCL_P2P_DISABLE": "0"},
    FORCED: {"NCCL_P2P_DISABLE": "0", "NCCL_P2P_LEVEL": "SYS"},
}


def arm(chosen, name):
    return Attempt(chosen, {"arm": name}, SETTINGS[name], simulated(chosen, name))


def simulated(chosen, name):
    """The fault to simulate in this arm."""
    fault, control = chosen.simulate_fault, name == CONTROL
    if fault == "control":
        return "wrong" if control else ""
    return "" if control else fault


def verdict(arms):
    """(verdict, why) of the arms over P2P, compared with the control without it."""
    control, tested = arms[CONTROL], arms.get(FORCED, arms[DEFAULT])
    if control.outcome != "right":
        why = f"the control without P2P is not right either: {control.outcome}, {control.why}"
        return "inconclusive", why
    if tested.outcome in {"failed", "unusable"}:
        return "unusable", tested.why
    if tested.outcome == "right" and not tested.transport.startswith(("P2P", GLOO)):
        return ("unusable", f"NCCL took {tested.transport or 'a transport that its log does not name'}")
    return tested.outcome, tested.why
