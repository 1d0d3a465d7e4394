"""What a worker's Slurm record should say: who it is, its topology and features, and that our own DOWN is over. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from slinkytui.backend.controllers.nodeset.causes import is_older, is_ours
from slinkytui.backend.controllers.nodeset.decision import DeleteRecord, UpdateNode
from slinkytui.backend.controllers.nodeset.identity import daemon_host, value
from slinkytui.backend.controllers.nodeset.order import ready_since
from slinkytui.backend.controllers.nodeset.world import (
    DAEMON,
    FEATURE_PREFIX,
    FEATURES,
    TERMINATING,
    TOPOLOGY,
    Prune,
    World,
)
from slinkytui.backend.models import KubeNode, Pod, SlurmNode
from slinkytui.backend.slurm.states import is_busy, is_drain

_GONE_S: Final = 60.0
"""A record without a pod stays this long at least: its pod may only be on its way."""

_FAREWELL_S: Final = 120.0
"""How long a worker that said that it terminates may still be seen as one that stays."""


def pod_info(pod: Pod, world: World) -> str:
    """The operator's note in a node's comment, byte for byte as upstream writes it."""
    found = {
        "namespace": pod.id.namespace, "podName": pod.id.name, "node": pod.node, "nodeSetName": world.key.name,
        "nodeSetUID": world.uid,
    }  # fmt: skip
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def read_info(comment: str) -> dict[str, Any]:
    try:
        found = json.loads(comment) if comment.startswith("{") else {}
    except (ValueError, RecursionError):
        found = {}
    return found if isinstance(found, dict) else {}


def repair(pod: Pod, node: SlurmNode, world: World, now: float, *, held: bool) -> UpdateNode | None:
    """The one request that makes the record of a healthy worker right, or None. `held`: a cause drains it now."""
    body: dict[str, Any] = {}
    what: list[str] = []
    info, old = pod_info(pod, world), read_info(node.comment)
    if old != read_info(info):
        body["comment"] = info
        what.append("who it is")
    if not held and _is_over(pod, node, old, now):
        body["state"] = ["RESUME"]
        what.append(f"its own '{node.reason}' is over")
    kube = world.nodes.get(pod.node)
    if kube is not None:
        topology = value(kube.meta.annotations, TOPOLOGY)
        if topology != node.topology and (topology or value(pod.meta.annotations, TOPOLOGY)):
            body["topology_str"] = topology
            what.append("its topology")
        available, active = _features(node.features, kube), _features(node.active_features, kube)
        if set(available) != set(node.features) or set(active) != set(node.active_features):
            body["features"], body["features_act"] = available, active
            what.append("its features")
    return UpdateNode(node.id.name, body, ", ".join(what)) if body else None


def _is_over(pod: Pod, node: SlurmNode, old: dict[str, Any], now: float) -> bool:
    """Whether the node is down or drained for a reason that has ended: our preStop hook's, or, for a worker that moved to
    another machine, one that is ours or Slurm's own."""
    if "DOWN" not in node.states or ready_since(pod) is None or "INVALID_REG" in node.states:
        return False
    if is_ours(node.reason) and is_older(node, pod):
        # What an operator said before this pod was made is about its predecessor.
        return True
    if node.reason.startswith(TERMINATING):
        # Newer than the pod: its own hook said so, or the clocks of the two servers differ. A pod that goes would be gone.
        return node.reason_time is not None and now - node.reason_time > _FAREWELL_S
    moved = bool(old.get("node")) and old["node"] != pod.node
    foreign = is_drain(node.states) and not is_ours(node.reason)
    return moved and not foreign and (is_ours(node.reason) or "Not responding" in node.reason)


def _features(found: tuple[str, ...], kube: KubeNode) -> list[str]:
    wanted = {t.strip() for t in value(kube.meta.annotations, FEATURES).split(",")} - {""}
    kept = {f for f in found if not f.startswith(FEATURE_PREFIX)}
    return sorted(kept | {FEATURE_PREFIX + t for t in wanted})


def defunct(world: World, now: float) -> Iterator[DeleteRecord]:
    """Records of workers of this NodeSet that are gone for good: down, silent, nothing on them, and no pod."""
    if world.spec.prune is not Prune.NOT_FOUND or not world.slurm.known:
        return
    there = {p.id.name for p in world.pods}
    for name, node in world.slurm.nodes.items():
        info = read_info(node.comment)
        if (info.get("namespace"), info.get("nodeSetName")) != tuple(world.key) or info.get("podName") in there:
            continue
        if not {"DOWN", "NOT_RESPONDING"} <= set(node.states) or is_busy(node.states) or world.slurm.jobs.get(name):
            continue
        if is_drain(node.states) and node.reason and not is_ours(node.reason):
            continue  # somebody holds on to this machine
        if node.reason_time is None or now - node.reason_time < _GONE_S:
            continue
        kube = world.nodes.get(str(info.get("node") or ""))
        if world.spec.mode == DAEMON and kube is not None and daemon_host(kube, world.spec.daemon_prefix) == name:
            continue  # the machine is there: its worker may come back
        yield DeleteRecord(name, f"its pod {info.get('podName')} is gone")
