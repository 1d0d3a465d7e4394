"""`slinkytui do`: a verb planned, or planned and run."""

from __future__ import annotations

import argparse
import asyncio
import sys

import msgspec

from slinkytui.backend.actions.registry import planners
from slinkytui.backend.errors import PlanStale, UsageError
from slinkytui.backend.models import Ask, Plan, RunResult, StepResult, Table
from slinkytui.backend.options import Options
from slinkytui.cli import tell
from slinkytui.commands_get import nearest, plain
from slinkytui.kinds.render import inert
from slinkytui.oneshot import demand, settled_engine

_TABLES = {"node": Table.NODES, "job": Table.JOBS, "nodeset": Table.NODESETS}


def run_do(options: Options, args: argparse.Namespace) -> int:
    if args.if_plan and not args.yes:
        raise UsageError("--if-plan goes with --yes")
    known = planners()
    if args.verb not in known:
        raise UsageError(f"no verb {args.verb!r}", hint=nearest(args.verb, known, "verbs"))
    pairs = [text.partition("=") for text in args.set]
    bad = next((key for key, sep, _ in pairs if not sep or not key), None)
    if bad is not None:
        raise UsageError(f"--set wants KEY=VALUE, not {bad!r}")
    ask = Ask(args.verb, tuple(args.targets), {k: v for k, _, v in pairs}, args.reason, namespace=options.namespace)
    plan, result = asyncio.run(_do(options, ask, args))
    if args.output == "json":
        found = msgspec.to_builtins({"plan": plan, "result": result})
        sys.stdout.write(inert(msgspec.json.format(msgspec.json.encode(found)).decode(), "json") + "\n")
    else:
        sys.stdout.write(inert(plan_text(plan) if result is None else result_text(result), "text"))
    if plan.refused:
        tell(plan.refused)
        return 1 if args.yes else 0
    return 0 if result is None or result.ok else 1


async def _do(options: Options, ask: Ask, args: argparse.Namespace) -> tuple[Plan, RunResult | None]:
    async def told(result: StepResult) -> None:
        print(f"{'ok' if result.ok else 'FAILED'}  {plain(result.target)}  {plain(result.text)}", file=sys.stderr)

    async with settled_engine(options, args.timeout) as engine:
        table = _TABLES.get(ask.verb.partition(".")[0])
        if table is not None:
            demand(engine, table)
        plan = await engine.plan(ask)
        if not args.yes or plan.refused:
            return plan, None
        if args.if_plan and args.if_plan != plan.hash:
            raise PlanStale(f"the plan is {plan.hash} now", detail=plan.summary, hint="look at it with --plan")
        return plan, await engine.run(plan, told)


def plan_text(plan: Plan) -> str:
    """A plan for a person."""
    lines = [f"{plan.title}   plan {plan.hash}", f"  {plan.summary}", ""]
    if plan.rows:
        grid = [plan.headers, *(r.cells for r in plan.rows)]
        widths = [max(len(plain(line[i])) for line in grid) for i in range(len(plan.headers))]
        lines += [
            "  " + "  ".join(plain(c).ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in grid
        ]
        lines.append("")
    lines.append(f"  blast radius  {plan.blast.words()}")
    lines += [f"  warning       {plain(w)}" for w in plan.warnings] + [
        f"  note          {plain(n)}" for n in plan.notes
    ]
    if plan.command:
        lines.append(f"  runs          {plain(plan.command)}")
    return "\n".join(lines) + "\n"


def result_text(result: RunResult) -> str:
    return "".join(
        f"{r.target}  {'skipped: ' if r.skipped else '' if r.ok else 'FAILED: '}{plain(r.text)}\n"
        for r in result.results
    )
