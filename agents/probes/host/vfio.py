"""VFIO: the backend of the VMs, and the errors of mapping their devices.

QEMU also maps the BARs of the other passed-through devices, and only warns when that fails (hw/vfio/listener.c);
type1 can map them, iommufd only by dma-buf. Proxmox keeps QEMU's messages in the start task's log and in the journal
under the name QEMU.
"""

from agents.facts import Reading
from agents.facts.host import HELD_REGIONS, VFIO_BACKEND, VFIO_ERRORS, HeldRegion, VfioBackend, VfioError
from agents.parsing import host_dmesg, libvirt
from agents.probe import Command, Output, Probe, Readings, Signature

_SH = r"""for m in vfio vfio_pci vfio_iommu_type1 iommufd; do [ -d /sys/module/$m ] && echo "module: $m"; done
for p in /proc/[0-9]*; do
  read -r comm 2>/dev/null <"$p/comm" || continue
  case $comm in kvm | qemu-kvm | qemu-system*) ;; *) continue ;; esac
  tr '\0' '\n' <"$p/cmdline" | grep -q vfio-pci || continue
  vm=$(tr '\0' '\n' <"$p/cmdline" | grep -x -A 1 -e -id | tail -n 1)
  echo "### process ${p#/proc/} of VM ${vm:-unknown}"
  for f in "$p"/fd/*; do readlink "$f"; done | grep -x -e /dev/vfio/vfio -e /dev/iommu | sort -u
  case $vm in '' | *[!0-9]*) continue ;; esac
  for t in $(ls -t /var/log/pve/tasks/?/UPID:*:qmstart:"$vm":* 2>/dev/null | head -n 5); do
    [ -r "$t" ] && ! grep -q 'already running' "$t" || continue
    echo "### start log of VM $vm"; head -c 65536 "$t"; echo
    break
  done
done
for l in /var/log/libvirt/qemu/*.log; do
  last=$(tail -c 262144 "$l" 2>/dev/null | sed -n '/: starting up/h; /: starting up/!H; ${x;p;}')
  case $last in *': shutting down'*) continue ;; *': starting up'*vfio-pci*) ;; *) continue ;; esac
  echo "### libvirt log $l"
  echo "$last" | grep -E 'dma_map|VFIO_MAP|IOAS_MAP|peer-to-peer' | tail -n 100
  echo 'log read to its end'
done
command -v journalctl >/dev/null && journalctl -b -n 1 >/dev/null 2>&1 || exit 0
echo '### journal of QEMU since boot'
journalctl -b --no-pager -o short-iso -t QEMU -t libvirtd 2>/dev/null |
  grep -iE 'vfio|iommu|peer' | tail -n 200
echo '### journal of the kernel since boot'
journalctl -k -b --no-pager -o short-iso 2>/dev/null | grep -E 'vfio.*reserve' | tail -n 50"""

_KERNEL = "### journal of the kernel since boot"


def parse(output: Output) -> Readings:
    return (_errors(output), _backend(output), _held_regions(output))


def _errors(output: Output) -> Reading[tuple[VfioError, ...]]:
    """The errors; an empty tuple only when the text holds a start log to its end."""
    if output.tool_missing:
        return VFIO_ERRORS.unsupported("no log of VM starts on this machine")
    start = host_dmesg.vfio_start(output.stdout)
    missing = () if start.followed else ("what QEMU said after the start (journalctl -t QEMU)",)
    if start.read and not output.truncated:
        return VFIO_ERRORS.known(start.errors, lines=start.lines, missing=missing)
    if any(host_dmesg.is_mapping_error(error) for error in start.errors):
        missing = ("the whole log of the VM's start",)
        return VFIO_ERRORS.known(start.errors, lines=start.lines, missing=missing)
    if start.errors:
        why = f"no log of a VM start in the output; the kernel says: {start.errors[0].text}"
        return VFIO_ERRORS.not_run(why, lines=start.lines)
    if output.refused:
        return VFIO_ERRORS.not_run("reading the logs was refused; root may")
    return VFIO_ERRORS.not_run("no log of a VM start in the output")


def _held_regions(output: Output) -> Reading[tuple[HeldRegion, ...]]:
    regions, lines = host_dmesg.held_regions(output.stdout)
    if regions:
        return HELD_REGIONS.known(regions, lines=lines)
    if _KERNEL in output.stdout and not output.truncated:
        return HELD_REGIONS.absent("nobody on the host held a region of a passed-through device")
    return HELD_REGIONS.not_run("the kernel's journal is not in the output")


def _backend(output: Output) -> Reading[VfioBackend]:
    if output.tool_missing:
        return VFIO_BACKEND.unsupported("no VFIO on this machine")
    answer = host_dmesg.vfio_backend(output.stdout)
    if answer is not None:
        backend, line, agreed = answer
        missing = () if agreed else ("which VM uses which backend: both are in use",)
        return VFIO_BACKEND.known(backend, lines=(line,), missing=missing)
    if libvirt.iommufd(output.stdout):
        return VFIO_BACKEND.known(VfioBackend.IOMMUFD)
    if output.refused:
        return VFIO_BACKEND.not_run("looking into the processes was refused; root may")
    if "vfio" in output.stdout:
        return VFIO_BACKEND.not_run("no running VM shows its backend; loaded modules do not tell")
    return VFIO_BACKEND.not_run("nothing about VFIO in the output")


probe = Probe(
    __name__,
    title="VFIO backend and errors",
    commands=(Command(_SH, root=True),),
    supplies=(VFIO_ERRORS, VFIO_BACKEND, HELD_REGIONS),
    parse=parse,
    signature=Signature(
        typed=r"journalctl\b.*(?:-t\s+QEMU|vfio)|dmesg\b.*vfio|lsmod\b.*vfio|qm\s+start\b|/pve/tasks/",
        starts=(
            r"vfio_(?:container_)?dma_map\(",
            r"PCI peer-to-peer transactions on BARs are not supported",
            r"IOMMU_IOAS_MAP failed",
            r"\bvfio-pci \S+: (?:BAR \d|vfio_ecap_init|resetting|reset done|Unable to change power)",
            r"^TASK (?:OK|ERROR)",
            r"^vfio(?:_\w+)?\s+\d+\s+\d+",
            r"^failed to reset PCI device",
        ),
        belongs=r"vfio|VFIO|iommu|IOMMU|peer-to-peer|^TASK |QEMU\[\d+\]|^kvm: |^qemu-system",
        score=0.8,
    ),
    timeout_s=30,
    slow=True,
    root_adds="the start logs, QEMU's messages and the devices each VM holds open",
)
