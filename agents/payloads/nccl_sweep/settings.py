"""The arms of the sweep: each one a choice of settings that this version of NCCL has.

Versions: NCCL's user guide, environment variables; NCCL_SHM_USE_CUDA_MEMCPY disappeared between 2.30.4 and 2.30.7.
NCCL_SHM_DISABLE is no arm: only the network remains then, which is slower on every machine.
"""

from lines import Refusal

BASELINE = "baseline"
NEVER = (99,)

P2P, SHM, ANY = ("P2P",), ("SHM",), ("P2P", "SHM", "NET", "")

# name: (settings, since, until, what NCCL has to take by itself for it to change anything)
ARMS = {
    BASELINE: ({}, (2,), NEVER, ANY),
    "p2p_off": ({"NCCL_P2P_DISABLE": "1"}, (2,), NEVER, P2P),
    "p2p_any_distance": ({"NCCL_P2P_LEVEL": "SYS"}, (2, 3, 4), NEVER, ("SHM", "NET")),
    "proto_simple": ({"NCCL_PROTO": "Simple"}, (2, 5), NEVER, ANY),
    "proto_ll": ({"NCCL_PROTO": "LL"}, (2, 5), NEVER, ANY),
    "proto_ll128": ({"NCCL_PROTO": "LL128"}, (2, 5), NEVER, ANY),
    "algo_ring": ({"NCCL_ALGO": "Ring"}, (2, 5), NEVER, ANY),
    "algo_tree": ({"NCCL_ALGO": "Tree"}, (2, 5), NEVER, ANY),
    "channels_from_16": ({"NCCL_MIN_NCHANNELS": "16"}, (2, 5), NEVER, ANY),
    "channels_to_4": ({"NCCL_MAX_NCHANNELS": "4"}, (2, 5), NEVER, ANY),
    "buffer_16_mib": ({"NCCL_BUFFSIZE": "16777216"}, (2,), NEVER, ANY),
    "shm_copy_engine": ({"NCCL_SHM_USE_CUDA_MEMCPY": "1"}, (2, 13), (2, 30, 5), SHM),
    "shm_at_sender": ({"NCCL_SHM_LOCALITY": "1"}, (2, 13), NEVER, SHM),
    "cumem_host_off": ({"NCCL_CUMEM_HOST_ENABLE": "0"}, (2, 23), NEVER, SHM),
}

NO_P2P = {"NCCL_P2P_DISABLE": "1"}  # it takes precedence over NCCL_P2P_LEVEL

SWEPT = {name for settings, *_ in ARMS.values() for name in settings}


def named_arms(named):
    """The set of names in "a,b". Raises Refusal for an unknown one."""
    names = {word.strip() for word in named.split(",") if word.strip()}
    unknown = names - ARMS.keys()
    if unknown:
        raise Refusal(f"no such arm: {', '.join(sorted(unknown))}", f"known are {', '.join(ARMS)}")
    return names


def arms_of(version, transport, names=frozenset(), no_p2p=False):
    """{name: settings}, the baseline first: the arms that this version has ("2.28.9"; "": all arms) and that can
    change something, with the transport that NCCL chooses itself. names: only these, with the baseline. no_p2p: P2P is
    off in all of them, so arms about it are left out."""
    number = tuple(int(part) for part in version.split(".")) if version else None
    mixed = not transport.startswith(("P2P", "SHM", "NET"))
    return {
        name: settings
        for name, (settings, since, until, beside) in ARMS.items()
        if (number is None or since <= number < until)
        and not (no_p2p and name.startswith("p2p_"))
        and (name in names or name == BASELINE or not names)
        and (name in names or mixed or transport[:3] in beside)
    }
