"""The pages of the help, in order, and the part of them that explains each page of the product."""

from dataclasses import dataclass

from django.urls import reverse


@dataclass(frozen=True, slots=True)
class HelpPage:
    """slug: its address below /help/. open: readable without signing in, because the holder of a link needs it."""

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

# The page's view: the part of the help that explains it.
EXPLAINED_BY = {
    "session:start": "operator#begin",
    "session:symptom": "operator#symptom",
    "session:hypothesis": "operator#hypothesis",
    "session:guest": "operator#guest",
    "session:path": "measuring#clocks",
    "session:host": "operator#host",
    "session:diagnosis": "reasoning#ladder",
    "session:summary": "operator#hand-on",
    "session:topology": "reasoning#topology",
    "session:log": "reviewer#log",
    "session:run": "operator#runs",
    "session:evidence": "reasoning#from-output",
    "session:assignment": "operator#unplaced",
    "session:host_key": "operator#host-key",
    "session:search": "operator#find",
    "session:keys": "operator#keys",
    "session:stuck": "administrator#stuck",
    "account:account": "operator#account",
    "account:second_factor": "operator#account",
    "account:people": "administrator#people",
    "notices:webhooks": "administrator#webhooks",
    "notices:session_webhooks": "operator#told",
    "decision:decide": "operator#decide",
    "decision:verify": "operator#verify",
    "decision:ab": "measuring#compare",
    "decision:decisions": "reviewer#decisions",
    "decision:decision": "reviewer#decisions",
    "decision:versions": "reviewer#decisions",
    "decision:discussion": "reviewer#discuss",
    "decision:for_me": "reviewer#for-me",
    "decision:calibration": "reviewer#calibration",
    "decision:changed": "measuring#compare",
    "link:plan": "operator#plan",
    "link:links": "operator#host",
    "link:asked": "host-admin#asked",
    "api_help": "api",
}


def explained_by(view_name: str) -> str:
    """The address of the help for the page of this view; "" without one."""
    slug, _, anchor = EXPLAINED_BY.get(view_name, "").partition("#")
    return f"{PAGES[slug].url}{'#' if anchor else ''}{anchor}" if slug else ""
