"""The style sheets of a page as one file: a browser must have them all before it paints, and twenty-two
answers cost a slow one more than their bytes do (bench/RESULTS.md). A component keeps its own file; here
they stand one after another, nothing else is done to them."""

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static

# A later one may override an earlier one.
SHEETS = (
    *("tokens", "base", "shell", "screens", "components", "tables", "ladder", "doors", "findings"),
    *("menus", "dialogs", "standing", "folding", "evidence", "forms", "figures"),
    *("tree", "topology", "pairs", "reasoning", "paper", "people", "handoff"),
    *("measuring", "hand", "verifying", "account", "search", "help"),
)
_ADDRESS = re.compile(r"/static/styles\.([0-9a-f]{12})\.css")


def address() -> str:
    """With a digest of what it holds, so that a browser may keep it."""
    return static(f"styles.{_joined_sheets(_sheet_stats())[0]}.css")


def joined_styles(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Answers as for a file, without a session. An old page gets today's sheets, and is not to keep them."""

    def middleware(request: HttpRequest) -> HttpResponse:
        address_match = _ADDRESS.fullmatch(request.path_info)
        if not address_match or request.method not in {"GET", "HEAD"}:
            return get_response(request)
        digest, text = _joined_sheets(_sheet_stats())
        caching = "max-age=31536000, immutable" if address_match[1] == digest else "no-cache"
        headers = {"Cache-Control": f"public, {caching}"}
        return HttpResponse(text, content_type="text/css; charset=utf-8", headers=headers)

    return middleware


def _sheet_stats() -> tuple[tuple[int, int], ...]:
    """When each was written, in ns, and how many bytes it has: others, when one has changed."""
    stats = (_sheet_path(name).stat() for name in SHEETS)
    return tuple((file.st_mtime_ns, file.st_size) for file in stats)


@lru_cache(maxsize=1)
def _joined_sheets(now: tuple[tuple[int, int], ...]) -> tuple[str, bytes]:
    """Their digest and their bytes: read once, and again when one has changed."""
    text = b"".join(_sheet_path(name).read_bytes() for name in SHEETS)
    return sha256(text).hexdigest()[:12], text


def _sheet_path(name: str) -> Path:
    return Path(settings.STATIC_ROOT, "css", f"{name}.css")
