"""The smaller kinds: partitions, reservations, events, problems and the journal."""

from __future__ import annotations

from slinkytui.backend import (
    Event,
    JournalEntry,
    Key,
    NodeId,
    Partition,
    Problem,
    Reservation,
    RowId,
    Severity,
    Table,
    expand_hostlist,
)
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, Section, Token
from slinkytui.kinds.text import age, clock, moment, when


def _partition_token(row: Partition, ctx: Context) -> Token:
    return "text" if row.states in ((), ("UP",)) else "warning"


def _known_nodes(hostlist: str, cluster: str, ctx: Context) -> tuple[RowId, ...]:
    known = ctx.lookup.rows(Table.NODES)
    names = expand_hostlist(hostlist) if hostlist else ()
    return tuple(i for i in (NodeId(cluster, n) for n in names) if i in known)


def _minutes(value: float | None) -> str:
    return clock(None if value is None else value * 60)


PARTITIONS = Kind(
    id="partitions",
    title="Partitions",
    singular="partition",
    table=Table.PARTITIONS,
    aliases=("part", "p"),
    columns=(
        Column("NAME", "name", lambda r, c: r.id.name, width=12),
        Column("STATE", "state", lambda r, c: " ".join(r.states).lower() or None, token=_partition_token, width=8),
        Column("NODES", "nodes", lambda r, c: r.total_nodes, align="right"),
        Column("CPUS", "cpus", lambda r, c: r.total_cpus, align="right", drop=4),
        Column(
            "MAX TIME",
            "max_time_min",
            lambda r, c: r.max_time_min,
            lambda r, c: _minutes(r.max_time_min),
            align="right",
            drop=3,
        ),
        Column("QOS", "qos", lambda r, c: r.qos or None, drop=5),
        Column("TIER", "tier", lambda r, c: r.priority_tier, align="right", wide=True, drop=6),
        Column("NODELIST", "node_list", lambda r, c: r.nodes or None, grow=True, drop=1),
    ),
    extra=(
        Column("CLUSTER", "cluster", lambda r, c: r.id.cluster),
        Column("DEFAULT", "default", lambda r, c: r.default),
        Column("TRES", "tres", lambda r, c: r.tres or None),
        Column("ACCOUNTS", "allow_accounts", lambda r, c: r.allow_accounts or None),
    ),
    links=(Link("nodes", "nodes", lambda r, c: _known_nodes(r.nodes, r.id.cluster, c)),),
    detail=lambda r, c: (
        Section(
            "Partition",
            (
                Line("state", " ".join(r.states) or "–", _partition_token(r, c)),
                Line("nodes", r.nodes or "–"),
                Line("node sets", r.node_sets or "–"),
                Line("TRES", r.tres or "–"),
                Line("max time", _minutes(r.max_time_min)),
                Line("default time", _minutes(r.default_time_min)),
                Line("accounts", r.allow_accounts or "all"),
                Line("QOS", r.allow_qos or "all"),
            ),
        ),
    ),
    severity=_partition_token,
    tables=(Table.NODES,),
)


def _active(row: Reservation, ctx: Context) -> str:
    if row.start_time is None or row.end_time is None:
        return "unknown"
    return "active" if row.start_time <= ctx.now < row.end_time else "inactive"


RESERVATIONS = Kind(
    id="reservations",
    title="Reservations",
    singular="reservation",
    table=Table.RESERVATIONS,
    aliases=("resv", "res"),
    columns=(
        Column("NAME", "name", lambda r, c: r.id.name, width=14),
        Column("STATE", "state", _active, width=8),
        Column("START", "start_time", lambda r, c: r.start_time, lambda r, c: when(r.start_time, c.now), drop=4),
        Column("END", "end_time", lambda r, c: r.end_time, lambda r, c: when(r.end_time, c.now), drop=3),
        Column("NODES", "nodes", lambda r, c: r.node_count, align="right"),
        Column("USERS", "users", lambda r, c: r.users or None, drop=5),
        Column("FLAGS", "flags", lambda r, c: r.flags, wide=True, drop=6),
        Column("NODELIST", "node_list", lambda r, c: r.node_list or None, grow=True, drop=1),
    ),
    extra=(
        Column("CLUSTER", "cluster", lambda r, c: r.id.cluster),
        Column("ACCOUNTS", "accounts", lambda r, c: r.accounts or None),
    ),
    links=(Link("nodes", "nodes", lambda r, c: _known_nodes(r.node_list, r.id.cluster, c)),),
    detail=lambda r, c: (
        Section(
            "Reservation",
            (
                Line("state", _active(r, c)),
                Line("start", moment(r.start_time)),
                Line("end", moment(r.end_time)),
                Line("nodes", r.node_list or "–"),
                Line("flags", " ".join(r.flags) or "–"),
                Line("users", r.users or "–"),
                Line("accounts", r.accounts or "–"),
                Line("TRES", r.tres or "–"),
            ),
        ),
    ),
    tables=(Table.NODES,),
)


def _event_token(row: Event, ctx: Context) -> Token:
    return "warning" if row.type == "Warning" else "text"


def _about(row: Event, ctx: Context) -> tuple[RowId, ...]:
    return (Key(row.about_namespace, row.about_name),)


