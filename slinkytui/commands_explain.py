"""`slinkytui explain KIND/NAME`: what an operator makes of a NodeSet, a worker pod or a Slurm node now."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import sys
from collections.abc import Sequence

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.explain import explain
from slinkytui.backend.controllers.nodeset.observe import Observer
from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import NotFound, UsageError
from slinkytui.backend.models import Explained, FleetNode, FleetNodeSet, Key, Operator, Pod, Table
from slinkytui.backend.operate import look
from slinkytui.backend.options import Options
from slinkytui.commands_get import plain
from slinkytui.oneshot import settled_engine

KINDS = ("nodeset", "pod", "node")


def run_explain(options: Options, args: argparse.Namespace) -> int:
    kind, _, name = args.subject.partition("/")
    kind = kind.removesuffix("s")
    if kind not in KINDS or not name:
        near = difflib.get_close_matches(kind, KINDS, 1)
        raise UsageError(
            f"explain wants KIND/NAME, not {args.subject!r}",
            hint=f"did you mean {near[0]}/{name or 'NAME'}?" if near else "nodeset/NAME, pod/NAME or node/NAME",
        )
    found, operator = asyncio.run(_explained(options, kind, name, args.timeout))
    if args.output == "json":
        body = {
            "subject": found.subject, "operator": operator,
            "lines": [{"label": line.label, "text": line.text} for line in found.lines], "would": list(found.acts),
        }  # fmt: skip
        sys.stdout.write(json.dumps(body, ensure_ascii=True, indent=2) + "\n")
    else:
        sys.stdout.write(text(found, operator))
    return 0


def text(found: Explained, operator: str) -> str:
    """As a person reads it: aligned labels, then what would be done."""
    rows = [(line.label, line.text) for line in found.lines] + [("operator", operator)]
    width = max(len(label) for label, _ in rows)
    lines = [plain(found.subject), *(f"  {label.ljust(width)}  {plain(said)}" for label, said in rows)]
    lines.append("  would now do:" if found.acts else "  would now do nothing")
    lines += [f"    {plain(act)}" for act in found.acts]
    return "\n".join(lines) + "\n"


async def _explained(options: Options, kind: str, name: str, timeout_s: float) -> tuple[Explained, str]:
    async with settled_engine(options, timeout_s) as engine:
        observer = await look(engine)
        key, subject = _subject(engine, kind, name)
        found = explained(observer, key, subject, engine.clock.now())
        return found, _operator(engine)


def explained(observer: Observer, key: Key, subject: str, now: float) -> Explained:
    """`subject` is a pod's name, or "" for the NodeSet. Raises NotFound."""
    world, _, more = observer.observe(key)
    if world is None:
        raise NotFound(f"nodeset {key} not found")
    decision = decide(world, now)
    return explain(world, type(decision)((*more, *decision.effects), decision.why, decision.after), subject, now)


def _subject(engine: Engine, kind: str, name: str) -> tuple[Key, str]:
    rows = engine.store.rows
    if kind == "nodeset":
        sets = [s.id for s in rows(Table.NODESETS).values() if isinstance(s, FleetNodeSet)]
        return _only(kind, name, [(s, "") for s in sets if name in (s.name, str(s))], [str(s) for s in sets])
    if kind == "pod":
        pods = [p for p in rows(Table.PODS).values() if isinstance(p, Pod) and p.meta.owner_kind == "NodeSet"]
        found = [(Key(p.id.namespace, p.meta.owner_name), p.id.name) for p in pods if name in (p.id.name, str(p.id))]
        return _only(kind, name, found, [str(p.id) for p in pods])
    nodes = [n for n in rows(Table.NODES).values() if isinstance(n, FleetNode)]
    mine = [n for n in nodes if n.id.name == name]
    if mine and not any(n.pod and n.nodeset for n in mine):
        raise NotFound(f"node {name} has no worker pod of a NodeSet", hint=f"slinkytui get nodes {name} -o wide")
    return _only(kind, name, [(n.nodeset, n.pod.name) for n in mine if n.nodeset and n.pod], [n.id.name for n in nodes])


def _only(kind: str, name: str, found: Sequence[tuple[Key, str]], known: Sequence[str]) -> tuple[Key, str]:
    if not found:
        near = difflib.get_close_matches(name, known, 1, 0.6)
        raise NotFound(f"{kind} {name} not found", hint=f"did you mean {near[0]}?" if near else "")
    if len(found) > 1:
        raise UsageError(f"{kind} {name} is not one thing", detail=", ".join(f"{k}/{s}" for k, s in found))
    return found[0]


def _operator(engine: Engine) -> str:
    """Who would do it: nothing is done by explaining."""
    now = engine.clock.now()
    held = [o for o in engine.store.rows(Table.OPERATORS).values() if isinstance(o, Operator) and o.holder]
    words = ", ".join(o.words(now) for o in held) or "nobody holds the operator's lease"
    return f"{words} (it does not write slurm.conf, refresh Tokens or label the active slurmctld)"
