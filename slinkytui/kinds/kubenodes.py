"""Kubernetes nodes: cordons, taints, conditions."""

from __future__ import annotations

from slinkytui.backend import FleetNode, KubeNode, Pod, RowId, Table
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, Section, Token
from slinkytui.kinds.text import age


def status(row: KubeNode) -> str:
    """kubectl's STATUS."""
    ready = next((c for c in row.conditions if c.type == "Ready"), None)
    word = (
        "Unknown" if ready is None or ready.status == "Unknown" else "Ready" if ready.status == "True" else "NotReady"
    )
    return f"{word},SchedulingDisabled" if row.unschedulable else word


def _token(row: KubeNode, ctx: Context) -> Token:
    word = status(row)
    return "text" if word == "Ready" else "warning" if word.startswith("Ready") else "error"


def _slurm(row: KubeNode, ctx: Context) -> tuple[RowId, ...]:
    nodes = ctx.lookup.rows(Table.NODES).values()
    return tuple(n.id for n in nodes if isinstance(n, FleetNode) and n.kubenode == row.id.name)


def _pods(row: KubeNode, ctx: Context) -> tuple[RowId, ...]:
    return tuple(p.id for p in ctx.lookup.rows(Table.PODS).values() if isinstance(p, Pod) and p.node == row.id.name)


KUBENODES = Kind(
    id="kubenodes",
    title="Kubernetes nodes",
    singular="kubenode",
    table=Table.KUBENODES,
    aliases=("kn", "knodes"),
    columns=(
        Column("NAME", "name", lambda r, c: r.id.name, grow=True, width=14),
        Column("STATUS", "status", lambda r, c: status(r), token=_token, width=8),
        Column("GPUS", "gpus", lambda r, c: r.gpus, align="right", drop=3),
        Column("CPU", "cpu", lambda r, c: r.cpu or None, align="right", drop=4),
        Column("MEMORY", "memory", lambda r, c: r.memory or None, align="right", drop=5),
        Column(
            "AGE",
            "age_s",
            lambda r, c: None if r.meta.created is None else c.now - r.meta.created,
            lambda r, c: age(r.meta.created, c.now),
            align="right",
            drop=2,
            live=True,
        ),
        Column("VERSION", "version", lambda r, c: r.kubelet or None, drop=6),
        Column("TAINTS", "taints", lambda r, c: r.taints, wide=True, drop=7),
        Column("OS", "os", lambda r, c: r.os_image or None, wide=True, drop=8),
    ),
    extra=(
        Column("CORDONED", "cordoned", lambda r, c: r.unschedulable),
        Column("LABELS", "labels", lambda r, c: tuple(f"{k}={v}" for k, v in r.meta.labels)),
    ),
    links=(Link("Slurm nodes", "nodes", _slurm), Link("pods", "pods", _pods)),
    detail=lambda r, c: (
        Section(
            "Node",
            (
                Line("status", status(r), _token(r, c)),
                Line("taints", " ".join(r.taints) or "–"),
                Line("addresses", " ".join(f"{k}={v}" for k, v in r.addresses) or "–"),
                Line("kubelet", r.kubelet or "–"),
                Line("GPUs", "–" if r.gpus is None else str(r.gpus)),
            ),
        ),
        Section(
            "Conditions",
            tuple(Line(x.type, f"{x.status} {x.reason} {x.message} ({age(x.since, c.now)})") for x in r.conditions),
        ),
        Section("Labels", tuple(Line(k, v) for k, v in r.meta.labels)),
    ),
    severity=_token,
    tables=(Table.NODES, Table.PODS),
    about=lambda r: (("Node", "", r.id.name),),
    other="nodes",
)
