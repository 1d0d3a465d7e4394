"""What is said of a spec that cannot be followed, or not to the letter: on a condition with its field, and once as an event.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from slinkytui.backend.controllers.nodeset.decision import Effect, PatchStatus, Tell
from slinkytui.backend.controllers.nodeset.status import bad_status
from slinkytui.backend.controllers.nodeset.world import Strategy, World
from slinkytui.backend.crds.nodeset import NodeSetSpec, doubts

_FIELD: Final = re.compile(r"\bspec\.[A-Za-z][\w.\[\]\"-]*")
_SLURMD: Final = "spec.containers[0]"


def doubtful(spec: NodeSetSpec) -> tuple[str, ...]:
    """What is accepted and not followed to the letter, each with its field."""
    found = [f"{d.path}: {d.message}" for d in doubts(spec)]
    if Strategy(spec.update_strategy.type) is Strategy.SCHEDULED:
        found.append(
            "spec.updateStrategy.type: ScheduledUpdate is refused, no maintenance is reserved for it; workers of an old "
            "revision stay until they are deleted"
        )
    return tuple(found)


def is_said(world: World, text: str) -> bool:
    """Whether the NodeSet's condition says it already."""
    held = (c for c in world.status.get("conditions") or () if c.get("type") == "Degraded")
    return any(c.get("status") == "True" and text in str(c.get("message")) for c in held)


def say_once(world: World, reason: str, texts: Iterable[str]) -> tuple[Tell, ...]:
    """An event for each text that is news."""
    return tuple(Tell(reason, "Sync", t[:1000], warning=True) for t in texts if not is_said(world, t[:500]))


def say_bad(world: World, now: float) -> tuple[Effect, ...]:
    """For a NodeSet that cannot be read: its condition, and an event."""
    out: list[Effect] = [*say_once(world, "BadSpec", [world.bad])]
    status = bad_status(world, now)
    if status != dict(world.status):
        out.append(PatchStatus(status))
    return tuple(out)


def our_field(kind: str, text: str, template: str = "") -> str:
    """The field of the NodeSet that a server's words about a worker or its claim are about, "" if they name none."""
    found = _FIELD.search(text)
    if found is None:
        return ""
    path = found.group().rstrip(".")
    if kind == "claim":
        return f"spec.volumeClaimTemplates[{template}].{path}"
    if path.startswith(_SLURMD):
        return "spec.slurmd" + path.removeprefix(_SLURMD)
    return f"spec.template.{path}"
