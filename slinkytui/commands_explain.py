"""`slinkytui explain KIND/NAME`: what an operator makes of a NodeSet, a worker pod or a Slurm node now."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import sys

from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import NotFound, UsageError
from slinkytui.backend.models import Explained, Operator, RowId, Table
from slinkytui.backend.options import Options
from slinkytui.commands_get import is_named, plain
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
        table, row_id = _subject(engine, kind, name)
        return await engine.explain(table, row_id), _operator(engine)


def _subject(engine: Engine, kind: str, name: str) -> tuple[Table, RowId]:
    """The row that is meant. Raises NotFound with the nearest name."""
    table = {"nodeset": Table.NODESETS, "pod": Table.PODS, "node": Table.NODES}[kind]
    ids = list(engine.store.rows(table))
    found = [i for i in ids if is_named(i, name)]
    if not found:
        near = difflib.get_close_matches(name, [str(i) for i in ids], 1, 0.6)
        raise NotFound(f"{kind} {name} not found", hint=f"did you mean {near[0]}?" if near else "")
    if len(found) > 1:
        raise UsageError(f"{kind} {name} is not one thing", detail=", ".join(map(str, found)))
    return table, found[0]


def _operator(engine: Engine) -> str:
    """Who would do it: nothing is done by explaining."""
    now = engine.clock.now()
    held = [o for o in engine.store.rows(Table.OPERATORS).values() if isinstance(o, Operator) and o.holder]
    words = ", ".join(o.words(now) for o in held) or "nobody holds the operator's lease"
    return f"{words} (it does not write slurm.conf, refresh Tokens or label the active slurmctld)"
