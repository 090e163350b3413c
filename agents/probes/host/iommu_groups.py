"""The IOMMU groups: devices that can only go to a VM together.

/sys/kernel/iommu_groups (Linux). GPUs in separate groups can still reach each other inside one VM, whose
groups all live in one container.
"""

from agents.facts.host import IOMMU_GROUPS
from agents.parsing import iommu_groups
from agents.probe import Command, Output, Probe, Readings, Signature

_NONE = "no IOMMU groups"
_SH = rf"""[ -d /sys/kernel/iommu_groups ] || exit 127
for l in /sys/kernel/iommu_groups/*/devices/*; do
  [ -e "$l" ] || {{ echo '{_NONE}'; continue; }}
  g=${{l#/sys/kernel/iommu_groups/}} name=
  read -r v <"$l/vendor"; read -r d <"$l/device"; read -r c <"$l/class"
  [ "$v" = 0x10de ] && name=' NVIDIA Corporation'
  echo "${{g%%/*}} ${{l##*/}} class $c$name [${{v#0x}}:${{d#0x}}]"
done"""


def parse(output: Output) -> Readings:
    answer = iommu_groups.parse(output.stdout)
    if answer is not None:
        cut = answer.cut or output.truncated
        missing = ("groups: the text is cut",) if cut else ()
        return (IOMMU_GROUPS.known(answer.groups, lines=answer.lines, missing=missing),)
    if output.tool_missing:
        return (IOMMU_GROUPS.unsupported("the kernel has no IOMMU groups in sysfs"),)
    if output.refused:
        return (IOMMU_GROUPS.not_run("listing the groups was refused"),)
    if _NONE in output.stdout:
        return (IOMMU_GROUPS.absent("the kernel made no IOMMU group: the IOMMU is off"),)
    why = "no group with a device in the output" if output.stdout.strip() else "no output"
    return (IOMMU_GROUPS.unreadable(why),)


probe = Probe(
    __name__,
    title="IOMMU groups",
    commands=(Command(_SH),),
    supplies=(IOMMU_GROUPS,),
    parse=parse,
    signature=Signature(
        typed=r"iommu[_-]groups|hardware/pci\b",
        starts=(
            r"^\s*(?i:IOMMU group(?: #?|: ?)\d+)",
            r"^Group:? ?\d+:?\s+\[?[0-9a-f]{2,4}:[0-9a-f]{2,4}[\].]",
            r"^/sys/kernel/iommu_groups/\d+/devices",
            r"^\d{1,4} [0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]",
            r"^│ class .*│ iommugroup ",
            r'^\s*\[?\{.*"iommugroup" ?: ?-?\d',
            r'^\s*"class" : "0x0[0-9a-f]{5}"',
        ),
        belongs=(
            r"(?i)^\s*(?:IOMMU )?group\b|^\s*(?:\d{1,4} )?(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]|"
            r"iommu_groups/|^[\s┌├└╞│]|^\.{3}$|^total 0$|^l\w{9}|^\s*$"
            r'|^\s*(?:[\[\]{}]+,?|\[?\{".*\}\]?,?|"[^"]{1,60}" ?:.*)\s*$'
        ),
        above=r"^\s*\{\s*$",
        any_machine=True,
    ),
    timeout_s=15,
)
