"""The limits of a child process that reads what others sent: it may fail, and takes nothing else with it."""

import resource

MOST_MEMORY_BYTES = 2 * 2**30  # of address space
MOST_CPU_S = 60
MOST_OPEN_FILES = 64


def limit_this_process(
    memory_bytes: int = MOST_MEMORY_BYTES, cpu_s: int = MOST_CPU_S, open_files: int = MOST_OPEN_FILES
) -> None:
    """For a child's first line. Above memory_bytes an allocation raises MemoryError; after cpu_s of CPU time the
    kernel ends the process (setrlimit(2): SIGXCPU, then SIGKILL); there is no core file, which would hold evidence.

    A lower limit that is set already stays.
    """
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_CORE, 0),
    ):
        allowed = [value for value in (*resource.getrlimit(kind), most) if value != resource.RLIM_INFINITY]
        resource.setrlimit(kind, (min(allowed), min(allowed)))
