"""The forms in which an object is answered: whole, its metadata alone, a row of a table, or an event as events.k8s.io
has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from slinkytui.backend import crds
from slinkytui.backend.sim.cells import age, cells
from slinkytui.backend.sim.objects import SLINKY, Served
from slinkytui.backend.sim.schema import recording

Object = dict[str, Any]
_META: Final = "meta.k8s.io/v1"
_DEFINED: Final = {d.plural: d for d in crds.DEFINITIONS}
_NAME: Final = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}


@dataclass(frozen=True)
class View:
    """`form` is "", "Table" or "PartialObjectMetadata"; `include` says what of the object a row carries."""

    served: Served
    form: str = ""
    include: str = "Metadata"
    now: Callable[[], float] = lambda: 0.0

    @property
    def plain(self) -> bool:
        """Whether objects are answered as they are stored."""
        return not self.form and self.served.group != "events.k8s.io"

    def one(self, found: Object) -> Object:
        """A single object."""
        match self.form:
            case "Table":
                version = found["metadata"].get("resourceVersion", "")
                return self.table([found], {"resourceVersion": version})
            case "PartialObjectMetadata":
                return partial(found)
        return event(found) if self.served.group == "events.k8s.io" else found

    def many(self, found: Sequence[Object], meta: Object) -> Object:
        """A page of a list."""
        if self.form == "Table":
            return self.table(found, meta)
        if self.form == "PartialObjectMetadata":
            items = [partial(o) for o in found]
            return {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": meta, "items": items}
        return {
            "kind": f"{self.served.kind}List",
            "apiVersion": self.served.api,
            "metadata": meta,
            "items": [self.one(o) for o in found],
        }

    def table(self, found: Sequence[Object], meta: Object, *, headed: bool = True) -> Object:
        """`headed` False leaves out the columns, as every event of a watch after the first does."""
        columns = definitions(self.served) if headed else None
        rows = [{"cells": row(self.served, o, self.now()), "object": self._carried(o)} for o in found]
        return {"kind": "Table", "apiVersion": _META, "metadata": meta, "columnDefinitions": columns, "rows": rows}

    def _carried(self, found: Object) -> Object | None:
        match self.include:
            case "None":
                return None
            case "Object":
                return found
        return partial(found)


def wanted(accept: str) -> str:
    """The form that an Accept header asks for first among those that are served."""
    for one in accept.split(","):
        asked = re.search(r";\s*as=(\w+)", one)
        if asked is None:
            if "json" in one or "*/*" in one:
                return ""
        elif asked[1] in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList") and "json" in one:
            return asked[1].removesuffix("List")
    return ""


def partial(found: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": found["metadata"]}


def event(found: Object) -> Object:
    """A core event as events.k8s.io/v1 shows it."""
    moved = {
        "note": "message", "regarding": "involvedObject", "reportingController": "reportingComponent", "deprecatedSource": "source",
        "deprecatedFirstTimestamp": "firstTimestamp", "deprecatedLastTimestamp": "lastTimestamp", "deprecatedCount": "count",
    }  # fmt: skip
    same = ("metadata", "eventTime", "series", "reportingInstance", "action", "reason", "related", "type")
    out = {"kind": "Event", "apiVersion": "events.k8s.io/v1", **{k: found[k] for k in same if k in found}}
    return {**out, **{new: found[old] for new, old in moved.items() if old in found}}


def core_event(found: Object) -> Object:
    """The way back, for what is created as events.k8s.io/v1."""
    moved = {"message": "note", "involvedObject": "regarding", "reportingComponent": "reportingController"}
    out = {k: v for k, v in found.items() if k not in (*moved.values(), "apiVersion", "kind")}
    return {**out, **{old: found[new] for old, new in moved.items() if new in found}}


def definitions(served: Served) -> list[Object]:
    """The columns of a kind's table."""
    recorded = recording()["columns"].get(f"{served.api}/{served.plural}")
    if recorded is not None:
        return [{"description": "", **c} for c in recorded]
    own = _DEFINED[served.plural].columns if served.group == SLINKY else ()
    return [_NAME, *({"name": c.title, "type": c.type, "format": "", "description": c.description, "priority": c.priority}
                     for c in (*own, crds.AGE))]  # fmt: skip


def row(served: Served, found: Object, now: float) -> list[Any]:
    if served.group != SLINKY:
        return cells(served.plural, found, now)
    return [found["metadata"]["name"], *(_cell(found, c, now) for c in (*_DEFINED[served.plural].columns, crds.AGE))]


def _cell(found: Object, column: crds.Column, now: float) -> Any:
    value: Any = found
    for part in column.path.strip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return None
    return age(value, now) if column.type == "date" else value
