"""The page about the API, made from the OpenAPI description that webapp.config.urls provides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from webapp.pages.help.pages import PAGES


@dataclass(frozen=True, slots=True)
class Entry:
    method: str
    path: str
    scope: str
    says: str


@dataclass(frozen=True, slots=True)
class Example:
    """command: for a shell with $PEERPATH, $PEERPATH_TOKEN and $SESSION."""

    title: str
    command: str


Describe = Callable[[], dict[str, Any]]
PREFIX = "/api/v1"
_AS_YOU = '-H "Authorization: Bearer $PEERPATH_TOKEN"'
_SESSION = '"$PEERPATH/api/v1/sessions/$SESSION'
EXAMPLES = (
    Example("Who you are", f'curl -sS {_AS_YOU} "$PEERPATH/api/v1/me"'),
    Example(
        "Open a session; sent twice, it is opened once",
        f'curl -sS {_AS_YOU} -H "Idempotency-Key: first-try" -H "Content-Type: application/json" \\\n'
        '  -d \'{"title": "Eight GPUs, slow"}\' "$PEERPATH/api/v1/sessions"',
    ),
    Example(
        "Give outputs or archives",
        f'curl -sS {_AS_YOU} -F file=@outputs.txt \\\n  {_SESSION}/evidence/files?role=guest"',
    ),
    Example("The diagnosis", f'curl -sS {_AS_YOU} {_SESSION}/diagnosis"'),
    Example(
        "Change what nobody changed meanwhile",
        f'curl -sS {_AS_YOU} -X PATCH -H \'If-Match: "0"\' -H "Content-Type: application/json" \\\n'
        f'  -d \'{{"own_words": "I think it is P2P."}}\' {_SESSION}"',
    ),
    Example("The report, redacted", f'curl -sS {_AS_YOU} -o report.md {_SESSION}/report/md"'),
)


@require_safe
def api_help(request: HttpRequest, describe: Describe, description: str) -> HttpResponse:
    """description: the address of the OpenAPI description that `describe` makes."""
    context = {
        "nav": "help",
        "here": PAGES["api"],
        "groups": _entries_by_tag(describe),
        "examples": EXAMPLES,
        "prefix": PREFIX,
        "description": description,
    }
    return TemplateResponse(request, "help/api.html", context)


@cache
def _entries_by_tag(describe: Describe) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for tag, entry in _all_entries(describe()):
        groups.setdefault(tag, []).append(entry)
    return groups


def _all_entries(description: dict[str, Any]) -> Iterator[tuple[str, Entry]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            scope = operation["security"][0]["Bearer"][0]
            says = operation["description"]
            yield (operation["tags"][0], Entry(method.upper(), path.removeprefix(PREFIX), scope, says))
