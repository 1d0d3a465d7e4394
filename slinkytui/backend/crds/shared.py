"""What the types of our resources share: metadata, references, overlays, durations, and the answer for a resource that cannot
be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from slinkytui.backend.crds.core import BadShape
from slinkytui.backend.crds.schema import ATOMIC_MAP, OPEN, As, Int64, Shape, blank, filled, needed

_DURATION: Final = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_PART: Final = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_SECONDS: Final = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "μs": Fraction(1, 10**6), "ms": Fraction(1, 1000),
    "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
}  # fmt: skip
_REASON: Final = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


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

    more = ATOMIC_MAP

    name: str = filled("", "Name of the object, in the same namespace.")


class KeyRef(Shape):
    """One key of a Secret or a ConfigMap of the same namespace."""

    more = ATOMIC_MAP

    name: str = filled("", "Name of the object, in the same namespace.")
    key: str = needed("The key in it.")
    optional: bool | None = blank(None, "Whether it may be missing.")


class External(Shape):
    """Where a daemon outside of Kubernetes listens."""

    host: Annotated[str, Field(min_length=1)] = needed("Its host name or address.")
    port: Annotated[int, Field(ge=1, le=65535)] = needed("Its port.")


class Labelled(Shape):
    labels: dict[str, str] = blank({}, "Labels to add.")
    annotations: dict[str, str] = blank({}, "Annotations to add.")


class PodTemplate(Shape):
    """Laid over the pods that the operator makes."""

    metadata: Labelled = blank(Labelled.model_construct(), "Labels and annotations of the pods.")
    spec: Annotated[dict[str, Any], As(OPEN)] = blank(
        {}, "A core/v1 PodSpec; it is not checked before pods are made of it."
    )


class Service(Shape):
    """Laid over the Service that the operator makes."""

    metadata: Labelled = blank(Labelled.model_construct(), "Labels and annotations of the Service.")
    spec: Annotated[dict[str, Any], As(OPEN)] = blank({}, "A core/v1 ServiceSpec; externalIPs are not taken.")
    port: int | None = blank(None, "Its port.")
    node_port: int | None = blank(None, "Its port on every node.")


class Condition(Shape):
    """A condition as all of Kubernetes has it."""

    last_transition_time: Moment = needed("Since when the status is this one.")
    message: str = needed("What is to say about it.", maxLength=32768)
    observed_generation: Int64 = blank(0, "The generation it was said of.", minimum=0)
    reason: str = needed("One word why.", minLength=1, maxLength=1024, pattern=_REASON)
    status: str = needed("Whether it holds.", enum=["True", "False", "Unknown"])
    type: str = needed("What may hold.", maxLength=316, pattern=_TYPE)


CONDITIONS: Final[dict[str, Any]] = {
    "nullable": None, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
}  # fmt: skip
Container = Annotated[dict[str, Any], As(OPEN)]
"""A core/v1 Container of which every field is optional; it is laid over the one that the operator makes."""


class PlainStatus(Shape):
    """The status of a kind that says nothing else."""

    conditions: list[Condition] = blank([], "What holds of it.", **CONDITIONS)


Kind = TypeVar("Kind", bound=Shape)


def read(kind: type[Kind], raw: Mapping[str, Any]) -> Kind | BadResource:
    """A resource as its type. Never raises: what cannot be read comes back as the field and the reason."""
    try:
        return kind.model_validate({**raw, "spec": raw.get("spec") or {}})
    except ValidationError as problem:
        return why(problem)


def parse_duration(text: str) -> float:
    """Seconds of a duration such as 1h30m or 1.5s. Raises ValueError."""
    if text in ("0", "+0", "-0"):
        return 0.0
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration such as 30m or 1h30m")
    total = sum((Fraction(number.rstrip(".")) * _SECONDS[unit] for number, unit in _PART.findall(text)), Fraction(0))
    return float(-total if text.startswith("-") else total)


def _seconds(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


Seconds = Annotated[float, BeforeValidator(_seconds), As({"type": "string"})]
"""Written as a duration, 1h30m."""


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
