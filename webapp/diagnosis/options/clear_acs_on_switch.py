"""Lets traffic between GPUs on one switch turn there, in place of a detour over the root port.

By `setpci` on the switch's downstream ports, or by the kernel's option pci=disable_acs_redir.

Source: PCI Express base specification, ACS; Linux kernel parameters.
"""

from agents.facts.host import ACS, GPU_PATHS
from webapp.diagnosis.case import Actor, Advice, Case, OptionStatus, Restart
from webapp.diagnosis.option import Option, advise, because

SOURCE = "PCI Express base specification, ACS"


def judge(case: Case) -> Advice:
    facts = case.facts
    if case.supported("acs_detour"):
        text = "GPUs share a switch whose ports send peer traffic over the root port"
        return advise(OptionStatus.RECOMMENDED, because(text, SOURCE, facts.refs(GPU_PATHS, ACS)))
    if facts.value(GPU_PATHS, where=lambda paths: paths and not any(path.switch for path in paths)):
        text = "no two GPUs share a switch, so there is no port at which traffic could turn"
        return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, facts.refs(GPU_PATHS, ACS)))
    driver = case.failed("driver")
    if driver:
        text = "the driver refuses P2P, so there is no traffic between peers that could take a detour"
        return advise(OptionStatus.NO_EFFECT, because(text, SOURCE, driver.evidence))
    return advise(OptionStatus.POSSIBLE, because("only where GPUs share a switch", SOURCE, facts.refs(GPU_PATHS, ACS)))


option = Option(
    __name__,
    title="Clear ACS redirect on the switch above the GPUs",
    phase="P3",
    actor=Actor.HOST_ADMIN,
    downtime=Restart.VM,
    isolation_cost="devices below the switch lose isolation; groups merge, and mappings must be made again",
    rollback="set the bits again, or boot without the parameter",
    verified_by="`lspci -vvv` shows ACSCtl without ReqRedir; bench.contention per pair",
    changes=("host.acs",),
    judge=judge,
    by_hand="On the host, as root, with the VM stopped, for each downstream port above a GPU: note "
    "`setpci -s PORT ECAP_ACS+0x6.w`, then `setpci -s PORT ECAP_ACS+0x6.w=0000`. It lasts until the next "
    "boot; the kernel option `pci=disable_acs_redir=PORT` keeps it.",
)
