"""What a simulated container logs. No process runs: the lines tell what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slinkytui.backend.sim.failures import Failed


def container(pod: dict[str, Any], asked: str) -> dict[str, Any]:
    """The status of the container that is asked for. Raises Failed (400) for none or one that has not started."""
    name = pod["metadata"]["name"]
    known = [c.get("name", "") for c in pod["spec"].get("containers") or ()]
    if asked and asked not in known:
        raise Failed(400, "BadRequest", f"container {asked} is not valid for pod {name}")
    if not asked and len(known) > 1:
        choice = f"a container name must be specified for pod {name}, choose one of: [{' '.join(known)}]"
        raise Failed(400, "BadRequest", choice)
    wanted = asked or known[0]
    states = (pod.get("status") or {}).get("containerStatuses") or ()
    found = next((s for s in states if s.get("name") == wanted), None)
    state = (found or {}).get("state") or {}
    if found is None or not (state.get("running") or state.get("terminated") or found.get("restartCount")):
        why = (state.get("waiting") or {}).get("reason", "ContainerCreating")
        raise Failed(400, "BadRequest", f'container "{wanted}" in pod "{name}" is waiting to start: {why}')
    return dict(found)


def lines(pod: dict[str, Any], status: dict[str, Any]) -> Sequence[tuple[str, str]]:
    """Times and texts, the oldest first."""
    state = status.get("state") or {}
    started = (state.get("running") or {}).get("startedAt") or pod["metadata"].get("creationTimestamp", "")
    node = pod["spec"].get("nodeName", "")
    out = [
        (started, f"{status['name']}: image {status.get('image', '')} on {node}"),
        (started, f"{status['name']}: simulated; there is no process behind this container"),
    ]
    waiting = state.get("waiting") or {}
    if waiting:
        count = status.get("restartCount", 0)
        out.append((started, f"{status['name']}: fatal: {waiting.get('reason')}, restarted {count} times"))
    elif status.get("ready") and any(o.get("kind") == "NodeSet" for o in pod["metadata"].get("ownerReferences") or ()):
        out.append((started, f"{status['name']}: ready, registered with slurmctld as {pod['metadata']['name']}"))
    return out


def text(found: Sequence[tuple[str, str]], *, stamps: bool, tail: int | None) -> bytes:
    kept = found if tail is None else found[len(found) - min(tail, len(found)) :]
    return "".join(f"{at} {line}\n" if stamps else f"{line}\n" for at, line in kept).encode()
