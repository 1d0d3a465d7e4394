"""The smaller kinds: partitions, reservations, events, problems and Slinky's own resources."""

from __future__ import annotations

from slinkytui.backend import (
    Controller,
    Event,
    FleetNodeSet,
    Key,
    NodeId,
    Partition,
    Problem,
    Reservation,
    RestApi,
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
    severity=_problem_token,
    raw=False,
)


def _sets(row: Controller, ctx: Context) -> tuple[RowId, ...]:
    sets = ctx.lookup.rows(Table.NODESETS).values()
    return tuple(s.id for s in sets if isinstance(s, FleetNodeSet) and s.nodeset.controller == row.id)


def _conditions(row: Controller | RestApi, ctx: Context) -> Section:
    return Section(
        "Conditions",
        tuple(Line(x.type, f"{x.status} {x.reason} {x.message} ({age(x.since, ctx.now)})") for x in row.conditions),
    )


_META = (
    Column("NAMESPACE", "namespace", lambda r, c: r.id.namespace, drop=5, width=9),
    Column("NAME", "name", lambda r, c: r.id.name, width=14),
)
_AGE = Column(
    "AGE",
    "age_s",
    lambda r, c: None if r.meta.created is None else c.now - r.meta.created,
    lambda r, c: age(r.meta.created, c.now),
    align="right",
    live=True,
)

CONTROLLERS = Kind(
    id="controllers",
    title="Controllers",
    singular="controller",
    table=Table.CONTROLLERS,
    aliases=("slurmctld", "ctl"),
    columns=(
        *_META,
        Column("CLUSTER", "cluster", lambda r, c: r.cluster_name or None),
        Column("EXTERNAL", "external", lambda r, c: r.external, drop=4),
        Column("IMAGE", "image", lambda r, c: r.image or None, grow=True, wide=True, drop=6),
        _AGE,
    ),
    links=(Link("NodeSets", "nodesets", _sets),),
    detail=lambda r, c: (
        Section(
            "Controller",
            (
                Line("Slurm cluster", r.cluster_name or "–"),
                Line("external", r.external_host or "no"),
                Line("image", r.image or "–"),
                Line("JWT secret", r.jwt_secret or "–"),
            ),
        ),
        _conditions(r, c),
    ),
    namespaced=True,
    about=lambda r: (("Controller", r.id.namespace, r.id.name),),
    tables=(Table.NODESETS,),
)

LOGINSETS = Kind(
    id="loginsets",
    title="LoginSets",
    singular="loginset",
    table=Table.LOGINSETS,
    aliases=("ls", "sackd"),
    columns=(
        *_META,
        Column("REPLICAS", "replicas", lambda r, c: r.replicas, align="right"),
        Column("HAVE", "have", lambda r, c: r.status_replicas, align="right"),
        Column("CONTROLLER", "controller", lambda r, c: str(r.controller), grow=True, drop=3),
        _AGE,
    ),
    links=(Link("controller", "controllers", lambda r, c: (r.controller,)),),
    detail=lambda r, c: (Section("LoginSet", (Line("controller", str(r.controller)),)), _conditions(r, c)),
    namespaced=True,
    about=lambda r: (("LoginSet", r.id.namespace, r.id.name),),
    owner="controllers",
)

RESTAPIS = Kind(
    id="restapis",
    title="RestApis",
    singular="restapi",
    table=Table.RESTAPIS,
    aliases=("slurmrestd", "rest"),
    columns=(
        *_META,
        Column("REPLICAS", "replicas", lambda r, c: r.replicas, align="right"),
        Column("SERVICE", "service", lambda r, c: r.service or None, drop=3),
        Column("PORT", "port", lambda r, c: r.port, align="right", drop=4),
        Column("CONTROLLER", "controller", lambda r, c: str(r.controller), grow=True, drop=5),
        _AGE,
    ),
    links=(Link("controller", "controllers", lambda r, c: (r.controller,)),),
    detail=lambda r, c: (
        Section("RestApi", (Line("controller", str(r.controller)), Line("service", r.service or "–"))),
        _conditions(r, c),
    ),
    namespaced=True,
    about=lambda r: (("RestApi", r.id.namespace, r.id.name),),
    owner="controllers",
)
