"""The first screen: NodeSets, Slurm nodes, GPUs and jobs side by side. The row under the cursor lights its relatives."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Grid, Vertical

from slinkytui.backend import FleetNode, Job, NodeId, Row, RowId, Table, expand_hostlist
from slinkytui.kinds import KINDS
from slinkytui.kinds.base import Context
from slinkytui.kinds.states import node_state
from slinkytui.kinds.verbs import VERBS
from slinkytui.screens.detail import DetailScreen, YamlScreen
from slinkytui.screens.frame import footer_parts, header_parts, stale, strip_parts
from slinkytui.screens.listing import KindScreen
from slinkytui.screens.pane import KindPane
from slinkytui.screens.verbs import VerbScreen
from slinkytui.widgets.bars import Bar
from slinkytui.widgets.heatgrid import Devices, HeatGrid
from slinkytui.widgets.prompt import Prompt
from slinkytui.widgets.table import ResourceTable

_PANES = ("nodesets", "nodes", "gpus", "jobs")


class GpuPane(Vertical):
    DEFAULT_CSS = """
    GpuPane { border: round $border; }
    GpuPane:focus-within { border: heavy $accent; }
    """


class Board(VerbScreen):
    AUTO_FOCUS = "#nodes ResourceTable"
    BINDINGS = [
        *(Binding(v.key, f"verb('{v.id}')", v.title, id=v.id) for v in VERBS.values()),
        Binding("d", "describe", "describe", id="view.describe"),
        Binding("y", "yaml", "YAML", id="view.yaml"),
        Binding("slash", "filter", "filter", id="view.filter"),
        Binding("S", "sort", "sort", show=False, id="view.sort"),
        Binding("exclamation_mark", "problems", "problems", id="view.problems"),
        Binding("f", "zoom", "zoom", id="view.zoom"),
        Binding("tab", "pane(1)", "pane", id="view.pane"),
        Binding("shift+tab", "pane(-1)", "pane back", show=False, id="view.pane_back"),
        *(Binding(str(n + 1), f"go('{name}')", f"pane {name}", show=False) for n, name in enumerate(_PANES)),
        Binding("escape", "clear", "back", show=False, id="view.back"),
        Binding("q", "app.quit", "quit", id="view.quit"),
    ]
    DEFAULT_CSS = """
    Board #panes { grid-size: 2 2; grid-columns: 9fr 10fr; height: 1fr; }
    Board.-wide #panes { grid-size: 4 1; grid-columns: 4fr 6fr 5fr 6fr; }
    Board.-narrow #panes { grid-size: 1 1; grid-columns: 1fr; }
    Board.-narrow .away { display: none; }
    Board.-zoomed #panes { grid-size: 1 1; grid-columns: 1fr; }
    Board.-zoomed .away { display: none; }
    Board #chain { display: none; color: $text-muted; }
    Board.-narrow #chain { display: block; }
    Board #tabs { display: none; }
    Board.-narrow #tabs { display: block; }
    Board.-narrow #strip { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._focused = "nodes"

    def compose(self) -> ComposeResult:
        palette = self.slinky.palette
        yield Bar(palette, id="header")
        yield Bar(palette, id="strip")
        yield Bar(palette, id="tabs")
        with Grid(id="panes"):
            yield KindPane(KINDS["nodesets"], id="nodesets")
            with GpuPane(id="gpus"):
                yield HeatGrid(palette)
            yield KindPane(KINDS["nodes"], id="nodes")
            yield KindPane(KINDS["jobs"], id="jobs")
        yield Bar(palette, id="chain")
        yield Bar(palette, id="footer")

    def on_mount(self) -> None:
        self._choose("nodes")
        self.repaint(set(Table))

    def on_resize(self, event: events.Resize) -> None:
        narrow = event.size.width < 100 or event.size.height < 30
        self.set_class(narrow, "-narrow")
        self.set_class(not narrow and event.size.width > 160, "-wide")
        self.call_after_refresh(self.tick)

    def active_pane(self) -> KindPane | None:
        return None if not self.is_mounted or self._focused == "gpus" else self.query_one(f"#{self._focused}", KindPane)

    def _choose(self, name: str) -> None:
        self._focused = name
        for pane in _PANES:
            self.query_one(f"#{pane}").set_class(pane != name, "away")
        self.query_one(f"#{name}").query_one("ResourceTable, HeatGrid").focus()
        self.refresh_bindings()
        self.call_after_refresh(self.tick)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        pane = next((a.id for a in event.widget.ancestors_with_self if a.id in _PANES), None)
        if pane is not None and pane != self._focused:
            self._choose(pane)

    def action_pane(self, by: int) -> None:
        order = ("nodesets", "gpus", "nodes", "jobs")
        self._choose(order[(order.index(self._focused) + by) % len(order)])

    def action_go(self, name: str) -> None:
        self._choose(name)

    def action_zoom(self) -> None:
        self.toggle_class("-zoomed")

    def action_problems(self) -> None:
        self.app.push_screen(KindScreen(KINDS["problems"]))

    def action_filter(self) -> None:
        pane = self.active_pane()
        if pane is None:
            self.notify("filter the Slurm nodes: the grid follows them", timeout=3)
            return
        before = pane.filter_text

        def typed(text: str) -> None:
            pane.narrow(text)
            self._grid()

        def done(text: str | None) -> None:
            typed(before if text is None else text)

        self.app.push_screen(Prompt("/", "state=idle & gpus>0 & name~^gpu", before, typed), done)

    def action_sort(self) -> None:
        pane = self.active_pane()
        if pane is not None:
            fields = [c.field for c in pane.columns()]
            at = fields.index(pane.sort_field) + 1 if pane.sort_field in fields else 0
            pane.sort_field = fields[at % len(fields)]
            pane.fill()
            self.notify(f"sorted by {pane.sort_field}", timeout=2)

    def action_clear(self) -> None:
        pane = self.active_pane()
        if pane is not None and pane.table.marks:
            pane.table.marks.clear()
            pane.table.refresh()
        elif pane is not None and pane.filter_text:
            pane.narrow("")
            self._grid()
        else:
            self.remove_class("-zoomed")

    def _row(self) -> tuple[KindPane, RowId] | None:
        pane = self.active_pane()
        cursor = pane.table.cursor if pane is not None else None
        return (pane, cast(RowId, cursor)) if pane is not None and cursor is not None else None

    def action_describe(self) -> None:
        found = self._row()
        if found is not None:
            self.app.push_screen(DetailScreen(found[0].kind, found[1]))

    def action_yaml(self) -> None:
        found = self._row()
        if found is not None and found[0].kind.raw:
            self.app.push_screen(YamlScreen(found[0].kind, found[1]))

    def on_resource_table_opened(self, event: ResourceTable.Opened) -> None:
        event.stop()
        self.action_describe()

    def on_resource_table_highlighted(self, event: ResourceTable.Highlighted) -> None:
        event.stop()
        pane = self.active_pane()
        if pane is not None and event.table is pane.table:
            self._brush()

    def repaint(self, tables: set[Table]) -> None:
        """Redraw the panes whose tables have changed."""
        for name in ("nodesets", "nodes", "jobs"):
            pane = self.query_one(f"#{name}", KindPane)
            if pane.kind.table in tables or Table.SOURCES in tables:
                pane.table.stale = (
                    stale(self.slinky, "slurm/") if name != "nodesets" else stale(self.slinky, "kubernetes/")
                )
                pane.fill()
        self._brush()
        self.tick()

    def tick(self) -> None:
        self.query_one("#header", Bar).say(*header_parts(self.slinky))
        ctx = self.slinky.context
        if ctx is not None:
            nodes = [n for n in ctx.lookup.rows(Table.NODES).values() if isinstance(n, FleetNode)]
            jobs = [j for j in ctx.lookup.rows(Table.JOBS).values() if isinstance(j, Job)]
            self.query_one("#strip", Bar).say(strip_parts(nodes, jobs))
        self.query_one("#tabs", Bar).say(self._tabs())
        self.query_one("#footer", Bar).say(footer_parts(self))

    def _tabs(self) -> list[tuple[str, str]]:
        ctx = self.slinky.context
        parts: list[tuple[str, str]] = []
        for at, name in enumerate(_PANES, 1):
            kind = KINDS[name]
            count = len(ctx.lookup.rows(kind.table)) if ctx is not None and name != "gpus" else 0
            word = f"{at} {kind.title}{f' {count:,}' if count else ''}"
            parts.append(
                (f"[{word}]" if name == self._focused else f" {word} ", "accent" if name == self._focused else "muted")
            )
        return parts

    def _brush(self) -> None:
        """Light the relatives of the row under the cursor, write out its chain, and draw the grid."""
        ctx, found = self.slinky.context, self._row()
        lit: dict[str, set[Hashable]] = {name: set() for name in _PANES}
        chain = ""
        if ctx is not None and found is not None:
            pane, row_id = found
            row = ctx.lookup.rows(pane.kind.table).get(row_id)
            if row is not None:
                chain = pane.kind.summary(row, ctx)
                for kind, ids in relatives(pane.kind.id, row, ctx).items():
                    lit[kind] = cast(set[Hashable], ids)
        for name in ("nodesets", "nodes", "jobs"):
            self.query_one(f"#{name}", KindPane).table.light(lit[name] if name != self._focused else set())
        self.query_one("#chain", Bar).say([(chain, "text")])
        self._grid()

    def _grid(self) -> None:
        ctx, found = self.slinky.context, self._row()
        grid = self.query_one(HeatGrid)
        if ctx is None:
            return
        job: Job | None = None
        only: set[NodeId] = set()
        if found is not None:
            row = ctx.lookup.rows(found[0].kind.table).get(found[1])
            if isinstance(row, Job):
                job = row
            elif isinstance(row, FleetNode):
                only = {row.id}
        brushed = _devices_of(job) if job is not None else {}
        order = self.query_one("#nodes", KindPane).table.ids
        rows = ctx.lookup.rows(Table.NODES)
        nodes = [n for i in order if isinstance(n := rows.get(cast(Any, i)), FleetNode) and n.gpus_total]
        total = sum(n.gpus_total or 0 for n in nodes)
        grid.empty = "no GPUs" if order else "no nodes"
        grid.stale = stale(self.slinky, "slurm/")
        grid.show(
            [
                Devices(
                    n.id.name,
                    _cells(n),
                    frozenset(range(len(n.gpu_cells)))
                    if n.id in only and n.gpus_used == 0
                    else brushed.get(n.id.name, frozenset()),
                )
                for n in nodes
            ]
        )
        pane = self.query_one("#gpus", GpuPane)
        pane.border_title = f"GPUs ─ {total:,}" + (f", brush: job {job.id}" if job is not None else "")


