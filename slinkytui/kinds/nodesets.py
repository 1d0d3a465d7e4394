"""NodeSets with the figures of their nodes: what is wanted, what is there, what it does."""

from __future__ import annotations

from slinkytui.backend import FleetNode, FleetNodeSet, RowId, Table
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, Section, Token
from slinkytui.kinds.text import age


def _want(row: FleetNodeSet, ctx: Context) -> str:
    if row.want is None:
        return "–"
    return f"{row.have}→{row.want}" if row.have is not None and row.have != row.want else str(row.want)


def _share(row: FleetNodeSet) -> float | None:
    if not row.gpus_total or row.gpus_used is None:
        return None
    return row.gpus_used / row.gpus_total


def _gpu(row: FleetNodeSet, ctx: Context) -> str:
    share = _share(row)
    return "–" if share is None else f"{share:.0%}"


def _flags(row: FleetNodeSet, ctx: Context) -> str:
    parts = [
        f"▼{row.draining}" if row.draining else "",
        f"▽{row.drained}" if row.drained else "",
        f"✖{row.down}" if row.down else "",
        f"{row.want - row.have:+d}" if row.want is not None and row.have is not None and row.want != row.have else "",
        row.note,
    ]
    return " ".join(p for p in parts if p)


def _severity(row: FleetNodeSet, ctx: Context) -> Token:
    if row.down:
        return "error"
    odd = row.draining or (row.want is not None and row.ready is not None and row.ready < row.want)
    return "warning" if odd or row.disagreement else "text"


def _nodes(row: FleetNodeSet, ctx: Context) -> tuple[RowId, ...]:
    nodes = ctx.lookup.rows(Table.NODES).values()
    return tuple(n.id for n in nodes if isinstance(n, FleetNode) and n.nodeset == row.id)


def _pods(row: FleetNodeSet, ctx: Context) -> tuple[RowId, ...]:
    nodes = ctx.lookup.rows(Table.NODES).values()
    return tuple(n.pod for n in nodes if isinstance(n, FleetNode) and n.nodeset == row.id and n.pod is not None)


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)


def _detail(row: FleetNodeSet, ctx: Context) -> tuple[Section, ...]:
    spec = row.nodeset
    return (
        Section(
            "Spec",
            (
                Line("mode", spec.scaling_mode),
                Line("replicas", _count(spec.replicas)),
                Line("controller", str(spec.controller)),
                Line("Slurm cluster", row.cluster or "–"),
                Line("update", spec.update_strategy or "–"),
                Line("image", spec.image or "–"),
                Line("host network", "yes" if spec.host_network else "no"),
                Line("created", age(spec.meta.created, ctx.now)),
            ),
        ),
        Section(
            "Kubernetes",
            (
                Line("want", _count(row.want)),
                Line("have", _count(row.have)),
                Line("ready", _count(row.ready), _severity(row, ctx)),
                Line("updated", _count(spec.status_updated)),
            ),
        ),
        Section(
            "Slurm",
            (
                Line("nodes", _count(row.nodes)),
                Line("idle", _count(row.idle)),
                Line("mixed", _count(row.mixed)),
                Line("allocated", _count(row.allocated)),
                Line("draining", _count(row.draining), "warning" if row.draining else "text"),
                Line("drained", _count(row.drained), "warning" if row.drained else "text"),
                Line("down", _count(row.down), "error" if row.down else "text"),
                Line("jobs", _count(row.jobs)),
                Line(
                    "GPUs",
                    f"{_count(row.gpus_used)} of {_count(row.gpus_total)} used, free {_count(row.gpus_free)}, "
                    f"whole free nodes {_count(row.whole_free_nodes)}",
                ),
                *((Line("≠", row.disagreement, "warning"),) if row.disagreement else ()),
            ),
        ),
        Section(
            "Conditions",
            tuple(
                Line(c.type, f"{c.status} {c.reason} {c.message} ({age(c.since, ctx.now)})", "text")
                for c in spec.conditions
            ),
        ),
    )


NODESETS = Kind(
    id="nodesets",
    title="NodeSets",
    singular="nodeset",
    table=Table.NODESETS,
    aliases=("nss", "ns-sets", "slurmd"),
    columns=(
        Column("NAME", "name", lambda r, c: r.id.name, width=10),
        Column("WANT", "want", lambda r, c: r.want, _want, align="right"),
        Column("HAVE", "have", lambda r, c: r.have, align="right", drop=3),
        Column("READY", "ready", lambda r, c: r.ready, align="right", token=_severity),
        Column("JOBS", "jobs", lambda r, c: r.jobs, align="right", drop=2, needs=(Table.JOBS,)),
        Column("GPU", "gpu_share", lambda r, c: _share(r), _gpu, align="right"),
        Column("FREE", "gpus_free", lambda r, c: r.gpus_free, align="right", wide=True, drop=4),
        Column(
            "WHOLE",
            "whole_free_nodes",
            lambda r, c: r.whole_free_nodes,
            align="right",
            wide=True,
            drop=5,
            needs=(Table.JOBS,),
        ),
        Column("NAMESPACE", "namespace", lambda r, c: r.id.namespace, wide=True, drop=6),
        Column("CLUSTER", "cluster", lambda r, c: r.cluster or None, wide=True, drop=7),
        Column("", "note", lambda r, c: _flags(r, c) or None, _flags, grow=True, drop=1, token=_severity),
    ),
    extra=(
        Column("NODES", "nodes", lambda r, c: r.nodes),
        Column("GPUS", "gpus", lambda r, c: r.gpus_total),
        Column("USED", "gpus_used", lambda r, c: r.gpus_used),
        Column("IDLE", "idle", lambda r, c: r.idle),
        Column("MIXED", "mixed", lambda r, c: r.mixed),
        Column("ALLOCATED", "allocated", lambda r, c: r.allocated),
        Column("DRAINING", "draining", lambda r, c: r.draining),
        Column("DRAINED", "drained", lambda r, c: r.drained),
        Column("DOWN", "down", lambda r, c: r.down),
        Column("MODE", "scaling_mode", lambda r, c: r.nodeset.scaling_mode),
        Column("DISAGREEMENT", "disagreement", lambda r, c: r.disagreement or None),
    ),
    links=(
        Link("nodes", "nodes", _nodes),
        Link("pods", "pods", _pods),
        Link("controller", "controllers", lambda r, c: (r.nodeset.controller,)),
    ),
    verbs=("nodeset.scale",),
    detail=_detail,
    summary=lambda r, c: f"{r.id.name} ▸ {_count(r.nodes)} nodes ▸ {_count(r.jobs)} jobs",
    says=lambda r, c: " · ".join(p for p in (r.disagreement and f"≠ {r.disagreement}", r.note) if p),
    severity=_severity,
    marked=lambda r, c: bool(r.disagreement),
    namespaced=True,
    tables=(Table.NODES, Table.CONTROLLERS),
    about=lambda r: (("NodeSet", r.id.namespace, r.id.name),),
    owner="controllers",
    other="nodes",
)
