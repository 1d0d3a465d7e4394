"""Which Kubernetes node each ordinal is pinned to. A pin moves only when its node is gone or a person takes it away. Pure."""

from __future__ import annotations

from slinkytui.backend.controllers.nodeset.identity import mode_of, ordinal
from slinkytui.backend.controllers.nodeset.world import STATEFUL, World


def wanted_pins(world: World) -> dict[str, str] | None:
    """The status's ordinalToNode, None without pinning. A cordon, a taint or a node that is not ready moves nobody; without
    any node to be seen, nothing is known of them."""
    if not world.spec.pin or world.spec.mode != STATEFUL:
        return None
    out = held_pins(world)
    for pod in world.pods:
        at = ordinal(pod.id.name)
        if pod.phase == "Running" and at >= 0 and pod.node in world.nodes and mode_of(pod, world.key.name) == STATEFUL:
            out.setdefault(str(at), pod.node)
    return dict(sorted(out.items(), key=lambda pin: int(pin[0])))


def held_pins(world: World) -> dict[str, str]:
    """The pins that are written down and whose nodes are there."""
    found = world.status.get("ordinalToNode")
    pins = found if isinstance(found, dict) else {}
    return {
        str(at): str(node) for at, node in pins.items()
        if str(at).isdecimal() and (not world.nodes or node in world.nodes)
    }  # fmt: skip
