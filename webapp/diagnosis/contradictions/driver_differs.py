"""GPUs of one machine with different driver versions: the output is of more than one moment.

One kernel module drives all GPUs of a machine.

Source: NVIDIA driver README.
"""

from collections.abc import Iterator

from agents.facts.gpu import GPUS
from agents.facts.platform import DRIVER_VERSION
from webapp.diagnosis.case import Case
from webapp.diagnosis.rule import Clash, Rule


def check(case: Case) -> Iterator[Clash]:
    facts = case.facts
    versions = {gpu.driver for gpu in facts.value(GPUS) or () if gpu.driver}
    if len(versions) > 1:
        yield f"the GPUs report different drivers: {', '.join(sorted(versions))}", facts.refs(GPUS)
    loaded = facts.value(DRIVER_VERSION)
    if loaded and len(versions) == 1 and loaded not in versions:
        text = f"the loaded driver is {loaded}, nvidia-smi’s GPUs report {versions.pop()}"
        yield text, facts.refs(DRIVER_VERSION, GPUS)


rule = Rule(__name__, "Different driver versions on one machine", check)
