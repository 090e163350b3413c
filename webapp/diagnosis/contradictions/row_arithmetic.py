"""A printed row whose size, time and rate do not fit together within 5 %; it is left out.

The rate is the bytes ÷ the time, in KB or KiB, whichever the row itself fits.

Source: IEC 80000-13, decimal and binary prefixes.
"""

from collections.abc import Iterator

from agents.facts import ReadingKind
from agents.facts.bench import COPY
from webapp.diagnosis.case import Case
from webapp.diagnosis.claim import EvidenceRef
from webapp.diagnosis.rule import Clash, Rule


def check(case: Case) -> Iterator[Clash]:
    for item in case.facts.all(COPY):
        if item.reading.kind is not ReadingKind.KNOWN or item.reading.value is None:
            continue
        for row in item.reading.value.rejected:
            text = (
                f"“{row.text.strip()[:100]}”: size over time is {row.computed_gb_per_s:.1f} GB/s, "
                f"printed {row.printed_gb_per_s:.2f}; the row is left out"
            )
            yield text, (EvidenceRef(item.source, row.line),)


rule = Rule(__name__, "A row that fails its own arithmetic", check)
