"""The shared parts of the probes of modprobe's configuration: the question, its signature, the reading."""

from agents.facts import Fact
from agents.facts.platform import ModuleConfig
from agents.parsing import modprobe
from agents.probe import Output, Readings

_NONE = "no options are configured"
# A pattern matches the folder's name, so that nothing here looks like a call of the tool.
SH = rf"""n=
for f in /etc/modprob[e].d/*.conf /run/modprob[e].d/*.conf /usr/lib/modprob[e].d/*nvidia*.conf; do
  [ -r "$f" ] || continue
  n=1; echo "### $f"; grep -E "^[[:space:]]*(options|blacklist|softdep|install)[[:space:]]" "$f"; done
[ "$n" ] || echo '{_NONE}'"""
TYPED = r"modprobe\.d\b"
STARTS = (
    r"^\s*options\s+[\w-]+\s+\w+=",
    r"^\s*(?:softdep\s+[\w-]+\s+(?:pre|post):|blacklist\s+[\w-]+\s*$)",
    r"^(?:options )?vfio[-_]pci\s+\w+=",
    r"^### \S*/modprobe\.d/",
)
BELONGS = r"^\s*(?:options|blacklist|softdep|install|alias)\s|^### |^\s*#|^vfio[-_]\w+\s+\w+="


def read_config(fact: Fact[ModuleConfig], output: Output) -> Readings:
    answer = modprobe.parse(output.stdout)
    if answer:
        config, lines = answer
        missing = ("the end of the output",) if output.truncated else ()
        return (fact.known(config, lines=lines, missing=missing),)
    if output.tool_missing:
        return (fact.unsupported("no configuration of modules on this machine"),)
    if output.refused:
        return (fact.not_run("reading modprobe's files was refused"),)
    if _NONE in output.stdout or "### " in output.stdout:
        return (fact.absent("modprobe's files set no option and blacklist nothing"),)
    return (fact.unreadable("no line of modprobe's configuration in the output"),)
