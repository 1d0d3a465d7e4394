"""The spec of a PersistentVolumeClaim, as far as it stands in the open in one of our resources."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from slinkytui.backend.crds.quantity import parse_quantity
from slinkytui.backend.crds.schema import ATOMIC_LIST, ATOMIC_MAP, EITHER, As, Shape, blank, needed

_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


def _amount(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    return str(parse_quantity(value))


Quantity = Annotated[str, BeforeValidator(_amount), As({**EITHER, "pattern": _QUANTITY})]
"""In its canonical form."""


class Source(Shape):
    more = ATOMIC_MAP

    api_group: str | None = blank(None, "API group of the object.")
    kind: str = needed("Kind of the object.")
    name: str = needed("Name of the object.")


class SourceRef(Shape):
    api_group: str | None = blank(None, "API group of the object.")
    kind: str = needed("Kind of the object.")
    name: str = needed("Name of the object.")
    namespace: str | None = blank(None, "Namespace of the object.")


class Resources(Shape):
    limits: dict[str, Quantity] = blank({}, "At most this much.", nullable=None)
    requests: dict[str, Quantity] = blank({}, "At least this much.", nullable=None)


class Term(Shape):
    key: str = needed("The label.")
    operator: str = needed("In, NotIn, Exists or DoesNotExist.")
    values: list[str] = blank([], "Values to compare with.", **ATOMIC_LIST)


class Selector(Shape):
    more = ATOMIC_MAP

    match_expressions: list[Term] = blank([], "All of these hold.", **ATOMIC_LIST)
    match_labels: dict[str, str] = blank({}, "All of these labels have these values.", nullable=None)


class ClaimSpec(Shape):
    access_modes: list[str] = blank([], "How the volume may be mounted, like ReadWriteMany.", **ATOMIC_LIST)
    data_source: Source | None = blank(None, "A snapshot or claim to start from.")
    data_source_ref: SourceRef | None = blank(None, "An object to start from.")
    resources: Resources = blank(Resources.model_construct(), "How large the volume is.")
    selector: Selector | None = blank(None, "Which volumes fit.")
    storage_class_name: str | None = blank(None, "The storage class; the cluster's own if absent.")
    volume_attributes_class_name: str | None = blank(None, "The class of the volume's attributes.")
    volume_mode: str | None = blank(None, "Filesystem or Block.")
    volume_name: str | None = blank(None, "A certain volume.")
