"""The driver's list of GPUs, with memory, PCIe link, power, clocks and use.

https://docs.nvidia.com/deploy/nvidia-smi/ (--help-query-gpu). Old drivers refuse a list with one unknown field, so a
shorter list and the plain list of names follow. A listed GPU that the driver cannot reach is lost and does not count.
"""

from collections.abc import Sequence

from agents.facts import Reading
from agents.facts.gpu import GPU_COUNT_SMI, GPUS, Gpu
from agents.facts.platform import DRIVER_VERSION
from agents.parsing import smi_csv, smi_list
from agents.parsing.smi_csv import COLUMNS, OLD_COLUMNS
from agents.parsing.smi_value import no_devices
from agents.probe import Command, Output, Probe, Readings, Signature
from agents.probes.smi_answer import cut, no_answer

_FACTS = (GPUS, GPU_COUNT_SMI, DRIVER_VERSION)
# No column shows these; nvidia-smi -q does.
_BEYOND_CSV: tuple[str, ...] = ("virtualisation mode",)


# A driver that rejects a field is asked for fewer fields; the oldest drivers for a plain list.
_SH = rf"""for fields in {",".join(COLUMNS[:7])},\
{",".join(COLUMNS[7:13])},\
{",".join(COLUMNS[13:])} \
{",".join(OLD_COLUMNS[:7])},\
{",".join(OLD_COLUMNS[7:])}; do
  answer=$(nvidia-smi --query-gpu=$fields --format=csv); code=$?
  case $answer in *'not a valid field'*) ;; *) printf '%s\n' "$answer"; exit $code ;; esac
done
nvidia-smi -L"""


def parse(output: Output) -> Readings:
    table, beyond = smi_csv.parse(output.stdout), _BEYOND_CSV
    if table is None:
        table, beyond = smi_list.parse(output.stdout), ()
    if table is None:
        if no_devices(output.stdout + output.stderr):
            return (GPUS.absent("the driver lists no GPU"), GPU_COUNT_SMI.known(0), _no_version())
        return tuple(no_answer(fact, output, "row of a GPU") for fact in _FACTS)
    gaps = (*table.missing, *beyond, *cut(output))
    reachable = sum(not gpu.lost for gpu in table.gpus)
    return (
        GPUS.known(table.gpus, lines=table.lines, missing=gaps),
        GPU_COUNT_SMI.known(reachable, lines=table.lines, missing=cut(output)),
        driver_of(table.gpus, table.lines),
    )


def driver_of(gpus: Sequence[Gpu], lines: tuple[int, ...]) -> Reading[str]:
    """All GPUs of a machine share one driver."""
    versions = sorted({gpu.driver for gpu in gpus if gpu.driver})
    return DRIVER_VERSION.known(versions[0], lines=lines) if versions else _no_version()


def _no_version() -> Reading[str]:
    return DRIVER_VERSION.not_run("this list holds no driver version")


probe = Probe(
    __name__,
    title="GPUs the driver lists",
    commands=(Command(_SH, needs=("nvidia-smi",)),),
    supplies=_FACTS,
    parse=parse,
    signature=Signature(
        typed=r"nvidia-smi\s+.*--query-gpu\b",
        starts=(
            r"^[\s>]*(?:index|name|timestamp|(?:gpu_)?uuid|pci\.bus_id|driver_version|count), "
            r"[a-z_.]+(?: \[[^\]]+\])?(?:, |$)",
            r"^[\s>]*\d{1,2}, (?:NVIDIA|Tesla|Quadro|GeForce|0000)[^,]*(?:, |$)",
            r"^[\s>]*Unable to determine the device handle for GPU",
        ),
        belongs=r"^[\s>]*(?:\d{1,2}, |[^,|]+, [^,|]+|Unable to determine|No devices were found)",
    ),
    timeout_s=20,
    slow=True,
)
