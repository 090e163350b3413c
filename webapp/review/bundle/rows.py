"""Carries rows of the database into declared records and back: fields and columns of one name hold the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from django.db.models import DateTimeField, Field, Model

from webapp.accounts.models import ELSEWHERE, User
from webapp.review.bundle.format import PEOPLE, BundleError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Person = Callable[[str], User]


def record_of(kind: type[T], row: Model, **values: Any) -> T:
    """values: fields that the row has not, or holds otherwise."""
    names = [field.name for field in fields(kind) if field.name not in values]  # type: ignore[arg-type]
    return kind(**{name: _plain(name, getattr(row, name)) for name in names}, **values)


def _plain(name: str, value: Any) -> Any:
    if name in PEOPLE:
        return name_of(value)
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def columns_of(model: type[Model], record: DataclassInstance, person: Person) -> dict[str, Any]:
    """What the record says of the columns of `model`, but for those that lead to other rows: texts as long as the
    database takes them. Raises ValueError for a time or a choice that is none."""
    columns = {column.name: column for column in model._meta.concrete_fields}
    names = [f.name for f in fields(record) if f.name in columns]
    names = [name for name in names if name in PEOPLE or not columns[name].is_relation]
    return {name: _stored(columns[name], getattr(record, name), person) for name in names}


def _stored(column: Field[Any, Any], value: Any, person: Person) -> Any:
    if column.name in PEOPLE:
        return person(value) if value else None
    if isinstance(column, DateTimeField):
        return datetime.fromisoformat(value) if value is not None else None
    if column.choices and value not in dict(column.flatchoices) and not (column.blank and value == ""):
        raise ValueError(f"{value!r} is no {column.name}")
    return value[: column.max_length] if isinstance(value, str) else msgspec.to_builtins(value)


def decoded(files: dict[str, bytes], name: str, kind: type[T]) -> T:
    """Raises BundleError."""
    if name not in files:
        raise BundleError(f"It is no bundle: {name} is not in it.")
    return decoded_text(files[name], name, kind)


def decoded_text(text: bytes, name: str, kind: type[T]) -> T:
    """A text of the file `name`. Raises BundleError, also for what no record declares: it would be lost."""
    try:
        record = msgspec.json.decode(text, type=kind)
        whole = _within(msgspec.json.decode(text), msgspec.to_builtins(record))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BundleError(f"{name} cannot be read: {error}") from error
    if not whole:
        raise BundleError(f"{name} cannot be read: it has fields that this version does not know.")
    return record


def _within(plain: Any, record: Any) -> bool:
    """Whether every key of `plain` is one of the record's. What was left out, and has a default, may be more."""
    if isinstance(plain, dict):
        return all(key in record and _within(value, record[key]) for key, value in plain.items())
    return not isinstance(plain, list) or all(map(_within, plain, record))


def name_of(user: User | None) -> str:
    """As the bundle names the person; the account of somebody elsewhere by their own name."""
    return user.username.removesuffix(ELSEWHERE) if user else ""


def account_elsewhere(name: str) -> User:
    """The account that stands for a person of another instance: nobody can sign in with it, and it is
    never one of a person here, whatever name a bundle says."""
    user, made = User.objects.get_or_create(
        username=f"{name[:130]}{ELSEWHERE}", defaults={"is_active": False, "role": "viewer"}
    )
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user
