"""The verbs that a face may offer on a row. What they do stands in `backend.actions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Verb:
    """`asks` is what a dialog asks before the plan. `key` is the default binding, "" for none."""

    id: str
    title: str
    key: str
    kind: str
    asks: tuple[Literal["reason", "replicas"], ...] = ()
    writes: bool = True


VERBS: Final[dict[str, Verb]] = {
    v.id: v
    for v in (
        Verb("nodeset.scale", "scale", "s", "nodesets", ("replicas",)),
        Verb("node.drain", "drain", "r", "nodes", ("reason",)),
        Verb("node.undrain", "undrain", "u", "nodes"),
        Verb("job.cancel", "cancel", "X", "jobs"),
        Verb("job.hold", "hold or release", "H", "jobs"),
        Verb("job.release", "release", "", "jobs"),
    )
}
