"""Opens the founding case as a session, stage by stage, labelled as reconstructed."""

import tomllib
from functools import cache

from agents.samples import load
from webapp.accounts.models import User
from webapp.diagnosis.facts import Facts
from webapp.records import intake
from webapp.records.models import DiagnosisSession
from webapp.records.sessions import session_open
from webapp.runs.outputs import facts_from, merged, read_sources
from webapp.runs.sources import Access, gather

TITLE = "Sample: GLM-5 on eight GPUs in a VM, {known}"
# What was known by then, by stage. Pages mark every such session as reconstructed.
KNOWN = {
    "first": "first measurements",
    "guest": "the guest looked at",
    "host": "the host’s side pasted",
    "after": "measured again",
}


@cache
def sample_facts(name: str) -> Facts:
    """What was known of the founding case at "kpro6@guest" and the like. Raises ValueError for others."""
    return facts_from(read_sources(gather([f"sample:{name}"], Access()), None, None))


def open_sample(name: str, *, owner: User) -> DiagnosisSession:
    """A session that holds every output of the sample up to its stage. Raises ValueError for a name
    that is not a sample."""
    outputs = load(name)
    stage = name.partition("@")[2]
    session = session_open(owner=owner, title=TITLE.format(known=KNOWN.get(stage, "all of it")))
    session.sample = name
    session.own_words = "Compute-bound on small-batch MoE expert kernels."
    session.first_hypothesis = "compute_bound"
    for output in outputs:
        if output.is_workload:
            session.workload = merged(session.workload, tomllib.loads(output.text))
    session.save()
    for output in outputs:
        if output.is_workload:
            continue
        session.epoch = output.epoch
        intake.take_text(
            session,
            output.text.encode(),
            user=owner,
            label=f"{output.stage}/{output.name}",
            origin="sample",
            hint=output.name,
        )
    session.save(update_fields=["epoch"])
    return session
