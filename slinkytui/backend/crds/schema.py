"""Structural schemas made from the types of our resources.

A field says with `needed`, `filled` or `blank` what the API server does where it is absent, and in words what it is for.
Bounds that only a type has are not in its schema: the server accepts what the upstream definitions accept, and what the
operator cannot use comes back from parsing with the field's path.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

Schema = dict[str, Any]
EITHER: Final[Schema] = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
OPEN: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ATOMIC_LIST: Final[Schema] = {"nullable": None, "x-kubernetes-list-type": "atomic"}
ATOMIC_MAP: Final[Schema] = {"x-kubernetes-map-type": "atomic"}
_PLAIN: Final[dict[Any, Schema]] = {
    str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}  # fmt: skip


class Cel(NamedTuple):
    """A rule in the Common Expression Language, and what is said when it does not hold."""

    rule: str
    message: str


class Shape(BaseModel):
    """Base of the typed parts of our resources: frozen, spelled in camel case, strict, null is absent, unknown fields are ignored."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, defer_build=True
    )
    rules: ClassVar[tuple[Cel, ...]] = ()
    more: ClassVar[Schema] = {}
    """What else the schema of this object says."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {k: v for k, v in value.items() if v is not None} if isinstance(value, Mapping) else value


@dataclass(frozen=True, eq=False)
class As:
    """Its schema is this one, or that of another type, whatever the field's own type."""

    made: Any


Int32 = Annotated[int, As({"type": "integer", "format": "int32"})]
Int64 = Annotated[int, As({"type": "integer", "format": "int64"})]


def needed(about: str, **schema: Any) -> Any:
    """A field that has to be there. `schema` goes over what the type says; None takes a word away."""
    return Field(description=about, json_schema_extra={"schema": schema, "required": True})


def filled(value: Any, about: str, *, required: bool = False, **schema: Any) -> Any:
    """A field that the API server fills in. `required` is for those that stand in the schema's list all the same."""
    told = {"default": value, **schema}
    return Field(default=value, description=about, json_schema_extra={"schema": told, "required": required})


def blank(value: Any, about: str, **schema: Any) -> Any:
    """A field that the API server leaves away; `value` is what that means."""
    return Field(default=value, description=about, json_schema_extra={"schema": schema, "required": False})


def schema_of(shape: type[Shape]) -> Schema:
    """The schema of an object of this type."""
    fields = {str(info.alias or name): info for name, info in shape.model_fields.items()}
    found: Schema = {"type": "object", "properties": {k: _field(fields[k]) for k in sorted(fields)}}
    needs = sorted(k for k, info in fields.items() if _told(info)["required"])
    if needs:
        found["required"] = needs
    if shape.rules:
        found["x-kubernetes-validations"] = [{"rule": one.rule, "message": one.message} for one in shape.rules]
    return {**found, **shape.more}


def _told(info: FieldInfo) -> dict[str, Any]:
    told = info.json_schema_extra
    if not isinstance(told, dict):
        raise TypeError(f"the field {info.alias} does not say what the API server does with it")
    return dict(told)


def _field(info: FieldInfo) -> Schema:
    made = next((m.made for m in info.metadata if isinstance(m, As)), None)
    found = _typed(info.annotation) if made is None else _given(made)
    words = {"description": info.description} if info.description else {}
    merged = {**words, **found, **_told(info)["schema"]}
    return {k: v for k, v in merged.items() if v is not None and v is not PydanticUndefined}


def _given(made: Any) -> Schema:
    return dict(made) if isinstance(made, Mapping) else schema_of(made)


def _typed(kind: Any) -> Schema:
    """Lists and maps may be null, as Go writes those that are empty."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        made = next((m.made for m in inner[1:] if isinstance(m, As)), None)
        return _typed(inner[0]) if made is None else _given(made)
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": _typed(inner[0]), "nullable": True}
    if origin is dict:
        return {"type": "object", "additionalProperties": _typed(inner[1]), "nullable": True}
    if origin in (Union, types.UnionType):
        kinds = [k for k in inner if k is not type(None)]
        return dict(EITHER) if set(kinds) == {int, str} else _typed(kinds[0])
    return _record(kind)


def _record(kind: Any) -> Schema:
    if not (isinstance(kind, type) and issubclass(kind, Shape)):
        raise TypeError(f"no schema for {kind!r}")
    return schema_of(kind)


@cache
def made(shape: type[Shape]) -> Schema:
    """The schema, made once. Nobody writes into it."""
    return schema_of(shape)
