"""Targets of the command palette: pages, the newest sessions, words of the glossary."""

from collections.abc import Iterator

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from webapp.accounts.models import User
from webapp.diagnosis.reference.glossary import GLOSSARY
from webapp.pages.help.pages import PAGES as HELP_PAGES
from webapp.pages.shell import acting
from webapp.records.models import DiagnosisSession

# The number of sessions in the list; the first page finds older ones.
NEWEST = 50
PAGES = (
    ("Sessions, and a new one", "session:start"),
    ("Decisions", "decision:decisions"),
    ("For me: mentions and what waits for me", "decision:for_me"),
    ("How far the predictions held", "decision:calibration"),
)
OF_OPERATORS = (("SSH keys", "session:keys"),)
OF_ADMINISTRATORS = (("People", "account:people"), ("Stuck work", "session:stuck"))
Entry = dict[str, str]


@require_safe
def palette(request: HttpRequest) -> JsonResponse:
    """[{text, kind, href}], in the order of the list."""
    return JsonResponse(list(_palette_entries(acting(request))), safe=False)


def _palette_entries(user: User) -> Iterator[Entry]:
    pages = [*PAGES]
    pages += OF_OPERATORS if user.may_open_sessions else ()
    pages += OF_ADMINISTRATORS if user.is_staff else ()
    for text, name in pages:
        yield {"text": text, "kind": "page", "href": reverse(name)}
    for page in HELP_PAGES.values():
        yield {"text": page.title, "kind": "help", "href": page.url}
    for session in DiagnosisSession.objects.visible_to(user).only("title")[:NEWEST]:
        yield {"text": session.title, "kind": "session", "href": session.get_absolute_url()}
    for entry in GLOSSARY:
        href = f"{HELP_PAGES['words'].url}#{slugify(entry.term)}"
        yield {"text": entry.term, "kind": "word", "href": href}
