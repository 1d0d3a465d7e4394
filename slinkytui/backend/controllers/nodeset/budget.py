"""How many workers may be away at a time. Pure."""

from __future__ import annotations

from slinkytui.backend.controllers.nodeset.identity import slurm_name
from slinkytui.backend.controllers.nodeset.order import ready_since
from slinkytui.backend.controllers.nodeset.world import SlurmSide
from slinkytui.backend.crds.nodeset import MaxUnavailable
from slinkytui.backend.models import Pod
from slinkytui.backend.slurm.states import is_down


def most_away(limit: int | str, total: int) -> int:
    """maxUnavailable over a total; 0 lets nobody go."""
    return MaxUnavailable(limit).of(total)


def has_ended(pod: Pod) -> bool:
    """Its phase is terminal: nothing runs in it any more."""
    return pod.phase in ("Failed", "Succeeded")


def is_healthy(pod: Pod) -> bool:
    """Running, ready and not on its way out."""
    return pod.phase == "Running" and ready_since(pod) is not None and pod.meta.deleted is None


def is_available(pod: Pod, nodeset: str, slurm: SlurmSide, min_ready_s: int, now: float) -> bool:
    """Healthy for long enough, and Slurm does not say otherwise: a pod may be ready while its node is invalid or down.

    While Slurm is unknown its last word counts.
    """
    since = ready_since(pod)
    if not is_healthy(pod) or since is None or now - since < min_ready_s:
        return False
    node = slurm.nodes.get(slurm_name(pod, nodeset))
    return node is not None and not is_down(node.states)
