"""The shape of the pods and claims that stand inside our resources, and their canonical form.

The definitions keep pod templates, containers and claim templates as they were written. The hash of a revision is over
what Kubernetes' own types write back: unknown fields gone, empty optional fields gone, a few fields always there,
quantities canonical. The shapes are recorded from those types (scripts/record_pod_shape.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from slinkytui.backend.crds.quantity import parse_quantity

_FILE: Final = Path(__file__).parent / "core.json"


class BadShape(ValueError):
    """A value of another type than its field; `path` leads to it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


class Field(NamedTuple):
    """`kind` is a type's name behind `*`, `[]` or `{}`; `always` is written even when empty. Lists that `merges` are
    joined by `key`, or as plain values without one."""

    kind: str
    always: bool
    merges: bool
    key: str


@cache
def shapes() -> Mapping[str, Mapping[str, Field]]:
    """The fields of each type by the type's name."""
    return {
        name: {k: _field(text) for k, text in fields.items()} for name, fields in json.loads(_FILE.read_bytes()).items()
    }


def _field(text: str) -> Field:
    kind, merges, key = text.partition("#")
    return Field(kind.removesuffix("!"), kind.endswith("!"), bool(merges), key)


def canonical(value: Any, kind: str, path: str = "") -> Any:
    """The value as a `kind` writes itself, e.g. PodSpec, Container or []EnvVar. Raises BadShape."""
    if kind.startswith("*"):
        return None if value is None else canonical(value, kind[1:], path)
    if value is None:
        return _zero(kind)
    if kind.startswith("[]"):
        return [canonical(v, kind[2:], f"{path}[{n}]") for n, v in enumerate(_typed(value, list, "a list", path))]
    if kind.startswith("{}"):
        found = _typed(value, Mapping, "an object", path)
        return {str(k): canonical(v, kind[2:], f"{path}.{k}") for k, v in found.items()}
    plain = _PLAIN.get(kind)
    if plain:
        return plain(value, path)
    return _record(_typed(value, Mapping, "an object", path), kind, path)


def _record(value: Mapping[str, Any], kind: str, path: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, field in shapes()[kind].items():
        given = value.get(name)
        if given is None:
            if field.always:
                out[name] = _zero(field.kind)
            continue
        found = canonical(given, field.kind, f"{path}.{name}" if path else name)
        if field.always or field.kind.startswith("*") or not _is_empty(found):
            out[name] = found
    return out


def _is_empty(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, int | float | str | list | dict) and not value)


def _zero(kind: str) -> Any:
    if kind.startswith(("*", "[]", "{}")) or kind in ("time", "any", "bytes"):
        return None
    if kind in _ZERO:
        return _ZERO[kind]
    return _record({}, kind, "")


def _typed(value: Any, kind: Any, words: str, path: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadShape(path, f"must be {words}, not {_named(value)}")
    return value


def _named(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "this")


def _quantity(value: Any, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadShape(path, f"must be a quantity, not {_named(value)}")
    try:
        return str(parse_quantity(value))
    except ValueError as problem:
        raise BadShape(path, str(problem)) from None


def _either(value: Any, path: str) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise BadShape(path, f"must be a number or a text, not {_named(value)}")
    return value


_ZERO: Final[dict[str, Any]] = {
    "string": "", "int": 0, "float": 0, "byte": 0, "bool": False, "quantity": "0", "either": 0,
}  # fmt: skip
_PLAIN: Final[dict[str, Callable[[Any, str], Any]]] = {
    "string": lambda v, p: _typed(v, str, "a text", p),
    "bytes": lambda v, p: _typed(v, str, "a text", p),
    "time": lambda v, p: _typed(v, str, "a text", p),
    "bool": lambda v, p: _typed(v, bool, "true or false", p),
    "int": lambda v, p: _typed(v, int, "a whole number", p),
    "byte": lambda v, p: _typed(v, int, "a whole number", p),
    "float": lambda v, p: _typed(v, int | float, "a number", p),
    "any": lambda v, p: v,
    "quantity": _quantity,
    "either": _either,
}