def relatives(kind: str, row: Row, ctx: Context) -> dict[str, set[RowId]]:
    """The chain from a row to the other panes: NodeSet ▸ node ▸ job, both ways."""
    out: dict[str, set[RowId]] = {}
    for link in KINDS[kind].links:
        if link.kind in _PANES:
            out[link.kind] = set(link.ids(row, ctx))
    if kind == "nodesets":
        jobs: set[RowId] = set()
        for node_id in out.get("nodes", ()):
            node = ctx.lookup.rows(Table.NODES).get(node_id)
            if isinstance(node, FleetNode):
                jobs.update(node.jobs or ())
        out["jobs"] = jobs
    return out


def _cells(node: FleetNode) -> str:
    """The letters of a node's devices, with the fitness of the node over those that are free."""
    token = node_state(node).token
    if token == "error":
        return "x" * len(node.gpu_cells)
    word = node_state(node).word
    return node.gpu_cells.replace("f", "d") if word in ("draining", "drained") else node.gpu_cells


def _devices_of(job: Job) -> dict[str, frozenset[int]]:
    """The devices of a job by node, where Slurm gives indexes."""
    out: dict[str, frozenset[int]] = {}
    for at, host in enumerate(expand_hostlist(job.nodes) if job.nodes else ()):
        detail = job.gres_detail[at] if at < len(job.gres_detail) else ""
        _, sep, tail = detail.partition("(IDX:")
        if sep:
            inside = tail.partition(")")[0]
            names = expand_hostlist(f"[{inside}]") if inside != "N/A" else ()
            out[host] = frozenset(int(n) for n in names if n.isdigit())
    return out