EVENTS = Kind(
    id="events",
    title="Events",
    singular="event",
    table=Table.EVENTS,
    aliases=("ev",),
    columns=(
        Column(
            "LAST",
            "last_s",
            lambda r, c: None if r.last is None else c.now - r.last,
            lambda r, c: age(r.last, c.now),
            align="right",
            live=True,
            width=5,
        ),
        Column("TYPE", "type", lambda r, c: r.type or None, token=_event_token, width=7, drop=3),
        Column("REASON", "reason", lambda r, c: r.reason or None, width=16),
        Column("OBJECT", "object", lambda r, c: f"{r.about_kind.lower()}/{r.about_name}", width=18),
        Column("COUNT", "count", lambda r, c: r.count, align="right", drop=4),
        Column("MESSAGE", "message", lambda r, c: r.message or None, grow=True, drop=1),
    ),
    sort="last_s",
    extra=(
        Column("NAMESPACE", "namespace", lambda r, c: r.id.namespace),
        Column("NAME", "name", lambda r, c: r.id.name),
        Column("REPORTER", "reporter", lambda r, c: r.reporter or None),
    ),
    links=(
        Link("pod", "pods", lambda r, c: _about(r, c) if r.about_kind == "Pod" else ()),
        Link("NodeSet", "nodesets", lambda r, c: _about(r, c) if r.about_kind == "NodeSet" else ()),
        Link("Kubernetes node", "kubenodes", lambda r, c: (Key("", r.about_name),) if r.about_kind == "Node" else ()),
    ),
    detail=lambda r, c: (
        Section(
            "Event",
            (
                Line("object", f"{r.about_kind} {r.about_namespace}/{r.about_name}"),
                Line("type", r.type, _event_token(r, c)),
                Line("reason", r.reason),
                Line("message", r.message),
                Line("first", moment(r.first)),
                Line("last", f"{moment(r.last)} ({r.count} times)"),
                Line("from", r.reporter or "–"),
            ),
        ),
    ),
    severity=_event_token,
    namespaced=True,
)


def _problem_token(row: Problem, ctx: Context) -> Token:
    return "error" if row.severity == "error" else "warning" if row.severity == "warning" else "info"


_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}

PROBLEMS = Kind(
    id="problems",
    title="Problems",
    singular="problem",
    table=Table.PROBLEMS,
    aliases=("pb",),
    columns=(
        Column("SEVERITY", "severity", lambda r, c: str(r.severity), token=_problem_token, width=8),
        Column(
            "SINCE",
            "since_s",
            lambda r, c: None if r.since is None else c.now - r.since,
            lambda r, c: age(r.since, c.now),
            align="right",
            live=True,
        ),
        Column("KIND", "kind", lambda r, c: r.kind, width=12, drop=2),
        Column("TEXT", "text", lambda r, c: r.text, grow=True),
    ),
    sort="rank",
    extra=(
        Column("RANK", "rank", lambda r, c: _RANK[r.severity] * 1e12 + (r.since or 0), json=False),
        Column("NAME", "name", lambda r, c: r.key),
        Column("NODE", "node", lambda r, c: r.node.name if r.node else None),
    ),
    links=(
        Link("node", "nodes", lambda r, c: (r.node,) if r.node else ()),
        Link("pod", "pods", lambda r, c: (r.pod,) if r.pod else ()),
        Link("NodeSet", "nodesets", lambda r, c: (r.nodeset,) if r.nodeset else ()),
        Link("job", "jobs", lambda r, c: (r.job,) if r.job else ()),
    ),
    detail=lambda r, c: (
        Section(
            "Problem",
            (Line("what", r.text, _problem_token(r, c)), Line("kind", r.kind), Line("since", moment(r.since))),
        ),
    ),
    summary=lambda r, c: r.text,
    severity=_problem_token,
    raw=False,
)


def _done_token(row: JournalEntry, ctx: Context) -> Token:
    return "text" if row.ok else "warning" if row.ok is None else "error"


def _outcome(row: JournalEntry) -> str:
    return "not known" if row.ok is None else "done" if row.ok else "failed"


JOURNAL = Kind(
    id="journal",
    title="Journal",
    singular="entry",
    table=Table.JOURNAL,
    aliases=("log",),
    columns=(
        Column("AT", "at", lambda r, c: r.at, lambda r, c: moment(r.at), width=19),
        Column("WHO", "who", lambda r, c: r.who or None, width=8, drop=2),
        Column("VERB", "verb", lambda r, c: r.verb, width=12),
        Column("TARGET", "target", lambda r, c: r.target or None, width=12),
        Column("OUTCOME", "outcome", lambda r, c: _outcome(r), token=_done_token, width=8),
        Column("ANSWER", "answer", lambda r, c: r.answer or None, grow=True, drop=1),
    ),
    sort="newest",
    extra=(
        Column("NUMBER", "number", lambda r, c: r.number),
        Column("REASON", "reason", lambda r, c: r.reason or None),
        Column("PLAN", "plan", lambda r, c: r.plan or None),
        Column("CALL", "call", lambda r, c: r.call or None),
        Column("TOOK", "took_ms", lambda r, c: r.took_ms),
        Column("NEWEST", "newest", lambda r, c: -r.number, json=False),
    ),
    detail=lambda r, c: (
        Section(
            "Step",
            (
                Line("what", f"{r.verb} {r.target}"),
                Line("who", f"{r.who} at {moment(r.at)}"),
                Line("outcome", _outcome(r), _done_token(r, c)),
                Line("answer", r.answer or "–"),
                Line("reason", r.reason or "–"),
                Line("call", r.call or "–"),
                Line("plan", r.plan or "–"),
                Line("took", "–" if r.took_ms is None else f"{r.took_ms} ms"),
            ),
        ),
    ),
    summary=lambda r, c: f"{moment(r.at)} {r.who} {r.verb} {r.target}",
    says=lambda r, c: " · ".join(p for p in (r.reason, r.answer) if p),
    severity=_done_token,
    raw=False,
)
