"""How a NodeSet goes: after its workers their records in Slurm, then the NodeSet itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slinkytui.backend.controllers.nodeset.causes import is_ours, is_true
from slinkytui.backend.controllers.nodeset.decision import DeleteRecord, Effect, Finalizers
from slinkytui.backend.controllers.nodeset.records import read_info
from slinkytui.backend.controllers.nodeset.world import DRAIN_FINALIZER, SKIP_DRAIN, World
from slinkytui.backend.models import SlurmNode
from slinkytui.backend.slurm.states import holds_node, is_busy, is_drain

_WAITED_S: Final = 600.0
"""How long a record that Slurm does not give up keeps its NodeSet."""


def finalizers(world: World, now: float) -> list[Effect]:
    """The NodeSet stays until its workers have gone one by one, and their records after them."""
    held = DRAIN_FINALIZER in world.finalizers
    if not world.deleting and not held:
        return [Finalizers((*world.finalizers, DRAIN_FINALIZER))]
    if world.deleting and held and not world.pods and not waited_for(world, now):
        return [Finalizers(tuple(f for f in world.finalizers if f != DRAIN_FINALIZER))]
    return []


def left_behind(world: World) -> Iterator[DeleteRecord]:
    """The records of workers that are gone, while their NodeSet is being deleted."""
    if not world.slurm.known:
        return
    for node in _mine(world):
        held = is_busy(node.states) or any(holds_node(j.states) for j in world.slurm.jobs.get(node.id.name, ()))
        if not held and ("DOWN" in node.states or is_drain(node.states)):
            yield DeleteRecord(node.id.name, "its NodeSet is deleted", orphaned=True)


def waited_for(world: World, now: float) -> list[str]:
    """Records that the NodeSet waits for."""
    if not world.slurm.expected or is_true(world.spec.annotations.get(SKIP_DRAIN, "")):
        return []
    return sorted(n.id.name for n in _mine(world) if now - max(world.deleted_at, _since(n)) < _WAITED_S)


def _since(node: SlurmNode) -> float:
    """Since when it says what it says."""
    return (node.reason_time or 0.0) if node.reason else 0.0


def _mine(world: World) -> Iterator[SlurmNode]:
    """Records of workers that are gone. A machine that somebody else drained keeps its record, and what it says."""
    there = {p.id.name for p in world.pods}
    for node in world.slurm.nodes.values() if world.deleting else ():
        info = read_info(node.comment)
        mine = (info.get("namespace"), info.get("nodeSetName")) == tuple(world.key) and info.get("podName") not in there
        foreign = is_drain(node.states) and bool(node.reason) and not is_ours(node.reason)
        if mine and not foreign:
            yield node
