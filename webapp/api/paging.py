"""Lists in pages that neither repeat nor skip a row while others are added: a cursor names the last row
that was given, not how many were."""

import base64
import json
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import DateTimeField, Model, Q, QuerySet
from pydantic import BaseModel, Field

from webapp.api.problems import RefusedError

M = TypeVar("M", bound=Model)
T = TypeVar("T")
MOST = 200
NO_CURSOR = "That is no cursor of this list."
# OverflowError: the first or last day that there is, in another time zone.
_NO_CURSOR = (ValueError, TypeError, ValidationError, RecursionError, OverflowError)


class Asked(BaseModel):
    """cursor: `next` of the page before."""

    cursor: str = Field("", max_length=300)
    limit: int = Field(50, ge=1, le=MOST)


class Page(BaseModel, Generic[T]):
    """next: the cursor of the following page, null at the end."""

    items: list[T]
    next: str | None


def page(rows: QuerySet[M], query: Asked, *, by: str, newest_first: bool = True) -> tuple[list[M], str | None]:
    """The rows of one page in the order of `by`, then the key. Raises RefusedError for a cursor that is
    none."""
    sign, step = ("-", "lt") if newest_first else ("", "gt")
    if query.cursor:
        value, key = _decoded(query.cursor, rows.model, by)
        rows = rows.filter(Q(**{f"{by}__{step}": value}) | Q(**{by: value, f"pk__{step}": key}))
    records = list(rows.order_by(f"{sign}{by}", f"{sign}pk")[: query.limit + 1])
    if len(records) <= query.limit:
        return records, None
    last = records[query.limit - 1]
    return records[: query.limit], _encoded(getattr(last, by), last.pk)


def _encoded(value: Any, key: Any) -> str:
    text = json.dumps([value, key], default=_plain)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _plain(value: datetime | UUID) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _decoded(cursor: str, model: type[Model], by: str) -> tuple[Any, Any]:
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        value, key = json.loads(raw)
        if isinstance(model._meta.get_field(by), DateTimeField):
            value = datetime.fromisoformat(value).astimezone(UTC)
        return _whole(value), _whole(model._meta.pk.to_python(key))
    except _NO_CURSOR as error:
        raise RefusedError(422, NO_CURSOR) from error


def _whole(value: Any) -> Any:
    """A time, an id, or a number that the database can hold. Raises ValueError."""
    is_number = isinstance(value, int) and 0 <= value < 2**63
    if not is_number and not isinstance(value, datetime | UUID):
        raise ValueError(value)
    return value
