"""What the types of our resources share: metadata, references, durations, and the answer for a resource that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from slinkytui.backend.crds.core import BadShape

_DURATION: Final = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_PART: Final = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_SECONDS: Final = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "μs": Fraction(1, 10**6), "ms": Fraction(1, 1000),
    "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
}  # fmt: skip


class BadResource(NamedTuple):
    """Why a resource cannot be used: `path` is the field (spec.replicas), `message` one line for a condition."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Doubt(NamedTuple):
    """A value that is accepted, though it hardly says what was meant; `message` says what is done with it."""

    path: str
    message: str


class Shape(BaseModel):
    """Base of the typed parts of our resources: frozen, spelled in camel case, strict, null is absent, unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel, validate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {k: v for k, v in value.items() if v is not None} if isinstance(value, Mapping) else value


def _moment(value: Any) -> Any:
    """RFC 3339 to an aware time; what is none is left for the type to refuse."""
    if not isinstance(value, str):
        return value
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return value
    return found if found.tzinfo else value


Moment = Annotated[datetime, BeforeValidator(_moment)]


class Meta(Shape):
    """The metadata that matters to a controller."""

    name: str = Field(min_length=1)
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    deletion_timestamp: Moment | None = None


class LocalRef(Shape):
    """An object of the same namespace by name."""

    name: str = ""


class KeyRef(Shape):
    """One key of a Secret or a ConfigMap of the same namespace."""

    name: str = ""
    key: str
    optional: bool | None = None


def parse_duration(text: str) -> float:
    """Seconds of a duration such as 1h30m or 1.5s. Raises ValueError."""
    if text in ("0", "+0", "-0"):
        return 0.0
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration such as 30m or 1h30m")
    total = sum((Fraction(number.rstrip(".")) * _SECONDS[unit] for number, unit in _PART.findall(text)), Fraction(0))
    return float(-total if text.startswith("-") else total)


def _path(where: Iterable[int | str]) -> str:
    out = ""
    for step in where:
        out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else step
    return out


def why(problem: ValidationError) -> BadResource:
    """The first of what is wrong."""
    first = problem.errors(include_url=False)[0]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, BadShape):
        return BadResource(_path((*first["loc"], inner.path)), inner.message)
    message = "Required value" if first["type"] == "missing" else first["msg"].removeprefix("Value error, ")
    return BadResource(_path(first["loc"]), message)
