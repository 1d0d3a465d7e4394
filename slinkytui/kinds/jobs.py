"""Jobs as squeue tells them, with the reason why one waits in plain words. Pending tasks of an array are one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from slinkytui.backend import FleetNode, Job, NodeId, RowId, Table, expand_hostlist, is_pending, is_running, squeue_code
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, RowGroup, Section, Token
from slinkytui.kinds.states import job_state
from slinkytui.kinds.text import ago, clock, memory, moment, rough, when

_WHY = {
    "Resources": "waits for free resources",
    "Priority": "others are ahead",
    "Dependency": "waits for {dependency}",
    "DependencyNeverSatisfied": "dependency can never be met: {dependency}",
    "JobHeldUser": "held by its user",
    "JobHeldAdmin": "held by an admin",
    "BeginTime": "begins later",
    "PartitionDown": "partition {partition} is down",
    "PartitionNodeLimit": "asks for more nodes than {partition} allows",
    "PartitionTimeLimit": "asks for more time than {partition} allows",
    "PartitionConfig": "partition {partition} cannot run it",
    "ReqNodeNotAvail": "a node it needs is not available",
    "NodeDown": "a node it needs is down",
    "Reservation": "waits for reservation {reservation}",
    "Licenses": "waits for licences",
    "AssociationJobLimit": "account {account} is at its job limit",
    "AssocGrpGRES": "account {account} is at its GPU limit",
    "AssocMaxJobsLimit": "account {account} is at its job limit",
    "QOSMaxGRESPerUser": "user is at the GPU limit of QOS {qos}",
    "QOSMaxJobsPerUserLimit": "user is at the job limit of QOS {qos}",
    "QOSGrpGRES": "QOS {qos} is at its GPU limit",
    "JobArrayTaskLimit": "array runs as many tasks as it may",
    "Cleaning": "cleans up its last run",
}


def name_text(row: Job) -> str:
    """The id with the pending tasks of an array: 4822_[3-9]."""
    return f"{row.id}_[{row.tasks}]" if row.tasks and row.id.task is None else str(row.id)


def left_s(row: Job, ctx: Context) -> float | None:
    """Seconds until the time limit; None when it does not run or that is not known."""
    if not is_running(row.states) or row.start_time is None:
        return None
    if row.time_limit_min is None or row.time_limit_min == float("inf"):
        return row.time_limit_min
    return max(0.0, row.start_time + row.time_limit_min * 60 - ctx.now)


def why(row: Job, ctx: Context) -> str:
    """Why it waits or how it ended, in plain words; Slurm's own words where we know no better."""
    if row.flagged:
        return f"read in part: {row.flagged}"
    if is_pending(row.states):
        words = _WHY.get(row.state_reason)
        text = (
            words.format(
                dependency=row.dependency or "?",
                partition=row.partition,
                reservation=row.reservation or "?",
                account=row.account,
                qos=row.qos,
            )
            if words
            else row.state_reason
            if row.state_reason not in ("", "None")
            else ""
        )
        if row.state_description and not words:
            text = row.state_description
        starts = f": {when(row.start_time, ctx.now)}" if row.start_time and row.start_time > ctx.now else ""
        return text + starts
    code = job_state(row).code
    if code in ("F", "NF", "OOM", "TO", "BF", "DL", "CA", "PR"):
        ended = f", {ago(row.end_time, ctx.now)}" if row.end_time else ""
        if row.exit_signal:
            return f"signal {row.exit_signal}{ended}"
        return (
            f"exit {row.exit_code}{ended}"
            if row.exit_code
            else (row.state_reason.replace("None", "") + ended).lstrip(", ")
        )
    return ""


def _state(row: Job, ctx: Context) -> str:
    state = job_state(row)
    return f"{state.glyph} {state.code}"


def _token(row: Job, ctx: Context) -> Token:
    return job_state(row).token


def _nodes(row: Job, ctx: Context) -> tuple[RowId, ...]:
    known = ctx.lookup.rows(Table.NODES)
    names = expand_hostlist(row.nodes) if row.nodes else ()
    return tuple(i for i in (NodeId(row.id.cluster, n) for n in names) if i in known)


def _nodesets(row: Job, ctx: Context) -> tuple[RowId, ...]:
    known = ctx.lookup.rows(Table.NODES)
    found: dict[RowId, None] = {}
    for node_id in _nodes(row, ctx):
        node = known.get(node_id)
        if isinstance(node, FleetNode) and node.nodeset is not None:
            found[node.nodeset] = None
    return tuple(found)


def _detail(row: Job, ctx: Context) -> tuple[Section, ...]:
    state = job_state(row)
    return (
        Section(
            "Job",
            (
                Line("state", f"{state.word}  ({' '.join(row.states)})", state.token),
                Line("why", why(row, ctx) or "–", state.token if state.token != "text" else "text"),
                Line("name", row.name or "–"),
                Line("user", f"{row.user}  account {row.account or '–'}  QOS {row.qos or '–'}"),
                Line("partition", row.partition or "–"),
                Line("dependency", row.dependency or "–"),
                Line("comment", row.comment or "–"),
            ),
        ),
        Section(
            "Time",
            (
                Line("submitted", moment(row.submit_time)),
                Line(
                    "start",
                    f"{moment(row.start_time)}{' (expected)' if is_pending(row.states) and row.start_time else ''}",
                ),
                Line("end", moment(row.end_time)),
                Line("limit", clock(None if row.time_limit_min is None else row.time_limit_min * 60)),
                Line("left", clock(left_s(row, ctx))),
                Line("restarts", "–" if row.restarts is None else str(row.restarts)),
            ),
        ),
        Section(
            "Resources",
            (
                Line("nodes", f"{row.nodes or '–'}  ({row.node_count if row.node_count is not None else '–'})"),
                Line("GPUs", "–" if row.gpus is None else f"{row.gpus}  {' '.join(row.gres_detail)}"),
                Line("CPUs", "–" if row.cpus is None else str(row.cpus)),
                Line("memory", memory(row.memory_mib)),
                Line("asked", row.tres_req or "–"),
                Line("allocated", row.tres_alloc or "–"),
            ),
        ),
        Section(
            "Files",
            (
                Line("command", row.command or "–"),
                Line("directory", row.directory or "–"),
                Line("output", row.stdout or "–"),
                Line("errors", row.stderr or "–"),
            ),
        ),
    )


