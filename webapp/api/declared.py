"""Models of the API that repeat no field: declared by a frozen dataclass of the records, filled from rows by name."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar, get_type_hints

import pydantic
from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def declared(kind: type[Any], *, bounded: bool = False) -> Callable[[type[M]], type[M]]:
    """A class decorator: the model also has the fields of `kind`. bounded: a text has at most the `longest` of its
    metadata; of what comes in, since what is stored already is shown as it is."""
    types = get_type_hints(kind)

    def with_fields(model: type[M]) -> type[M]:
        added: dict[str, Any] = {
            field.name: (types[field.name], _bounds(field, bounded))
            for field in fields(kind)
            if field.name not in model.model_fields
        }
        return pydantic.create_model(
            model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **added
        )

    return with_fields


def _bounds(field: Field[Any], bounded: bool) -> Any:
    longest = field.metadata.get("longest") if bounded else None
    return pydantic.Field(... if field.default is MISSING else field.default, max_length=longest)


def filled(model: type[M], row: object, **values: Any) -> M:
    """The model with what the row holds under the same names. values: fields that the row has not, or holds otherwise;
    as text where the row holds a choice."""
    names = model.model_fields.keys() - values.keys()
    return model(**{name: getattr(row, name) for name in names}, **values)
