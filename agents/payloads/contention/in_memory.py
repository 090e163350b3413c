"""Copies at once in the CPU's memory, one thread a flow: shows that the program runs."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

from device_time import NOTHING, call_times
from lines import report, say
from patterns import between

PLAYED = 3  # GPUs


def run_on_cpu(_torch, chosen):
    say(note="no CUDA device: copies in the CPU's memory, which say nothing of any GPU")
    patterns = between(chosen.gpus or PLAYED)
    most = max(len(ends) for _, ends in patterns)
    with ThreadPoolExecutor(most) as pool:
        for size in chosen.sizes:
            copies = [copy_of(size) for _ in range(most)]
            for name, flows in (("alone", 1), *((n, len(ends)) for n, ends in patterns)):
                times = call_times(together(pool, copies[:flows]), NOTHING, 0.05)
                row = {"pattern": name, "flows": flows, "size_bytes": size}
                report(row, "host_sync", "call", times, flows=flows)


def copy_of(size):
    source, target = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
    return lambda: ctypes.memmove(target, source, size)


def together(pool, copies):
    def copy():
        for done in [pool.submit(action) for action in copies]:
            done.result()

    return copy