def _array(row: Job) -> RowGroup | None:
    """The array that a list folds a task into."""
    if row.id.task is None and not row.tasks:
        return None
    return RowGroup(row.id.cluster, f"{row.id.id}_[…]")


def _folded(group: RowGroup, rows: Sequence[Job], ctx: Context) -> dict[str, str]:
    """An array as one line: how many tasks stand where, what they hold together, why the rest waits."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts[job_state(row).code] += row.task_count or 1
    held = [r for r in rows if is_running(r.states)]
    waiting = next((r for r in rows if is_pending(r.states)), None)
    return {
        "id": group.name,
        "user": rows[0].user,
        "state": " ".join(f"{code} {n}" for code, n in sorted(counts.items(), key=lambda p: _STATE_ORDER.get(p[0], 9))),
        "gpus": str(sum(r.gpus or 0 for r in held)) if all(r.gpus is not None for r in held) else "–",
        "nodes": str(sum(r.node_count or 0 for r in held)),
        "partition": rows[0].partition,
        "account": rows[0].account,
        "name": rows[0].name,
        "why": why(waiting, ctx) if waiting is not None else "",
    }


_STATE_ORDER = {"R": 0, "CG": 1, "PD": 2, "F": 3, "CD": 4}


def _order(row: Job, ctx: Context) -> float:
    """Running first, then pending by priority, then what has ended, the newest first."""
    stage = _stage(row.states)
    if stage == "running":
        return row.id.id - 3e12
    if stage == "pending":
        return -1e12 - (row.priority or 0)
    return -float(row.end_time or 0)


@lru_cache(4_096)
def _stage(states: tuple[str, ...]) -> str:
    """A hundred thousand jobs are in a handful of states."""
    code = squeue_code(states)
    return "running" if code in ("R", "CG", "CF", "S") else "pending" if code == "PD" else "ended"


JOBS = Kind(
    id="jobs",
    title="Jobs",
    singular="job",
    table=Table.JOBS,
    aliases=("j", "jo"),
    columns=(
        Column("JOB", "id", lambda r, c: name_text(r), width=10),
        Column("USER", "user", lambda r, c: r.user or None, width=6, drop=2),
        Column("ST", "state", lambda r, c: job_state(r).code, _state, token=_token, width=4),
        Column("GPU", "gpus", lambda r, c: r.gpus, align="right"),
        Column("NODES", "nodes", lambda r, c: r.node_count, align="right", drop=4),
        Column("LEFT", "left_s", left_s, lambda r, c: rough(left_s(r, c)), align="right", drop=3, live=True),
        Column("PARTITION", "partition", lambda r, c: r.partition or None, wide=True, drop=5),
        Column("ACCOUNT", "account", lambda r, c: r.account or None, wide=True, drop=6),
        Column("NAME", "name", lambda r, c: r.name or None, wide=True, drop=7, width=12),
        Column("NODELIST", "node_list", lambda r, c: r.nodes or None, wide=True, drop=8),
        Column("WHY", "why", lambda r, c: why(r, c) or None, why, grow=True, drop=1),
    ),
    sort="priority_order",
    extra=(
        Column("CLUSTER", "cluster", lambda r, c: r.id.cluster),
        Column("STATES", "states", lambda r, c: r.states),
        Column("REASON", "reason", lambda r, c: r.state_reason or None),
        Column("QOS", "qos", lambda r, c: r.qos or None),
        Column("PRIORITY", "priority", lambda r, c: r.priority),
        Column("TASKS", "task_count", lambda r, c: r.task_count),
        Column("SUBMIT", "submit_time", lambda r, c: r.submit_time),
        Column("START", "start_time", lambda r, c: r.start_time),
        Column("END", "end_time", lambda r, c: r.end_time),
        Column("LIMIT", "time_limit_min", lambda r, c: r.time_limit_min),
        Column("CPUS", "cpus", lambda r, c: r.cpus),
        Column("EXIT", "exit_code", lambda r, c: r.exit_code),
        Column("HELD", "held", lambda r, c: r.hold),
        Column("ARRAY", "array", lambda r, c: r.id.id if r.id.task is not None or r.tasks else None),
        Column("COMMENT", "comment", lambda r, c: r.comment or None),
        Column("ORDER", "priority_order", _order, json=False),
    ),
    links=(Link("nodes", "nodes", _nodes), Link("NodeSet", "nodesets", _nodesets)),
    verbs=("job.cancel", "job.hold", "job.release"),
    detail=_detail,
    summary=lambda r, c: " ▸ ".join(
        p for p in (f"job {name_text(r)} {r.user}", f"{r.gpus} GPUs" if r.gpus else "", r.nodes) if p
    ),
    says=lambda r, c: " · ".join(p for p in (why(r, c), r.name, r.comment) if p),
    severity=_token,
    tables=(Table.NODES,),
    fold=_array,
    folded=_folded,
    owner="nodesets",
    other="nodes",
)
