"""NCCL's own all_reduce_perf, as people run and paste it (https://github.com/NVIDIA/nccl-tests).

One reading for each table, so that arms with and without P2P stay apart.
"""

from agents.benchmark import Benchmark
from agents.facts.bench import ALLREDUCE
from agents.parsing import nccl_tests
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (ALLREDUCE.unsupported("nccl-tests is not installed"),)
    tables = nccl_tests.parse(output.stdout)
    reduces = [t for t in tables if t.collective in {"", "all_reduce"}]
    if reduces:
        return tuple(ALLREDUCE.known(t.result(), lines=tuple(t.lines)) for t in reduces)
    if tables:
        return (ALLREDUCE.absent(f"these rows are of {tables[0].collective}, not all_reduce"),)
    return (ALLREDUCE.unreadable("no row of an nccl-tests table"),)


benchmark = Benchmark(
    __name__,
    title="nccl-tests all-reduce",
    supplies=(ALLREDUCE,),
    parse=parse,
    signature=Signature(
        typed=r"\ball_reduce_perf\b",
        starts=(
            r"^# nccl-tests version ",
            r"^# nThread \d+ nGpus \d+ ",
            r"^#\s+(?:out-of-place\s+in-place|size\s+count\s+type)",
            r"^\s*\d+\s+\d+\s+(?:u?int\d+|float\d*|half|double|bfloat16|fp8\w*)\s+\w+\s+-?\d+\s+[\d.]+",
            r'^\{"version":\d+,"start_time":.*"args":\[".*_perf',
        ),
        belongs=r"^#|^\s*\d+\s+\d+\s+[a-z]\w+\s|^\S+_perf\b|NCCL_P2P_DISABLE=|\bNCCL (?:INFO|WARN|version)\b",
        between=("guest.nccl_log",),
    ),
    tool="all_reduce_perf",
    argv=(*("-b", "4K", "-e", "64M", "-f", "4", "-g", "@gpus"), *("-G", "20", "-n", "20", "-w", "5")),
    duration_s=30,
    timeout_s=180,
    gpu_memory_mib=1000,
    about=(
        "NVIDIA’s own all-reduce test, which is on this machine: without P2P, then as NCCL chooses, inside"
        " CUDA graphs. It stands beside our figures, size by size."
    ),
)
