"""Times a GPU's memory: kernels stream through more bytes than its cache holds."""

import functools

from lines import Refusal, lost
from stopwatch import Stopwatch, tell

MIB = 2**20
BEYOND_L2 = 4  # a buffer of so many times the L2 is served by memory
LEAST_BYTES = 512 * MIB
ON_CPU_BYTES = 32 * MIB
BUFFERS = 3


def kernels(torch, buffers):
    """(name, action, passes): the streaming kernels, and how many buffers' bytes each one moves."""
    a, b, c = buffers
    total = torch.zeros((), device=a.device)
    return (
        ("read", functools.partial(torch.sum, a, dim=0, out=total), 1),
        ("copy", functools.partial(b.copy_, a), 2),
        ("triad", functools.partial(torch.add, a, b, alpha=3.0, out=c), 3),
    )


def size_for(torch, gpu, l2_bytes):
    """Bytes of one buffer: beyond the L2, and all of them within three quarters of the free memory."""
    free = torch.cuda.mem_get_info(gpu)[0]
    most, needed = free // 4, BEYOND_L2 * l2_bytes
    if needed > most:
        error = f"{free // MIB} MiB are free on GPU {gpu}, {4 * needed // MIB} are needed"
        raise Refusal(error, "stop what fills it")
    return min(max(needed, LEAST_BYTES), most) // MIB * MIB


def measure_memory(torch, gpu, chosen):
    """Prints the rows. gpu None: this machine's memory, to try the program."""
    watch = Stopwatch(torch, gpu, chosen.row_seconds)
    l2_bytes = 0 if gpu is None else watch.l2_bytes()
    size = ON_CPU_BYTES if gpu is None else size_for(torch, gpu, l2_bytes)
    device = "cpu" if gpu is None else f"cuda:{gpu}"
    buffers = [torch.rand(size // 4, device=device) for _ in range(BUFFERS)]
    about = {"gpu": "cpu" if gpu is None else str(gpu), "size_bytes": size, "l2_bytes": l2_bytes}
    for name, action, passes in kernels(torch, buffers):
        row, moved = {"kernel": name, **about, "moved_bytes": passes * size}, passes * size
        try:
            if gpu is not None:
                tell(row, "device", "queued", watch.queued(action), moved)
            tell(row, "host_sync", "call", watch.calls(action), moved)
        except RuntimeError as error:
            lost(f"{name} on GPU {gpu}", error)
