"""The pages of the help, in order; and which of their parts explains each page of the product."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse


@dataclass(frozen=True, slots=True)
class HelpPage:
    """slug: its address below /help/. open: read without signing in, because who holds a link needs it."""

    slug: str
    title: str
    says: str
    open: bool = False

    @property
    def url(self) -> str:
        return reverse("api_help") if self.slug == "api" else reverse("help:page", args=[self.slug])


FOR = (
    HelpPage("operator", "For operators", "You have a machine that is slower than you expected."),
    HelpPage("reviewer", "For reviewers", "Somebody asks what you think of a case or a decision."),
    HelpPage("host-admin", "For the host’s admin", "You were sent a link about a host you run.", open=True),
    HelpPage("administrator", "For administrators", "You look after this installation and its people."),
)
METHOD = (
    HelpPage(
        "reasoning",
        "How it reasons",
        "The ladder, verdicts, what rules out what, and the arithmetic of the bound.",
        open=True,
    ),
    HelpPage("measuring", "How it measures", "Two clocks, controls, and what two H200 taught.", open=True),
)
LISTS = (
    HelpPage("probes", "Every probe", "What is asked, by which command, and what is left out.", True),
    HelpPage("benchmarks", "Every benchmark", "What loads the GPUs, for how long, and why.", True),
    HelpPage("rules", "Every rule", "Gates, hypotheses and contradictions, with their sources.", True),
    HelpPage("options", "Every option", "Changes, what they cost and how they are undone.", True),
    HelpPage("words", "Every word", "One word per thing, the same everywhere.", True),
)
PROGRAMS = (
    HelpPage("commands", "Command line", "Every command of ./run, with its arguments."),
    HelpPage("api", "API", "Sessions, evidence, runs and decisions, for programs."),
)
GROUPS = (("Who you are", FOR), ("The method", METHOD), ("To look up", LISTS), ("For programs", PROGRAMS))
PAGES = {page.slug: page for _, pages in GROUPS for page in pages}

# The page's view: what of the help explains it.
EXPLAINED_BY = {
    "triage:start": "operator#begin",
    "triage:symptom": "operator#symptom",
    "triage:hypothesis": "operator#hypothesis",
    "triage:guest": "operator#guest",
    "triage:path": "measuring#clocks",
    "triage:host": "operator#host",
    "triage:diagnosis": "reasoning#ladder",
    "triage:what_if": "reasoning#bound",
    "triage:summary": "operator#hand-on",
    "triage:topology": "reasoning#topology",
    "triage:log": "reviewer#log",
    "triage:run": "operator#runs",
    "triage:evidence": "reasoning#from-output",
    "triage:assignment": "operator#unplaced",
    "triage:host_key": "operator#host-key",
    "triage:search": "operator#find",
    "triage:keys": "operator#keys",
    "triage:stuck": "administrator#stuck",
    "triage:styleguide": "administrator#look",
    "accounts:account": "operator#account",
    "accounts:second_factor": "operator#account",
    "accounts:people": "administrator#people",
    "notices:webhooks": "administrator#webhooks",
    "notices:session_webhooks": "operator#told",
    "review:decide": "operator#decide",
    "review:verify": "operator#verify",
    "review:ab": "measuring#compare",
    "review:decisions": "reviewer#decisions",
    "review:decision": "reviewer#decisions",
    "review:versions": "reviewer#decisions",
    "review:discussion": "reviewer#discuss",
    "review:for_me": "reviewer#for-me",
    "review:calibration": "reviewer#calibration",
    "review:changed": "measuring#compare",
    "handoff:plan": "operator#plan",
    "handoff:links": "operator#host",
    "handoff:asked": "host-admin#asked",
    "api_help": "api",
}


def explained_by(view_name: str) -> str:
    """The address of what explains the page of this view; "" for one that is explained nowhere."""
    slug, _, anchor = EXPLAINED_BY.get(view_name, "").partition("#")
    return f"{PAGES[slug].url}{'#' if anchor else ''}{anchor}" if slug else ""
