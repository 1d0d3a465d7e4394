"""From the row under the cursor to its relatives in the other panes, and a node's devices as cells."""

from __future__ import annotations

from typing import Final

from slinkytui.backend import FleetNode, Gpu, GpuId, Job, NodeId, Row, RowId, Table, expand_hostlist
from slinkytui.kinds import KINDS
from slinkytui.kinds.base import Context
from slinkytui.kinds.states import node_state
from slinkytui.widgets.heatgrid import Devices

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
    """What is lit in the grid: the devices of a job, or all of some nodes that hold none."""

    def __init__(self, row: Row | None = None) -> None:
        self.label = ""
        self._devices: dict[NodeId, frozenset[int]] = {}
        self._counted: set[NodeId] = set()
        self._whole: NodeId | None = None
        if isinstance(row, Job):
            self.label = f"job {row.id}"
            for at, host in enumerate(expand_hostlist(row.nodes) if row.nodes else ()):
                detail = row.gres_detail[at] if at < len(row.gres_detail) else ""
                found = _indexes(detail)
                node = NodeId(row.id.cluster, host)
                if found is not None:
                    self._devices[node] = found
                elif row.gpus:
                    self._counted.add(node)
        elif isinstance(row, FleetNode):
            self._whole = row.id
        elif isinstance(row, Gpu) and isinstance(row.id, GpuId):
            self._devices[NodeId(row.id.cluster, row.id.node)] = frozenset({row.id.device})

    def devices(self, node: FleetNode) -> Devices:
        """A node's cells, with those that are lit."""
        cells = device_cells(node)
        lit = self._devices.get(node.id, frozenset())
        if node.id in self._counted and node.jobs is not None and len(node.jobs) == 1:
            # Slurm gives no index, but nobody else is on this node.
            lit = frozenset(at for at, c in enumerate(cells) if c in "us")
        if node.id == self._whole and not node.gpus_used:
            lit = frozenset(range(len(cells)))
        return Devices(node.id.name, cells, lit)


def _indexes(detail: str) -> frozenset[int] | None:
    """The device indexes in a GRES detail like gpu:h100:4(IDX:0-3); None where there are none."""
    _, sep, tail = detail.partition("(IDX:")
    inside = tail.partition(")")[0]
    if not sep or inside == "N/A":
        return None
    return frozenset(int(n) for n in expand_hostlist(f"[{inside}]") if n.isdigit())
