"""The cost of starting work: for the host that queues it, for a caller who waits, and on the device."""

import functools

from stopwatch import tell

QUEUED = 200  # below the 1024 or so that a stream takes before the host has to wait
IN_GRAPH = 200


def measure_launches(torch, watch):
    """Prints rows for a wait with nothing to wait for, an empty kernel, torch's own addition (the cost in a program
    without graphs), and a CUDA graph of empty kernels."""
    device = "cpu" if watch.gpu is None else f"cuda:{watch.gpu}"
    about = {"gpu": str(watch.gpu) if watch.gpu is not None else "cpu"}
    number = torch.zeros(1, device=device)
    operation = functools.partial(number.add_, 1)
    tell({"what": "synchronise", **about}, "host_sync", "call", watch.calls(int))
    started(watch, {"what": "operation", **about}, operation)
    if watch.gpu is None:
        return
    kernel = functools.partial(torch.cuda._sleep, 0)
    started(watch, {"what": "kernel", **about}, kernel)
    graph = watch.captured([kernel] * IN_GRAPH)
    row = {"what": "graph", **about, "kernels": IN_GRAPH}
    queueing = watch.taken(lambda: watch.queueing_us(graph.replay, 1))
    tell(row, "host_sync", "no_wait", queueing)
    tell(row, "host_sync", "call", watch.calls(graph.replay))
    tell(row, "device", "graph", watch.taken(lambda: watch.elapsed_us(graph.replay)))


def started(watch, row, action):
    """Times one small piece of work by itself."""
    queueing = watch.taken(lambda: watch.queueing_us(action, QUEUED))
    tell(row, "host_sync", "no_wait", queueing)
    tell(row, "host_sync", "call", watch.calls(action))
    if watch.gpu is not None:
        tell(row, "device", "queued", watch.queued(action))
        tell(row, "device", "graph", watch.in_graph([action] * IN_GRAPH))
