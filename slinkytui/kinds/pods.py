"""Pods as kubectl prints them, with the Slurm node that each one carries."""

from __future__ import annotations

from slinkytui.backend import FleetNode, Key, Pod, RowId, Table
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, Section, Token
from slinkytui.kinds.text import age, ago, moment


def status(row: Pod) -> str:
    """kubectl's STATUS: the reason that matters most."""
    if row.meta.deleted is not None:
        return "Terminating"
    init = next((c for c in row.containers if c.init and c.state != "terminated" and c.reason), None)
    if init is not None:
        return f"Init:{init.reason}"
    bad = next((c for c in reversed(row.containers) if not c.init and c.reason and c.state != "running"), None)
    if bad is not None and row.phase not in ("Succeeded",):
        return bad.reason
    return row.reason or row.phase or "Unknown"


def ready(row: Pod) -> str:
    main = [c for c in row.containers if not c.init]
    return f"{sum(c.ready for c in main)}/{len(main)}" if main else "–"


def restarts(row: Pod) -> int:
    return sum(c.restarts for c in row.containers)


def is_ready(row: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in row.conditions)


def _token(row: Pod, ctx: Context) -> Token:
    word = status(row)
    if word in ("Running", "Succeeded", "Completed"):
        return "text" if is_ready(row) or word != "Running" else "warning"
    return "warning" if word in ("Pending", "Terminating", "ContainerCreating", "PodInitializing") else "error"


def _nodes(row: Pod, ctx: Context) -> tuple[RowId, ...]:
    nodes = ctx.lookup.rows(Table.NODES).values()
    return tuple(n.id for n in nodes if isinstance(n, FleetNode) and n.pod == row.id)


def _owner(row: Pod, ctx: Context) -> tuple[RowId, ...]:
    return (Key(row.id.namespace, row.meta.owner_name),) if row.meta.owner_kind == "NodeSet" else ()


def _detail(row: Pod, ctx: Context) -> tuple[Section, ...]:
    return (
        Section(
            "Pod",
            (
                Line("status", status(row), _token(row, ctx)),
                Line("node", row.node or "–"),
                Line("addresses", f"pod {row.pod_ip or '–'}  host {row.host_ip or '–'}"),
                Line("hostname", row.hostname or "–"),
                Line("owner", f"{row.meta.owner_kind or '–'} {row.meta.owner_name}"),
                Line("created", f"{moment(row.meta.created)} ({ago(row.meta.created, ctx.now)})"),
                *((Line("deleted", moment(row.meta.deleted), "warning"),) if row.meta.deleted else ()),
            ),
        ),
        Section(
            "Containers",
            tuple(
                Line(
                    c.name,
                    f"{c.state or '–'} {c.reason} restarts {c.restarts} {c.image}"
                    + (f" exit {c.exit_code}" if c.exit_code is not None else ""),
                    "text" if c.ready or c.init else "warning",
                )
                for c in row.containers
            ),
        ),
        Section(
            "Conditions",
            tuple(Line(c.type, f"{c.status} {c.reason} {c.message} ({age(c.since, ctx.now)})") for c in row.conditions),
        ),
        Section("Labels", tuple(Line(k, v) for k, v in row.meta.labels)),
        Section("Annotations", tuple(Line(k, v) for k, v in row.meta.annotations)),
    )


PODS = Kind(
    id="pods",
    title="Pods",
    singular="pod",
    table=Table.PODS,
    aliases=("po",),
    columns=(
        Column("NAMESPACE", "namespace", lambda r, c: r.id.namespace, drop=5, width=9),
        Column("NAME", "name", lambda r, c: r.id.name, grow=True, width=16),
        Column("READY", "ready", lambda r, c: ready(r), drop=3),
        Column("STATUS", "status", lambda r, c: status(r), token=_token, width=10),
        Column("RESTARTS", "restarts", lambda r, c: restarts(r), align="right", drop=4),
        Column(
            "AGE",
            "age_s",
            lambda r, c: None if r.meta.created is None else c.now - r.meta.created,
            lambda r, c: age(r.meta.created, c.now),
            align="right",
            drop=2,
            live=True,
        ),
        Column("IP", "ip", lambda r, c: r.pod_ip or None, wide=True, drop=7),
        Column("NODE", "node", lambda r, c: r.node or None, wide=True, drop=6),
        Column("HOSTNAME", "hostname", lambda r, c: r.hostname or None, wide=True, drop=8),
    ),
    extra=(
        Column("PHASE", "phase", lambda r, c: r.phase or None),
        Column(
            "OWNER", "owner", lambda r, c: f"{r.meta.owner_kind}/{r.meta.owner_name}" if r.meta.owner_kind else None
        ),
        Column("LABELS", "labels", lambda r, c: tuple(f"{k}={v}" for k, v in r.meta.labels)),
    ),
    links=(
        Link("Slurm node", "nodes", _nodes),
        Link("NodeSet", "nodesets", _owner),
        Link("Kubernetes node", "kubenodes", lambda r, c: (Key("", r.node),) if r.node else ()),
    ),
    detail=_detail,
    summary=lambda r, c: f"pod {r.id} ▸ {r.node or '–'} ▸ {status(r)}",
    severity=_token,
    namespaced=True,
    tables=(Table.NODES, Table.NODESETS, Table.KUBENODES),
    about=lambda r: (("Pod", r.id.namespace, r.id.name),),
    owner="nodesets",
    other="nodes",
)
