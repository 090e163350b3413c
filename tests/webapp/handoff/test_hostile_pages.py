"""10,080 hostile values from a host's configuration: no page gets an element or attribute from them, and no
download a name, a type or a line that runs. What a script is made of is tests/webapp/diagnosis/scripts'."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from html.parser import HTMLParser

import pytest
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agents.facts import View
from tests.pages import html_of
from tests.standin.pve_host import KPRO6
from tests.webapp.diagnosis.scripts.test_hostile_values import FRAGMENTS, VALUE, is_one_word
from tests.webapp.handoff.conftest import Sent
from webapp.accounts.models import Tally
from webapp.handoff.models import HandedScript
from webapp.records import intake
from webapp.records.sessions import session_open

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]

MARKUP = (
    *("<q7>", '"><q7>', "'><q7>", "</pre></script><q7>", "<script>q7()</script>", "<!--", "]]>"),
    *('" onq7="', "' onq7='", " onq7=q7 ", "javascript:q7()", "&lt;q7&gt;", "&#60;q7&#62;"),
    *("{{ q7 }}", "{% q7 %}", "{# q7", "<a href=//q7.example>", "<svg/onload=q7()>"),
)
HOSTILE = st.one_of(
    st.text(min_size=1, max_size=30),
    st.lists(st.sampled_from((*FRAGMENTS, *MARKUP)), min_size=1, max_size=4).map("".join),
)
KEYS = ("name", "args", "hostpci0", "scsi0", "description", "tags")
VMS, MAPPINGS = 40, 20
EXAMPLES = 36
VALUES = VMS * len(KEYS) + 2 * MAPPINGS
SCRIPTS = re.compile(r'href="(/(?:sessions/[^"]+/(?:plan|handed)|fetch)/[^"]+)"')
FILE_NAME = re.compile(r'attachment; filename="peerpath-[a-zA-Z0-9-]{1,60}\.(?:sh|txt|md)"')


def host_of(values: Sequence[str]) -> str:
    """Every VM's names, storage, args and texts, the mappings' ids and the hosts that have them."""
    left = iter(values)
    lines = []
    for vmid in range(128, 128 + VMS):
        own = {key: next(left) for key in KEYS}
        own |= {"hostpci0": f"mapping={own['hostpci0']}", "scsi0": f"{own['scsi0']}:vm-{vmid}-disk-0"}
        kept = [line for line in KPRO6.splitlines() if line.partition(":")[0] not in own]
        lines += [f"### /etc/pve/qemu-server/{vmid}.conf", *kept]
        lines += [f"{key}: {value}" for key, value in own.items()]
    lines.append("### /etc/pve/mapping/pci.cfg")
    for number in range(MAPPINGS):
        place = f"path=0000:{number:02x}:00.0,id=10de:2bb5,iommugroup={number}"
        lines += [next(left), f"\tmap node={next(left)},{place}"]
    assert next(left, None) is None
    return "\n".join(lines)


class Read(HTMLParser):
    """What a browser makes of a page, as far as values could add to it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.odd: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        leads = [names.get(name) or "" for name in ("href", "src", "action", "formaction")]
        if (
            "q7" in tag
            or (tag == "script" and "src" not in names)
            or any(name.startswith("on") for name in names)
            or any(re.match(r"\s*(?:javascript:|//)", lead, re.I) or "q7" in lead for lead in leads)
        ):
            self.odd.append(self.get_starttag_text() or tag)

    def handle_comment(self, data: str) -> None:
        self.odd.append(f"<!--{data}")

    def handle_data(self, data: str) -> None:
        self.words += data


def check_download(browser: Client, path: str) -> None:
    answer = browser.get(path)
    if answer.status_code == 302:  # no script for such a machine; the page says why
        return
    text = html_of(answer)
    assert answer.status_code == 200
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Type"].startswith("text/plain")
    shown = "show=" in path  # to look at, not to keep
    assert shown or FILE_NAME.fullmatch(answer.headers["Content-Disposition"])
    assert HandedScript.objects.filter(sha256=hashlib.sha256(text.encode()).hexdigest()).exists()
    if "\nvmid='" in text:  # a phase's; the collector is made of no value
        assert all(is_one_word(line) for line in text.splitlines() if VALUE.match(line))


@settings(
    max_examples=EXAMPLES,
    database=None,
    phases=[Phase.generate],  # made smaller, 280 values would take minutes
    suppress_health_check=list(HealthCheck),
)
@given(values=st.lists(HOSTILE, min_size=VALUES, max_size=VALUES))
def test_no_value_becomes_part_of_a_page_or_download(
    sent: Sent, erika: Client, operator: Client, values: list[str]
) -> None:
    Tally.objects.all().delete()  # she fetches more than one person would
    link = sent.link
    session = link.session = session_open(owner=link.made_by, title=values[0][:80])
    session.vmid = 128
    session.save()
    link.person, link.purpose, link.phases = values[1][:80], values[2], ["P2", "P3"]
    link.save()
    found = intake.take_text(session, host_of(values).encode(), user=session.owner, view=View.HOST)
    kept = f"{found.evidence.reader}@{found.evidence.sha256[:12]}"
    pages = ("host", "plan", "links", f"evidence/{kept}")
    paths = [(operator, f"/sessions/{session.pk}/{page}") for page in pages]
    for browser, path in (*paths, (erika, sent.page)):
        answer = browser.get(path)
        assert answer.status_code == 200, path
        text = html_of(answer)
        assert not Read(text).odd, (path, Read(text).odd[:3])
        for script in SCRIPTS.findall(text):
            check_download(browser, script)


def test_what_is_hostile_is_shown_as_text(sent: Sent, operator: Client) -> None:
    session = sent.link.session
    text = host_of(["<q7>"] * VALUES)
    kept = intake.take_text(session, text.encode(), user=session.owner, view=View.HOST).evidence
    for page in ("host", f"evidence/{kept.reader}@{kept.sha256[:12]}"):
        assert "&lt;q7&gt;" in html_of(operator.get(f"/sessions/{session.pk}/{page}"))


def test_the_check_sees_what_breaks_out() -> None:
    assert EXAMPLES * VALUES >= 10_000
    for text in ("<p><q7>", '<p title="" onq7="">', "<script>q7</script>", "<!-- q7 -->"):
        assert Read(text).odd
    for lead in ("javascript:q7()", "//q7.example", " JavaScript:x"):
        assert Read(f'<a href="{lead}">').odd
    assert not Read('<p>&lt;q7&gt; &amp;lt;q7&amp;gt;</p><script src="/static/a.js"></script>').odd
