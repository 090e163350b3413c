"""The one declaration of what a session holds beside its rows: the bundle and the API read it."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

# As the database holds it; what is larger is no number of ours.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


@dataclass(frozen=True, kw_only=True)
class SessionFields:
    """By the names of the columns of `DiagnosisSession`, which says what they are."""

    title: str
    symptom: str
    workload: dict[str, Any]
    first_hypothesis: str
    own_words: str
    vmid: Number | None
    epoch: Number
    quorum: Number
    sample: str
