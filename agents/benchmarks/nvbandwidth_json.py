"""NVIDIA's nvbandwidth with -j, as people run and paste it (https://github.com/NVIDIA/nvbandwidth).

Without peer access it waives its device-to-device tests and shows no figure; the reading then says so.
"""

from agents.benchmark import Benchmark
from agents.facts.bench import PAIR_MATRICES
from agents.parsing import nvbandwidth_json
from agents.probe import Output, Readings, Signature


def parse(output: Output) -> Readings:
    if output.tool_missing:
        return (PAIR_MATRICES.unsupported("the program was not found"),)
    report = nvbandwidth_json.parse(output.stdout)
    if report is None:
        return (PAIR_MATRICES.unreadable("no whole report of nvbandwidth"),)
    missing = [*report.failed, *(f"{name}: its sum is not that of its cells" for name in report.sum_off)]
    missing += [f"{name}: waived, no peer access" for name in report.waived]
    if report.matrices:
        lines = (report.line,)
        return (PAIR_MATRICES.known(report.matrices, lines=lines, missing=tuple(missing)),)
    if report.waived:
        why = "nvbandwidth waived its tests between GPUs: it found no peer access"
        return (PAIR_MATRICES.unsupported(why, lines=(report.line,)),)
    if report.sum_off or report.failed:
        return (PAIR_MATRICES.unreadable("; ".join(missing)[:300], lines=(report.line,)),)
    return (PAIR_MATRICES.not_run("no test between GPUs was among them", lines=(report.line,)),)


benchmark = Benchmark(
    __name__,
    title="nvbandwidth report",
    supplies=(PAIR_MATRICES,),
    parse=parse,
    signature=Signature(
        typed=r"\bnvbandwidth\b.*\s(?:-j|--json)\b",
        starts=(r"^\{\s*$", r"^\{\s*\"nvbandwidth\""),
        belongs=r"^\s*[\]\[{}\"\d-]|^\s*(?:true|false|null)",
        score=0.91,
    ),
    tool="nvbandwidth",
    argv=(
        *("-j", "-t", "device_to_device_memcpy_read_ce", "-t", "device_to_device_memcpy_write_ce"),
        *("-t", "host_to_device_memcpy_ce", "-t", "device_to_host_memcpy_ce"),
    ),
    duration_s=20,
    timeout_s=120,
    gpu_memory_mib=1200,
    about="NVIDIA’s own copy test, which is on this machine. Without peer access it measures no pair.",
)
