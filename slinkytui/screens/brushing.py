"""From the row under the cursor to its relatives in the other panes, and a node's devices as cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from slinkytui.backend import FleetNode, Gpu, Job, NodeId, Row, RowId, Table, expand_hostlist
from slinkytui.kinds import KINDS
from slinkytui.kinds.base import Context
from slinkytui.kinds.states import node_state

PANES: Final = ("nodesets", "nodes", "gpus", "jobs")


def relatives(kind: str, row: Row, ctx: Context) -> dict[str, set[RowId]]:
    """The chain from a row to the other panes: NodeSet ▸ node ▸ job, both ways."""
    out: dict[str, set[RowId]] = {}
    for link in KINDS[kind].links:
        if link.kind in PANES:
            out[link.kind] = set(link.ids(row, ctx))
    if kind == "nodesets":
        jobs: set[RowId] = set()
        nodes = ctx.lookup.rows(Table.NODES)
        for node_id in out.get("nodes", ()):
            node = nodes.get(node_id)
            if isinstance(node, FleetNode):
                jobs.update(node.jobs or ())
        out["jobs"] = jobs
    return out


def device_cells(node: FleetNode) -> str:
    """The letters of a node's devices, with the fitness of the node over those that are free."""
    state = node_state(node)
    if state.token == "error":
        return "x" * len(node.gpu_cells)
    return node.gpu_cells.replace("f", "d") if state.word in ("draining", "drained") else node.gpu_cells


class Brush:
    """What rows light in the grid: the devices of jobs, those of an idle node, one device. `label` names them."""

    def __init__(self, rows: Sequence[Row], nodes: Mapping[RowId, Row]) -> None:
        self.label = ""
        self.lit: dict[NodeId, frozenset[int]] = {}
        jobs = [r for r in rows if isinstance(r, Job)]
        row = rows[0] if rows else None
        if jobs:
            self.label = f"job {jobs[0].id}" if len(jobs) == 1 else f"array {jobs[0].id.id}"
            for job in jobs:
                self._job(job, nodes)
        elif isinstance(row, FleetNode) and not row.gpus_used:
            self.lit[row.id] = frozenset(range(len(row.gpu_cells)))
        elif isinstance(row, Gpu):
            self.lit[NodeId(row.id.cluster, row.id.node)] = frozenset({row.id.device})

    def _job(self, job: Job, nodes: Mapping[RowId, Row]) -> None:
        for at, host in enumerate(expand_hostlist(job.nodes) if job.nodes else ()):
            found = _indexes(job.gres_detail[at] if at < len(job.gres_detail) else "")
            node_id = NodeId(job.id.cluster, host)
            node = nodes.get(node_id)
            if found is not None:
                self.lit[node_id] = self.lit.get(node_id, frozenset()) | found
            elif job.gpus and isinstance(node, FleetNode) and node.jobs is not None and len(node.jobs) == 1:
                # Slurm gives no index, but nobody else is on this node.
                self.lit[node_id] = frozenset(i for i, c in enumerate(node.gpu_cells) if c in "us")


def _indexes(detail: str) -> frozenset[int] | None:
    """The device indexes in a GRES detail like gpu:h100:4(IDX:0-3); None where there are none."""
    _, sep, tail = detail.partition("(IDX:")
    inside = tail.partition(")")[0]
    if not sep or inside == "N/A":
        return None
    return frozenset(int(n) for n in expand_hostlist(f"[{inside}]") if n.isdigit())
