"""A NodeSet's status: upstream's counters, and conditions that say what is waited for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Any, Final, NamedTuple

from slinkytui.backend.controllers.nodeset.budget import is_available, is_healthy
from slinkytui.backend.controllers.nodeset.choice import Choice
from slinkytui.backend.controllers.nodeset.identity import is_old, label, slurm_name
from slinkytui.backend.controllers.nodeset.order import ready_since
from slinkytui.backend.controllers.nodeset.pins import wanted_pins
from slinkytui.backend.controllers.nodeset.world import DAEMON, HASH, World
from slinkytui.backend.controllers.objects.marks import selector_text
from slinkytui.backend.slurm.states import is_drain

OURS: Final = ("SlurmAvailable", "Available", "Progressing", "Draining", "Degraded")


class Told(NamedTuple):
    """A condition as it should be; `status` None leaves the one that is there alone."""

    type: str
    status: bool | None
    reason: str
    message: str


def wanted_status(world: World, choice: Choice, told: Sequence[Told], now: float, *, whole: bool) -> dict[str, Any]:
    """The status now. Counters of Slurm keep their value while it is unknown; `whole` says that the pods were dealt
    with, so that this generation counts as observed."""
    pods, spec = world.pods, world.spec
    ready = [p for p in pods if p.phase == "Running" and ready_since(p) is not None]
    available = [p for p in ready if now - (ready_since(p) or 0.0) >= spec.min_ready_s]
    desired = choice.desired if not world.deleting else (spec.replicas if spec.mode != DAEMON else len(pods))
    old = dict(world.status)
    out: dict[str, Any] = {
        **old,
        "replicas": sum(1 for p in pods if p.phase),
        "readyReplicas": len(ready),
        "availableReplicas": len(available),
        "updatedReplicas": sum(
            1 for p in pods if p.phase and p.meta.deleted is None and label(p, HASH) == world.update_hash
        ),
        "desired": desired,
        "unavailableReplicas": min(max(desired - len(available), 0), desired),
        "nodeSetHash": world.update_hash,
        "collisionCount": old.get("collisionCount") or 0,
        "ordinalToNode": wanted_pins(world),
        "selector": selector_text(world.key.name),
    }
    if whole:
        out["observedGeneration"] = world.generation
    if world.slurm.known:
        out.update(_slurm(world))
    out["conditions"] = _conditions(old.get("conditions") or [], told, world.generation, now)
    return {k: v for k, v in out.items() if v is not None}


def bad_status(world: World, now: float) -> dict[str, Any]:
    """The status of a NodeSet that cannot be read: what stood there, and why nothing is done. Its generation is not
    counted as observed."""
    stays = "; its workers stay as they are" if world.pods else ""
    told = [Told("Degraded", True, "BadSpec", f"{world.bad}{stays}"[:1024])]
    return {
        **world.status,
        "conditions": _conditions(world.status.get("conditions") or [], told, world.generation, now),
    }


def status_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one status to another: what is no longer said is taken away by name."""
    inner = {
        k: status_patch(old[k], v) if isinstance(v, Mapping) and isinstance(old.get(k), Mapping) else v
        for k, v in new.items()
    }
    return {**inner, **{k: None for k in old if k not in new}}


def _slurm(world: World) -> dict[str, int]:
    names = {slurm_name(p, world.key.name) for p in world.pods}
    states = [n.states for name, n in world.slurm.nodes.items() if name in names]
    return {
        "slurmIdle": sum("IDLE" in s for s in states),
        "slurmAllocated": sum("ALLOCATED" in s or "MIXED" in s for s in states),
        "slurmDown": sum("DOWN" in s for s in states),
        "slurmDrain": sum(is_drain(s) for s in states),
    }


def conditions_of(world: World, choice: Choice, draining: Sequence[str], trouble: Sequence[str]) -> list[Told]:
    """What the conditions say: whether Slurm answers, whether the size is reached, what drains, what is wrong."""
    slurm = world.slurm
    out = [
        Told("SlurmAvailable", True, "Answers", "")
        if slurm.known
        else Told("SlurmAvailable", False, "Unknown", f"{slurm.why}; nothing is deleted or undrained meanwhile")
    ]
    healthy = [p for p in world.pods if is_healthy(p)]
    usable = sum(is_available(p, world.key.name, slurm, 0, inf) for p in healthy)
    enough = usable >= choice.desired
    words = f"{len(healthy)} of {choice.desired} workers are ready"
    if usable != len(healthy):
        words += f", {usable} of them in Slurm"
    out.append(Told("Available", enough, "Ready" if enough else "TooFew", words))
    stale = [p for p in world.pods if p.meta.deleted is None and is_old(p, world)]
    moving = bool(choice.creates or draining or len(world.pods) != choice.desired or stale)
    waits = [r.text for r in choice.why if r.waits]
    text = waits[0] if waits else f"{len(world.pods)} pods, {choice.desired} wanted, {len(stale)} of an old revision"
    out.append(Told("Progressing", moving, "Moving" if moving else "Settled", text if moving else ""))
    out.append(Told("Draining", bool(draining), "Waits" if draining else "Nothing", _list(draining)))
    out.append(Told("Degraded", bool(trouble), "Trouble" if trouble else "AsExpected", _list(trouble)))
    return out


def _list(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - 5} more" if len(lines) > 5 else ""
    return ("; ".join(lines[:5]) + more)[:1024]


def _conditions(
    old: Sequence[Mapping[str, Any]], told: Sequence[Told], generation: int, now: float
) -> list[Mapping[str, Any]]:
    """The old list with ours brought up to date; a time moves only when the status does. Foreign ones stay."""
    held = {str(c.get("type")): c for c in old}
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for one in told:
        if one.status is None:
            continue
        before, status = held.get(one.type), "True" if one.status else "False"
        since = (
            before.get("lastTransitionTime", stamp) if before is not None and before.get("status") == status else stamp
        )
        same = before is not None and (before.get("status"), before.get("reason"), before.get("message")) == (
            status,
            one.reason,
            one.message,
        )
        if not same or before is None:
            held[one.type] = {
                "type": one.type, "status": status, "reason": one.reason, "message": one.message,
                "lastTransitionTime": since, "observedGeneration": generation,
            }  # fmt: skip
    return list(held.values())
