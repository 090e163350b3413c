"""The arms of the sweep: one choice of NCCL's each, where this version of NCCL has it.

Versions: NCCL's user guide, environment variables; NCCL_SHM_USE_CUDA_MEMCPY left between 2.30.4 and 2.30.7.
NCCL_SHM_DISABLE is not tried: it leaves the network, which is slower on every machine.
"""

from lines import Refusal

BASELINE = "baseline"
NEVER = (99,)

# name: (settings, since, until)
ARMS = {
    BASELINE: ({}, (2,), NEVER),
    "p2p_off": ({"NCCL_P2P_DISABLE": "1"}, (2,), NEVER),
    "p2p_any_distance": ({"NCCL_P2P_LEVEL": "SYS"}, (2, 3, 4), NEVER),
    "proto_simple": ({"NCCL_PROTO": "Simple"}, (2, 5), NEVER),
    "proto_ll": ({"NCCL_PROTO": "LL"}, (2, 5), NEVER),
    "proto_ll128": ({"NCCL_PROTO": "LL128"}, (2, 5), NEVER),
    "algo_ring": ({"NCCL_ALGO": "Ring"}, (2, 5), NEVER),
    "algo_tree": ({"NCCL_ALGO": "Tree"}, (2, 5), NEVER),
    "channels_from_16": ({"NCCL_MIN_NCHANNELS": "16"}, (2, 5), NEVER),
    "channels_to_4": ({"NCCL_MAX_NCHANNELS": "4"}, (2, 5), NEVER),
    "buffer_16_mib": ({"NCCL_BUFFSIZE": "16777216"}, (2,), NEVER),
    "shm_copy_engine": ({"NCCL_SHM_USE_CUDA_MEMCPY": "1"}, (2, 13), (2, 30, 5)),
    "shm_at_sender": ({"NCCL_SHM_LOCALITY": "1"}, (2, 13), NEVER),
    "cumem_host_off": ({"NCCL_CUMEM_HOST_ENABLE": "0"}, (2, 23), NEVER),
}


def arms_of(version, wanted=""):
    """{name: settings} of this version ("2.28.9"; "": every one), the baseline first. wanted: "a,b"."""
    number = tuple(int(part) for part in version.split(".")) if version else None
    named = {word.strip() for word in wanted.split(",") if word.strip()}
    unknown = named - ARMS.keys()
    if unknown:
        raise Refusal(f"no such arm: {', '.join(sorted(unknown))}", f"known are {', '.join(ARMS)}")
    return {
        name: settings
        for name, (settings, since, until) in ARMS.items()
        if (number is None or since <= number < until)
        and (not named or name in named or name == BASELINE)
    }
