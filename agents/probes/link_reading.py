"""The shared parts of the two probes of PCI Express links: the question, its signature, the reading."""

from agents.facts import Fact
from agents.facts.gpu import PcieLink
from agents.parsing import pcie_link
from agents.probe import Output, Readings, Signature

SYSFS = r"""cd /sys/bus/pci/devices 2>/dev/null && ls ./*/vendor >/dev/null 2>&1 || exit 127
for v in $(grep -l 0x10de ./*/vendor); do
  d=${v%/vendor}
  echo "${d#./} vendor=0x10de" $(cd "$d" && grep -s . class current_link_* max_link_* |
    sed 's/^current_link_//; s/^max_link_/max_/; s/:/=/; s/ /_/g')
done
echo 'devices seen'"""
SIGNATURE = Signature(
    typed=r"lspci\b.*(?:\s-\w*vv|Lnk)|(?:current|max)_link_(?:speed|width)",
    starts=(r"^[0-9a-f]{4}:\S+ vendor=0x10de class=0x\w+ speed=", r"^\s*Lnk(?:Cap|Sta):\s"),
    belongs=r"^[0-9a-f]{4}:\S+ vendor=|^\s*Lnk\w+:|^devices seen$",
    score=0.7,
    any_machine=True,
    with_command=True,
)


def read_links(fact: Fact[tuple[PcieLink, ...]], output: Output, behind: str) -> Readings:
    """behind: the reason to give when there are GPUs and none of them shows a link."""
    links, lines = pcie_link.from_sysfs(output.stdout)
    if not links:
        links, lines = pcie_link.from_lspci(output.stdout)
    telling = [link for link in links if link.width is not None or link.gen is not None]
    if telling:
        silent = [str(link.pci_address) for link in links if link not in telling]
        gaps = [f"the link of {address}" for address in silent]
        gaps += ["the end of the output"] if output.truncated else []
        if any(link.pci_address is None for link in telling):
            gaps.append("which device it is")
        return (fact.known(links, lines=lines, missing=tuple(gaps)),)
    if links:
        return (fact.absent(behind, lines=lines),)
    if output.tool_missing:
        return (fact.unsupported("no PCI bus in sysfs"),)
    if output.refused:
        return (fact.not_run("the capabilities of PCI devices are shown to root only"),)
    if "devices seen" in output.stdout:
        return (fact.absent("no NVIDIA GPU on the PCI bus"),)
    return (fact.unreadable("no GPU with a link in the output"),)
