"""GPUs, one row a device: who uses it, and whether its node is fit."""

from __future__ import annotations

from slinkytui.backend import Gpu, NodeId, Table
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, Section, Token

_TOKENS: dict[str, Token] = {"used": "text", "free": "muted", "shared": "info", "drained": "warning", "down": "error"}
_GLYPHS = {"used": "▮", "free": "▯", "shared": "▮", "drained": "▽", "down": "✖"}


def _severity(row: Gpu, ctx: Context) -> Token:
    return _TOKENS.get(row.state, "warning")


GPUS = Kind(
    id="gpus",
    title="GPUs",
    singular="gpu",
    table=Table.GPUS,
    aliases=("gpu", "devices"),
    columns=(
        Column("NODE", "node", lambda r, c: r.id.node, width=10),
        Column("GPU", "index", lambda r, c: r.id.device, align="right"),
        Column("TYPE", "type", lambda r, c: r.type or None, width=6, drop=2),
        Column(
            "STATE",
            "state",
            lambda r, c: r.state,
            lambda r, c: f"{_GLYPHS.get(r.state, '░')} {r.state}",
            token=_severity,
            width=9,
        ),
        Column("JOB", "job", lambda r, c: str(r.job) if r.job else None, width=8),
        Column("USER", "user", lambda r, c: r.user or None, width=8, drop=1),
        Column("NODESET", "nodeset", lambda r, c: r.nodeset.name if r.nodeset else None, grow=True, drop=3),
    ),
    extra=(
        Column("CLUSTER", "cluster", lambda r, c: r.id.cluster),
        Column("COUNTED", "counted", lambda r, c: r.counted),
        Column("NODE STATE", "node_state", lambda r, c: r.node_state or None),
        Column("NAME", "name", lambda r, c: str(r.id)),
    ),
    links=(
        Link("node", "nodes", lambda r, c: (NodeId(r.id.cluster, r.id.node),)),
        Link("job", "jobs", lambda r, c: (r.job,) if r.job else ()),
        Link("NodeSet", "nodesets", lambda r, c: (r.nodeset,) if r.nodeset else ()),
    ),
    detail=lambda r, c: (
        Section(
            "GPU",
            (
                Line("node", f"{r.id.node} ({r.node_state or '–'})"),
                Line("index", f"{r.id.device}{' (by count: Slurm gives no index)' if r.counted else ''}"),
                Line("type", r.type or "–"),
                Line("state", r.state, _severity(r, c)),
                Line("job", f"{r.job or '–'} {r.user}"),
            ),
        ),
    ),
    summary=lambda r, c: f"{r.id} {r.type} {r.state}" + (f" ▸ job {r.job} {r.user}" if r.job else ""),
    severity=_severity,
    raw=False,
    tables=(Table.NODES, Table.JOBS),
    owner="nodes",
    other="jobs",
)
