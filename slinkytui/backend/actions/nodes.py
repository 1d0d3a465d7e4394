"""Drain and undrain of Slurm nodes. A drain has an owner: the plan says whose it is and never hides it."""

from __future__ import annotations

from slinkytui.backend.actions.registry import Scene, digest, last_end, moment, unique
from slinkytui.backend.errors import UsageError
from slinkytui.backend.models import Ask, Blast, FleetNode, Plan, PlanLine, Step
from slinkytui.backend.slurm.hostlist import fold
from slinkytui.backend.slurm.states import is_drain, node_word

OPERATOR_PREFIX = "slurm-operator:"
MANY_NODES = 10


def plan_drain(ask: Ask, scene: Scene) -> Plan:
    """Running jobs go on to their end; nothing new starts."""
    reason = ask.reason.strip()
    if not reason:
        raise UsageError("a drain wants a reason", hint="--reason TEXT")
    if reason.startswith(OPERATOR_PREFIX):
        raise UsageError(f"a person's reason may not begin with {OPERATOR_PREFIX!r}")
    if any(not c.isprintable() for c in reason):
        raise UsageError("a reason is one line of printable text")
    nodes = scene.nodes(ask)
    notes: list[str] = []
    steps = [_drain_step(n, reason, notes) for n in nodes]
    todo = [n for n, s in zip(nodes, steps, strict=True) if not s.skip]
    names = fold(n.id.name for n in todo)
    return Plan(
        ask=ask, title=f"Drain {_count(todo)}", summary=f"{_count(todo)} of {len(nodes)} to drain", steps=tuple(steps),
        blast=_blast(todo, scene), hash=_hash(ask, nodes), made=scene.now, headers=("NODE", "STATE", "JOBS", "K8S"),
        rows=_lines(nodes), notes=tuple(notes), warnings=_hidden(todo), confirm_count=len(todo) if len(todo) >= MANY_NODES else 0,
        command=f"scontrol update nodename={names} state=drain reason={reason!r}" if todo else "",
        inverse="node.undrain", refused="" if todo else "nothing to do: all are drained already", go=f"Drain {_count(todo)}",
    )  # fmt: skip


def _drain_step(node: FleetNode, reason: str, notes: list[str]) -> Step:
    name = node.id.name
    if node.slurm is None:
        return Step(name, "Slurm does not know this node", skip="Slurm does not know this node")
    if is_drain(node.slurm.states):
        owner = _owner(node)
        notes.append(f"{name} was drained by {owner} {node.slurm.reason!r}: nothing to do")
        return Step(name, "drained already", skip=f"drained by {owner}: {node.slurm.reason}")
    body = f'{{"state":["DRAIN"],"reason":{reason!r}}}'
    return Step(name, f"drain {name}", f"POST /slurm/…/node/{name}", body)


def plan_undrain(ask: Ask, scene: Scene) -> Plan:
    """A person may lift any drain; whose it is stands in the plan."""
    nodes = scene.nodes(ask)
    notes, warnings, steps = [], [], []
    for node in nodes:
        name = node.id.name
        if node.slurm is None:
            steps.append(Step(name, "Slurm does not know this node", skip="Slurm does not know this node"))
        elif not is_drain(node.slurm.states):
            steps.append(Step(name, "not drained", skip="it is not drained"))
        else:
            steps.append(Step(name, f"undrain {name}", f"POST /slurm/…/node/{name}", '{"state":["UNDRAIN"]}'))
            notes.append(f"{name} was drained by {_owner(node)} {_since(node)}: {node.slurm.reason or 'no reason'}")
            if node.slurm.reason.startswith(OPERATOR_PREFIX):
                warnings.append(f"{name}: the operator set this drain and may set it again")
            if node.cordoned:
                warnings.append(f"{name}: its Kubernetes side is still cordoned")
    todo = [n for n, s in zip(nodes, steps, strict=True) if not s.skip]
    names = fold(n.id.name for n in todo)
    return Plan(
        ask=ask, title=f"Undrain {_count(todo)}", summary=f"{_count(todo)} of {len(nodes)} to undrain", steps=tuple(steps),
        blast=Blast(nodes=len(todo)), hash=_hash(ask, nodes), made=scene.now, headers=("NODE", "STATE", "JOBS", "K8S"),
        rows=_lines(nodes), notes=tuple(notes), warnings=tuple(warnings),
        confirm_count=len(todo) if len(todo) >= MANY_NODES else 0,
        command=f"scontrol update nodename={names} state=undrain" if todo else "", inverse="node.drain",
        back_reason=_old_reason(todo),
        refused="" if todo else "nothing to do: none is drained", go=f"Undrain {_count(todo)}",
    )  # fmt: skip


def _old_reason(nodes: list[FleetNode]) -> str:
    """The reason that an undrain takes away, for whoever takes the undrain back."""
    found = {n.slurm.reason for n in nodes if n.slurm is not None}
    reason = found.pop() if len(found) == 1 else ""
    return reason if reason and not reason.startswith(OPERATOR_PREFIX) else "undrain taken back"


def _owner(node: FleetNode) -> str:
    return (node.slurm.reason_user if node.slurm else "") or "somebody"


def _since(node: FleetNode) -> str:
    at = moment(node.slurm.reason_time) if node.slurm else ""
    return f"at {at}" if at else "at a time that is not known"


def _count(nodes: list[FleetNode]) -> str:
    return f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"


def _blast(nodes: list[FleetNode], scene: Scene) -> Blast:
    hidden = any(n.jobs is None for n in nodes)
    jobs = {j for n in nodes for j in n.jobs or ()}
    gpus = [n.gpus_total for n in nodes]
    return Blast(
        len(nodes), 0, None if hidden else len(jobs), 0, unique(u for n in nodes for u in n.users),
        None if any(g is None for g in gpus) else sum(g or 0 for g in gpus),
        "at a time that is not known" if hidden else last_end(scene.jobs_on(nodes)),
    )  # fmt: skip


def _hidden(nodes: list[FleetNode]) -> tuple[str, ...]:
    return tuple(f"{n.id.name} is busy with jobs that this token may not see" for n in nodes if n.jobs is None)


def _lines(nodes: list[FleetNode]) -> tuple[PlanLine, ...]:
    return tuple(
        PlanLine((
            n.id.name, node_word(n.slurm.states) if n.slurm else "unknown",
            "?" if n.jobs is None else " ".join(map(str, n.jobs[:4])) or "–", n.k8s or "–",
        ))
        for n in nodes
    )  # fmt: skip


def _hash(ask: Ask, nodes: list[FleetNode]) -> str:
    return digest(ask.verb, ask.reason, [
        (n.id, is_drain(n.slurm.states), n.slurm.reason) if n.slurm else (n.id, None) for n in nodes
    ])  # fmt: skip
