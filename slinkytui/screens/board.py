"""The first screen: NodeSets, Slurm nodes, GPUs and jobs side by side. The row under the cursor lights its relatives."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal

from slinkytui.backend import FleetNode, NodeId, Row, RowId, Table
from slinkytui.kinds import KINDS
from slinkytui.kinds.freshness import sources_of, worst
from slinkytui.kinds.view import View
from slinkytui.screens.brushing import PANES, Brush, device_cells, relatives
from slinkytui.screens.detail import DetailScreen
from slinkytui.screens.frame import footer_parts, header_parts, strip_parts
from slinkytui.screens.lists import LIST_BINDINGS, ListScreen
from slinkytui.screens.pane import Framed, KindPane
from slinkytui.widgets.bars import Bar
from slinkytui.widgets.heatgrid import Devices, HeatGrid, Lit
from slinkytui.widgets.table import ResourceTable

_LISTS: Final = ("nodesets", "nodes", "jobs")
_ORDER: Final = ("nodesets", "gpus", "nodes", "jobs")
_ROWS: Final = {"top": ("nodesets", "gpus"), "bottom": ("nodes", "jobs")}


class Board(ListScreen):
    AUTO_FOCUS = "#nodes ResourceTable"
    BINDINGS = [
        *LIST_BINDINGS,
        Binding("f", "zoom", "zoom", id="view.zoom"),
        Binding("tab", "pane(1)", "pane", id="view.pane"),
        Binding("shift+tab", "pane(-1)", "pane back", show=False, id="view.pane_back"),
        *(Binding(str(n + 1), f"go('{name}')", f"to {name}", show=False) for n, name in enumerate(PANES)),
        Binding("minus", "hide", "hide this pane, or show all", show=False, id="view.hide"),
        Binding("escape", "clear", "back", show=False, id="view.back"),
        Binding("q", "app.quit", "quit", id="view.quit"),
    ]
    DEFAULT_CSS = """
    Board #panes { height: 1fr; layout: vertical; }
    Board #top { height: 2fr; } Board #bottom { height: 3fr; }
    Board #nodesets { width: 5fr; } Board #gpus { width: 7fr; }
    Board #nodes { width: 13fr; } Board #jobs { width: 11fr; }
    Board.-wide #panes { layout: horizontal; }
    Board.-wide #top { height: 1fr; width: 8fr; } Board.-wide #bottom { height: 1fr; width: 12fr; }
    Board.-wide #nodesets { width: 4fr; } Board.-wide #gpus { width: 4fr; }
    Board .hidden { display: none; }
    Board.-narrow .away, Board.-zoomed .away { display: none; }
    Board.-zoomed .hidden, Board.-narrow .hidden { display: block; }
    Board.-zoomed .hidden.away, Board.-narrow .hidden.away { display: none; }
    Board #chain { color: $text-muted; }
    Board #tabs { display: none; }
    Board.-narrow #tabs { display: block; }
    Board.-narrow #strip { display: none; }
    Board #chain { height: 1; }
    Board.-narrow #chain { height: 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._focused = "nodes"
        self._brushed = Brush([], {})
        self._grid_key = (0, 0, -1)
        self._grid_ids: tuple[list[Any], int, int, int] = ([], 0, 0, 0)

    def compose(self) -> ComposeResult:
        palette = self.slinky.palette
        yield Bar(palette, id="header")
        yield Bar(palette, id="strip")
        yield Bar(palette, id="tabs")
        with Container(id="panes"):
            with Horizontal(id="top"):
                yield KindPane(KINDS["nodesets"], id="nodesets")
                with Framed(id="gpus"):
                    yield HeatGrid(palette)
            with Horizontal(id="bottom"):
                yield KindPane(KINDS["nodes"], id="nodes")
                yield KindPane(KINDS["jobs"], id="jobs")
        yield Bar(palette, id="chain")
        yield Bar(palette, id="footer")

    def on_mount(self) -> None:
        for pane in self.query(KindPane):
            sort = self.slinky.memory.sort.get(pane.kind.id, "")
            if pane.kind.column(sort.lstrip("-")) is not None:
                pane.sort_field, pane.descending = sort.lstrip("-"), sort.startswith("-")
        self._hide()
        self._choose("nodes")
        self.refill()

    def on_resize(self, event: events.Resize) -> None:
        narrow = event.size.width < 100 or event.size.height < 30
        self.set_class(narrow, "-narrow")
        self.set_class(not narrow and event.size.width > 160, "-wide")
        self.call_after_refresh(self.tick)

    def _list(self, name: str) -> KindPane:
        return self.query_one(f"#{name}", KindPane)

    def active_pane(self) -> KindPane | None:
        """The focused list; on the GPU grid that of its nodes, which the grid's cursor moves."""
        if not self.is_mounted:
            return None
        return self._list("nodes" if self._focused == "gpus" else self._focused)

    def _choose(self, name: str) -> None:
        self._focused = name
        for pane in PANES:
            self.query_one(f"#{pane}").set_class(pane != name, "away")
        for row, panes in _ROWS.items():
            self.query_one(f"#{row}").set_class(name not in panes, "away")
        self.query_one(f"#{name}").query_one("ResourceTable, HeatGrid").focus()
        self.refresh_bindings()
        self.call_after_refresh(self.tick)

    def _hide(self) -> None:
        hidden = self.slinky.memory.hidden
        for pane in PANES:
            self.query_one(f"#{pane}").set_class(pane in hidden, "hidden")
        for row, panes in _ROWS.items():
            self.query_one(f"#{row}").set_class(all(p in hidden for p in panes), "hidden")

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        pane = next((a.id for a in event.widget.ancestors_with_self if a.id in PANES), None)
        if pane is not None and pane != self._focused:
            self._choose(pane)

    def action_pane(self, by: int) -> None:
        order = [p for p in _ORDER if p not in self.slinky.memory.hidden] or list(_ORDER)
        at = order.index(self._focused) if self._focused in order else 0
        self._choose(order[(at + by) % len(order)])

    def action_go(self, name: str) -> None:
        if name in self.slinky.memory.hidden:
            self.slinky.memory.hidden.remove(name)
            self._hide()
        self._choose(name)

    def action_zoom(self) -> None:
        self.toggle_class("-zoomed")
        self.call_after_refresh(self.tick)

    def action_hide(self) -> None:
        """Hide the focused pane; when one is left, show all."""
        memory = self.slinky.memory
        if len(memory.hidden) >= len(PANES) - 1:
            memory.hidden.clear()
        else:
            memory.hidden.append(self._focused)
            self.action_pane(1)
        memory.save()
        self._hide()
        self.notify(
            f"hidden: {', '.join(memory.hidden)} (their number shows them)" if memory.hidden else "all shown", timeout=3
        )
        self.call_after_refresh(self.tick)

    def action_clear(self) -> None:
        pane = self.active_pane()
        if pane is not None and pane.table.clear_marks():
            pane.retitle()
        elif pane is not None and pane.filter_text:
            pane.narrow("")
        else:
            self.remove_class("-zoomed")
            self.call_after_refresh(self.tick)

    def go_to(self, kind: str, row_id: RowId) -> None:
        """Into the pane of that kind when it shows the row, else to the row's page."""
        if kind in _LISTS and self._list(kind).table.go_to(cast(Hashable, row_id)):
            self.action_go(kind)
        else:
            self.app.push_screen(DetailScreen(KINDS[kind], row_id))

    def on_heat_grid_highlighted(self, event: HeatGrid.Highlighted) -> None:
        event.stop()
        if self._focused == "gpus" and event.node is not None:
            self._list("nodes").table.go_to(event.node)
            self._brush()

    def on_heat_grid_opened(self, event: HeatGrid.Opened) -> None:
        event.stop()
        self.action_describe()

    def on_resource_table_highlighted(self, event: ResourceTable.Highlighted) -> None:
        event.stop()
        pane = self.active_pane()
        if pane is not None and event.table is pane.table:
            pane.retitle()
            if self._focused == "nodes" and event.row is not None:
                self.query_one(HeatGrid).follow(event.row)
            self._brush()
            self.refresh_bindings()

    def on_kind_pane_shown(self, event: KindPane.Shown) -> None:
        event.stop()
        if event.pane.id == "nodes":
            self._grid()

    def refill(self) -> None:
        for name in _LISTS:
            self._list(name).fill()
        self._grid()
        self._brush()
        self.tick()

    def take(self, changed: dict[Table, set[RowId]]) -> None:
        for name in _LISTS:
            pane = self._list(name)
            if pane.kind.table in changed:
                pane.take(changed[pane.kind.table])
            elif Table.SOURCES in changed:
                pane.retitle()
        if Table.SOURCES in changed:
            self._grid()
        self._brush()
        self._bars()

    def tick(self) -> None:
        for name in _LISTS:
            self._list(name).tick()
        self._bars()

    def _bars(self) -> None:
        app = self.slinky
        self.query_one("#header", Bar).say(*header_parts(app))
        nodes, jobs = app.knows(Table.NODES), app.knows(Table.JOBS)
        self.query_one("#strip", Bar).say(strip_parts(app.tally, app.now(), nodes_known=nodes, jobs_known=jobs))
        self.query_one("#tabs", Bar).say(self._tabs())
        self.query_one("#footer", Bar).say(footer_parts(self))

    def _tabs(self) -> list[tuple[str, str]]:
        tally = self.slinky.tally
        used = f"{tally.used / tally.gpus:.0%}" if tally.gpus and tally.used is not None else "–"
        bad = " ".join(f"{g}{tally.glyphs[g]}" for g in ("✖", "▼", "▽") if tally.glyphs[g])
        words = {
            "nodesets": f"1 NodeSets {self._list('nodesets').view_count}",
            "nodes": f"2 Nodes {len(tally.nodes) if self.slinky.knows(Table.NODES) else '–'} {bad}".strip(),
            "gpus": f"3 GPUs {used}",
            "jobs": f"4 Jobs R{tally.running:,} PD{tally.pending:,}" if self.slinky.knows(Table.JOBS) else "4 Jobs –",
        }
        parts: list[tuple[str, str]] = []
        for name, word in words.items():
            here = name == self._focused
            parts.append((f"[{word}]" if here else f" {word} ", "accent" if here else "muted"))
        return parts

    def _brush(self) -> None:
        """Light the relatives of the row under the cursor, write out its chain, and draw the grid."""
        ctx, pane = self.slinky.context, self.active_pane()
        rows = pane.current_rows() if pane is not None else []
        lit: dict[str, set[RowId]] = {}
        chain: list[tuple[str, str]] = []
        if ctx is not None and pane is not None and rows:
            row = rows[0]
            for each in rows:
                for kind, ids in relatives(pane.kind.id, each, ctx).items():
                    lit.setdefault(kind, set()).update(ids)
            says = pane.kind.says(row, ctx)
            chain = [(pane.kind.summary(row, ctx), "text")]
            chain += [("\n" if self.has_class("-narrow") else "   ", ""), (says, "muted")]
        for name in _LISTS:
            self._list(name).table.light(
                cast("set[Hashable]", lit.get(name, set())) if name != self._focused else set()
            )
        self.query_one("#chain", Bar).say(chain)
        self._brushed = Brush(rows, ctx.lookup.rows(Table.NODES) if ctx is not None else {})
        self.query_one(HeatGrid).light(cast("Lit", self._brushed.lit))
        self._grid_title()

    def _grid(self) -> None:
        """The devices of the nodes that the list of nodes shows, in its order."""
        ctx, grid, view = self.slinky.context, self.query_one(HeatGrid), self._list("nodes").view
        if ctx is None or view is None:
            return
        rows = ctx.lookup.rows(Table.NODES)
        ids, longest, most, _ = self._with_gpus(view, rows)

        def devices(node_id: Hashable) -> Devices:
            node = rows.get(cast(NodeId, node_id))
            return Devices(node.id.name, device_cells(node)) if isinstance(node, FleetNode) else Devices("", "")

        quiet = worst(sources_of(Table.NODES, self.slinky.sources()))
        grid.stale = quiet is not None
        grid.empty = "no GPUs on these nodes" if view else "no nodes"
        grid.show(ids, devices, longest, most)
        self._grid_title()

    def _grid_title(self) -> None:
        total = self._grid_ids[3]
        tally = self.slinky.tally
        hole = tally.largest_hole()
        parts = [f"{total:,}", f"largest hole {hole[1]} ({hole[0]})" if hole is not None else ""]
        frame = self.query_one("#gpus", Framed)
        if sum(map(len, parts)) + len(self._brushed.label) + 24 > frame.size.width:
            parts.pop()
        frame.entitle(
            f"GPUs  brush: {self._brushed.label}" if self._brushed.label else "GPUs", " · ".join(p for p in parts if p)
        )

    def _with_gpus(self, view: View, rows: Any) -> tuple[list[Any], int, int, int]:
        """Nodes with devices: their ids, the longest name, the most devices on one, all devices."""
        key = (id(view), view.version, self.slinky.tally.gpus)
        if key != self._grid_key:
            nodes: list[Row] = [n for i in view if isinstance(n := rows.get(i), FleetNode) and n.gpus_total]
            found = cast("list[FleetNode]", nodes)
            self._grid_key = key
            self._grid_ids = (
                [n.id for n in found], max((len(n.id.name) for n in found), default=0),
                max((len(n.gpu_cells) for n in found), default=0), sum(n.gpus_total or 0 for n in found),
            )  # fmt: skip
        return self._grid_ids
