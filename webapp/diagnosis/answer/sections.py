"""One diagnosis on a page for an engineer: every statement with its evidence, then what is open."""

from collections.abc import Iterator
from dataclasses import dataclass

from webapp.diagnosis.answer.headline import supported
from webapp.diagnosis.case import Bound, Gate, GateState, OptionStatus, Verdict, VerdictKind
from webapp.diagnosis.catalogue import all_hypotheses, all_options
from webapp.diagnosis.claim import Basis, Claim
from webapp.diagnosis.diagnosis import Diagnosis
from webapp.diagnosis.naming import ACTORS, PATHS, RESTARTS, in_words
from webapp.diagnosis.wording import factor, load, most, span, unless


@dataclass(frozen=True, slots=True)
class Section:
    """claims: statements with their evidence. notes: what is not known or to be done; no statements
    about causes."""

    title: str
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()


def for_an_engineer(result: Diagnosis) -> tuple[Section, ...]:
    """One page; sections without content are left out."""
    sections = (
        Section("Answer", (), (result.headline, *((result.summary,) if result.summary else ()))),
        _time(result),
        _gates(result),
        _verdicts(result, VerdictKind.SUPPORTED, "Supported"),
        _verdicts(result, VerdictKind.REFUTED, "Refuted"),
        _open(result),
        _contradictions(result),
        _tests(result),
        _advice(result, "Recommended", OptionStatus.RECOMMENDED),
        _advice(result, "Not to be done", OptionStatus.UNSAFE, OptionStatus.BLOCKED),
    )
    return tuple(section for section in sections if section.claims or section.notes)


def _time(result: Diagnosis) -> Section:
    claims = [claim for bound in result.bounds for claim in _of_bound(bound)]
    single = min(result.bounds, key=lambda b: b.concurrency, default=None)
    notes = [f"assumption: {text}" for text in (single.assumes if single else ())]
    missing = dict.fromkeys(text for bound in result.bounds for text in bound.missing)
    notes += [f"missing: {in_words(text)}" for text in missing]
    return Section("Where the time goes", tuple(claims), tuple(notes))


def _of_bound(bound: Bound) -> Iterator[Claim]:
    """Each quantity with its own range and basis."""
    at = f"at concurrency {bound.concurrency}"
    parts = (
        ("step_ms", f"{at} a step takes", bound.step_ms),
        ("floor_ms", f"{at} reading weights needs at least", bound.floor_ms),
        ("comm_ms", f"{at} communication takes", bound.comm_ms),
        ("unexplained_ms", f"{at} not explained is", bound.unexplained_ms),
    )
    for name, text, value in parts:
        if value is not None:
            basis, known = bound.basis.get(name, Basis.ESTIMATED), bound.known(name)
            typed_refs = tuple(ref for ref in bound.evidence if ref.is_typed)
            refs = typed_refs if known == "said" and typed_refs else bound.evidence
            yield Claim(f"{text} {span(value)} ms ({known})", refs, value, basis)
    if bound.max_gain_remove_comm:
        removed, direct = bound.max_gain_remove_comm, bound.max_gain_p2p
        text = f"{at} removing all communication gains at most {most(removed)}"
        text += f", P2P at most {most(direct)}" if direct else ""
        text += unless(bound)
        yield Claim(text, bound.evidence, direct or removed, Basis.ESTIMATED)


def _gates(result: Diagnosis) -> Section:
    """Judged gates as statements; the others together, since nothing is known of them."""
    judged = [g for g in result.ladder if g.state in {GateState.PASS, GateState.FAIL}]
    unknown = [g for g in result.ladder if g.state is GateState.UNKNOWN]
    claims = tuple(Claim(_of_gate(g), g.evidence, None, Basis.MEASURED) for g in judged)
    notes = [f"{g.gate} ({PATHS[g.path]}) unknown: {g.why}" for g in unknown]
    return Section("The ladder of peer-to-peer", claims, tuple(notes))


def _of_gate(gate: Gate) -> str:
    state = "passes" if gate.state is GateState.PASS else "fails"
    return f"{gate.gate} ({PATHS[gate.path]}) {state}: {gate.why}"


def _verdicts(result: Diagnosis, kind: VerdictKind, title: str) -> Section:
    """Supported ones in order of importance."""
    names = [n for n, v in result.verdicts.items() if v.kind is kind]
    if kind is VerdictKind.SUPPORTED:
        names = [hypothesis.id for hypothesis in supported(result.verdicts)]
    return Section(title, tuple(_claim_for(name, result.verdicts[name], kind) for name in names))


SAID = 3  # of what speaks for a hypothesis; its own page has all


def _claim_for(name: str, verdict: Verdict, kind: VerdictKind) -> Claim:
    """One statement a hypothesis: what speaks for it, or the first that speaks against it."""
    claims = verdict.for_ if kind is VerdictKind.SUPPORTED else verdict.against[:1]
    rest = [f"and {len(claims) - SAID} more"] if len(claims) > SAID else []
    texts = "; ".join([*(claim.text for claim in claims[:SAID]), *rest])
    refs = tuple(ref for claim in claims for ref in claim.evidence)
    bases = {claim.basis for claim in claims}
    basis = bases.pop() if len(bases) == 1 else Basis.INFERRED
    span_of = claims[0].range if len(claims) == 1 else None
    return Claim(f"{_claim_of(name)[:-1]}: {texts}", refs, span_of, basis)


def _claim_of(hypothesis_id: str) -> str:
    return next((h.claim for h in all_hypotheses() if h.id == hypothesis_id), hypothesis_id)


def _open(result: Diagnosis) -> Section:
    notes = []
    for name, verdict in result.verdicts.items():
        if verdict.kind is VerdictKind.OPEN:
            share = f" (up to {verdict.share_ms[1]:.1f} ms of a step)" if verdict.share_ms else ""
            deciding = f" Would tell: {'; '.join(map(in_words, verdict.missing[:3]))}."
            notes.append(f"{_claim_of(name)[:-1]}{share}.{deciding if verdict.missing else ''}")
    return Section("Open, and what would tell", (), tuple(notes))


def _contradictions(result: Diagnosis) -> Section:
    claims = tuple(Claim(item.text, item.evidence, None, Basis.INFERRED) for item in result.contradictions)
    return Section("What contradicts itself", claims)


def _tests(result: Diagnosis) -> Section:
    notes = tuple(
        f"{test.how} ({test.minutes} min; restarts {RESTARTS[test.restart]}; by {ACTORS[test.actor]}); "
        f"could decide: {'; '.join(map(in_words, test.decides))}"
        for test in result.next_tests
    )
    return Section("Next tests", (), notes)


def _advice(result: Diagnosis, title: str, *statuses: OptionStatus) -> Section:
    claims = []
    for option in all_options():
        advice = result.advice.get(option.id)
        if advice and advice.status in statuses and advice.why:
            first, effect = advice.why[0], advice.predicted_effect
            after = f" (after {advice.after.replace('_', ' ')})" if advice.after else ""
            text = f"{option.phase} {option.title}{after}: {first.text}"
            text += f"; predicted {factor(effect)} {load(result.bounds[0])}" if effect and result.bounds else ""
            claims.append(Claim(text, first.evidence, effect or first.range, first.basis))
    return Section(title, tuple(claims))
