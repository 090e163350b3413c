"""The clique without Proxmox: what to write where, each with its source. Texts to read, not scripts.

Read and reviewed November 2026. The same warning goes with all of them: a clique is a promise, and gates
4 to 7 of the ladder decide whether it is kept.
"""

from dataclasses import dataclass

from agents.facts.vm import VM_ID, VMS
from webapp.diagnosis.case import OptionStatus
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.situation.platform import in_kvm


@dataclass(frozen=True, slots=True)
class Instruction:
    """steps: what to do, in order. text: what to write, with capital words to be replaced. untried: the part that
    nobody has run here; the page shows it."""

    id: str
    title: str
    steps: tuple[str, ...]
    text: str
    rollback: str
    source: str
    untried: str = "Written from the source named; not run here."


_CHECK = "In the guest: `nvidia-smi topo -p2p r` and `w`, whether bytes arrive, a checked all-reduce."
_LIBVIRT = """\
<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  …
  <devices>
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <source><address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></source>
      <alias name='ua-gpu0'/>
    </hostdev>
    …
  </devices>
  <qemu:override>
    <qemu:device alias='ua-gpu0'>
      <qemu:frontend>
        <qemu:property name='x-nv-gpudirect-clique' type='unsigned' value='0'/>
      </qemu:frontend>
    </qemu:device>
    <qemu:device alias='ua-gpu1'>
      <qemu:frontend>
        <qemu:property name='x-nv-gpudirect-clique' type='unsigned' value='0'/>
      </qemu:frontend>
    </qemu:device>
  </qemu:override>
</domain>"""
_LIBVIRT_OLD = """\
<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  …
  <qemu:commandline>
    <qemu:arg value='-set'/>
    <qemu:arg value='device.hostdev0.x-nv-gpudirect-clique=0'/>
    <qemu:arg value='-set'/>
    <qemu:arg value='device.hostdev1.x-nv-gpudirect-clique=0'/>
  </qemu:commandline>
</domain>"""

INSTRUCTIONS: tuple[Instruction, ...] = (
    Instruction(
        "libvirt",
        "libvirt 8.2 or newer: qemu:override",
        (
            "`virsh dumpxml NAME > NAME.xml.before`",
            "`virsh edit NAME`: the namespace on the first line, an alias on each GPU's hostdev, and one "
            "qemu:device for each alias before </domain>",
            "take `<hidden state='on'/>` out of `<features><kvm>` if it is there",
            "`virsh shutdown NAME`, wait, `virsh start NAME`: a reboot inside the guest applies nothing",
            "see it on the running command line: `tr '\\0' ' ' </proc/PID/cmdline`",
            _CHECK,
        ),
        _LIBVIRT,
        "`virsh shutdown NAME; virsh define NAME.xml.before; virsh start NAME`",
        "libvirt, QEMU driver documentation, “Overriding properties of QEMU devices” (since 8.2.0)",
    ),
    Instruction(
        "libvirt-commandline",
        "libvirt before 8.2: qemu:commandline",
        (
            "`virsh dumpxml NAME > NAME.xml.before`",
            "`virsh edit NAME`: the namespace, and two qemu:arg for each GPU; the ids are those of the "
            "running command line (hostdev0, hostdev1, … or the alias)",
            "only where libvirt starts QEMU with -device KEY=VALUE: with -device {…JSON…} (QEMU 6.2 and "
            "libvirt 8.1 or newer) -set finds no such device, and the VM does not start",
            "`virsh shutdown NAME`, wait, `virsh start NAME`",
            _CHECK,
        ),
        _LIBVIRT_OLD,
        "`virsh shutdown NAME; virsh define NAME.xml.before; virsh start NAME`",
        "libvirt, QEMU driver documentation, “Pass-through of arbitrary QEMU commands”; libvirt issue 287",
    ),
    Instruction(
        "qemu",
        "QEMU by hand",
        (
            "add the property to the -device of each GPU, one function each",
            "no kvm=off in -cpu",
            "stop QEMU and start it again; read what it prints about vfio and dma_map",
            _CHECK,
        ),
        "-device vfio-pci,host=0000:01:00.0,x-nv-gpudirect-clique=0",
        "start QEMU with the old line",
        "QEMU hw/vfio/pci-quirks.c: clique ids 0 to 15, NVIDIA display-class devices alone",
    ),
)


def clique_instructions(result: Diagnosis) -> tuple[Instruction, ...]:
    """What to write where the VM is not Proxmox's; none where a clique is not advised, or not known to be.

    A libvirt domain gets libvirt's two forms; a KVM guest whose host was not seen, all of them.
    """
    facts = result.facts
    if result.advice["gpudirect_clique"].status is not OptionStatus.RECOMMENDED:
        return ()
    if not in_kvm(facts) or facts.value(VM_ID) is not None:
        return ()
    domains = [vm for vm in facts.value(VMS) or () if vm.id is None and vm.machine]
    if domains:
        return tuple(one for one in INSTRUCTIONS if one.id.startswith("libvirt"))
    return INSTRUCTIONS
