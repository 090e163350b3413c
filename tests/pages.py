"""The HTML of an answer as a browser reads it, so that a phrase is found wherever the template's line breaks."""

from __future__ import annotations

import re

from django.http import HttpResponseBase

_VERBATIM = re.compile(r"(<(?P<tag>pre|textarea|script|style)\b.*?</(?P=tag)>)", re.DOTALL)
_BLOCKS = (
    "html|head|body|title|meta|link|base|main|section|article|aside|header|footer|nav|div|p|ul|ol|li|dl|dt|dd|h[1-6]"
    "|table|caption|thead|tbody|tfoot|tr|td|th|form|fieldset|legend|details|summary|dialog|figure|figcaption|hr|br"
    "|address|option|select|pre|script|style"
)
_AROUND_BLOCK = re.compile(rf" ?(</?(?:{_BLOCKS})(?: [^<>]*)?>) ?")
_PARTS = 3  # of a split at _VERBATIM: what stands between, the element, the name of its tag


def html_of(answer: HttpResponseBase) -> str:
    """The content of an answer; of a page, `squeezed`."""
    content: bytes = getattr(answer, "content", b"")
    text = content.decode()
    return squeezed(text) if answer.headers.get("Content-Type", "").startswith("text/html") else text


def squeezed(html: str) -> str:
    """One space for any whitespace, and none beside a block or before the end of a tag. Where whitespace is
    shown as it stands, as in <pre>, it stays."""
    parts = _VERBATIM.split(html)
    return "".join(
        _between(part) if index % _PARTS == 0 else part for index, part in enumerate(parts) if index % _PARTS != 2
    )


def _between(html: str) -> str:
    text = re.sub(r"\s+", " ", html).replace(" >", ">")
    return _AROUND_BLOCK.sub(r"\1", text)
