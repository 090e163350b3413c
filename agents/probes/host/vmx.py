"""VMware's configuration of the VM: passed-through devices, address space, peer-to-peer.

.vmx files (VMware vSphere 7 and 8: pciPassthru.use64bitMMIO, .64bitMMIOSizeGB, .allowP2P, .RelaxACSforP2P). The
parser reads the administrator's paste; no probe runs in ESXi's shell.
"""

from agents.facts.host import VMX
from agents.parsing import vmx
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = """[ -d /vmfs/volumes ] || exit 127
for f in /vmfs/volumes/*/*/*.vmx; do
  [ -r "$f" ] || continue
  grep -iE '^(displayname|uuid.bios|firmware|memsize|pcipassthru|hypervisor.cpuid|config.version)' "$f"
done"""


def parse(output: Output) -> Readings:
    configs, lines = vmx.parse(output.stdout)
    if configs:
        missing = [] if all(config.name for config in configs) else ["which VM it is"]
        missing += ["the end of the output"] if output.truncated else []
        return (VMX.known(configs, lines=lines, missing=tuple(missing)),)
    if output.tool_missing:
        return (VMX.unsupported("no VMware on this machine"),)
    if output.refused:
        return (VMX.not_run("reading the configurations was refused"),)
    return (VMX.unreadable("no line of a .vmx file in the output"),)


probe = Probe(
    __name__,
    title="VMware VMs",
    commands=(Command(_SH),),
    supplies=(VMX,),
    parse=parse,
    signature=Signature(
        typed=r"\S+\.vmx\b",
        starts=(r"^(?:\.encoding|config\.version|virtualHW\.version|displayName) = \"", r"^pciPassthru\d*\.\w+ = \""),
        belongs=r"^[A-Za-z.][\w.:]*\s*= \"",
    ),
    on_demand=True,
)
