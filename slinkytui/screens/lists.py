"""What the board and every full-screen list share: keys on the rows of the focused pane."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, cast

from textual.binding import Binding, BindingType

from slinkytui.backend import RowId, Table
from slinkytui.kinds import KINDS
from slinkytui.kinds.render import FORMATS, as_object, render_rows
from slinkytui.kinds.verbs import VERBS
from slinkytui.screens.chooser import Choice, Chooser, ColumnChooser
from slinkytui.screens.detail import DetailScreen, YamlScreen
from slinkytui.screens.pane import KindPane
from slinkytui.screens.verbs import VerbScreen
from slinkytui.widgets.prompt import Prompt
from slinkytui.widgets.table import ResourceTable
from slinkytui.widgets.text import inert

FILTER_HINT: Final = "state=idle & gpus>0 & name~^gpu"
LIST_BINDINGS: Final[list[BindingType]] = [
    *(Binding(v.key, f"verb('{v.id}')", v.title, id=v.id) for v in VERBS.values() if v.key),
    Binding("d", "describe", "describe", id="view.describe"),
    Binding("J", "owner", "its owner", id="view.owner"),
    Binding("o", "other", "the other world", id="view.other"),
    Binding("y", "yaml", "YAML", id="view.yaml"),
    Binding("x", "verbs", "all verbs", id="view.verbs"),
    Binding("full_stop", "again", "again", show=False, id="view.again"),
    Binding("U", "undo", "undo", show=False, id="view.undo"),
    Binding("slash", "filter", "filter", id="view.filter", priority=True),
    Binding("S", "sort", "sort", show=False, id="view.sort"),
    Binding("C", "columns", "columns", show=False, id="view.columns"),
    Binding("c", "copy", "copy", show=False, id="view.copy"),
    Binding("ctrl+s", "export", "export", show=False, id="view.export"),
    Binding("plus,equals_sign", "unfold", "open or close an array", show=False, id="view.unfold"),
    Binding("exclamation_mark", "problems", "problems", id="view.problems"),
]


class ListScreen(VerbScreen):
    """Needs `active_pane`."""

    @property
    def alive(self) -> bool:
        """Whether all parts are there: a screen is taken apart from its leaves."""
        return self.is_mounted and bool(self.query(ResourceTable)) and bool(self.query("#footer"))

    def take(self, changed: dict[Table, set[RowId]]) -> None:
        """Rows have changed."""
        raise NotImplementedError

    def tick(self) -> None:
        """Time has passed, or the tables have been filled anew."""
        raise NotImplementedError

    def refill(self) -> None:
        """Another cluster, namespace or setting: everything on view is made anew."""
        raise NotImplementedError

    async def action_filter(self) -> None:
        pane = self.active_pane()
        if pane is None:
            return
        before = pane.filter_text

        def done(text: str | None) -> None:
            pane.narrow(before if text is None else text)

        await self.app.push_screen(Prompt("/", FILTER_HINT, before, pane.narrow), done)

    async def action_sort(self) -> None:
        self.run_worker(self._sort(), exit_on_error=True)

    async def _sort(self) -> None:
        pane = self.active_pane()
        if pane is None:
            return
        choices = [
            Choice(c.field, c.title.lower(), "now, again turns the order" if c.field == pane.sort_field else "")
            for c in (*pane.kind.columns, *pane.kind.extra)
        ]
        field = await self.app.push_screen_wait(self.chooser(f"Sort {pane.kind.title} by", choices))
        if field:
            self.sort_by(pane, field)

    def sort_by(self, pane: KindPane, field: str) -> None:
        """Sort a pane, and find it so again."""
        pane.sort_by(field)
        self.slinky.memory.sort[pane.kind.id] = f"-{field}" if pane.descending else field
        self.slinky.memory.save()

    def chooser(self, title: str, choices: list[Choice], hint: str = "") -> Chooser:
        return Chooser(title, choices, hint=hint, plain=self.slinky.palette.plain)

    def action_columns(self) -> None:
        self.run_worker(self._columns(), exit_on_error=True)

    async def _columns(self) -> None:
        pane = self.active_pane()
        if pane is None:
            return
        fields = [(c.field, c.title.lower()) for c in (*pane.kind.columns, *pane.kind.extra)]
        chosen = await self.app.push_screen_wait(
            ColumnChooser(f"Columns of {pane.kind.title}", fields, [c.field for c in pane.columns()])
        )
        if chosen is None:
            return
        memory = self.slinky.memory
        if chosen:
            memory.columns[pane.kind.id] = chosen
        else:
            memory.columns.pop(pane.kind.id, None)
        memory.save()
        pane.fill()

    def action_verbs(self) -> None:
        self.run_worker(self._verbs(), exit_on_error=True)

    async def _verbs(self) -> None:
        """All verbs of this row; a refused one says why."""
        pane = self.active_pane()
        if pane is None:
            return
        choices = [
            Choice(v, f"{VERBS[v].title}", VERBS[v].key and f"key {VERBS[v].key}", self.refusal(v))
            for v in pane.kind.verbs
        ]
        rows = pane.targets()
        one = f"{pane.kind.singular} {inert(str(rows[0].id), 40)}" if rows else pane.kind.singular  # type: ignore[attr-defined]
        what = one if len(rows) < 2 else f"{len(rows)} {pane.kind.title}"
        verb = await self.app.push_screen_wait(self.chooser(what, choices))
        if verb:
            self.action_verb(verb)

    def action_copy(self) -> None:
        self.run_worker(self._copy(), exit_on_error=True)

    async def _copy(self) -> None:
        pane, ctx = self.active_pane(), self.slinky.context
        rows = pane.targets() if pane is not None else []
        if pane is None or ctx is None or not rows:
            return
        ids = "\n".join(inert(str(r.id)) for r in rows)  # type: ignore[attr-defined]
        lines = "\n".join("  ".join(inert(c.cell(r, ctx)) for c in pane.columns()) for r in rows)
        objects = json.dumps([as_object(r, pane.kind, ctx) for r in rows], indent=2)
        found = {
            "name": ids,
            "line": lines,
            "chain": "\n".join(inert(pane.kind.summary(r, ctx)) for r in rows),
            "JSON": objects,
        }
        choices = [Choice(k, k, v.splitlines()[0] if k != "JSON" else f"{len(rows)} objects") for k, v in found.items()]
        taken = await self.app.push_screen_wait(self.chooser("Copy", choices))
        if taken:
            self.app.copy_to_clipboard(found[taken])
            self.notify(f"copied {taken} of {len(rows)}", timeout=2)

    def action_export(self) -> None:
        pane = self.active_pane()
        if pane is None:
            return

        def done(text: str | None) -> None:
            if text and text.strip():
                self._export(pane, Path(text.strip()).expanduser())

        self.app.push_screen(Prompt(">", "file.csv, .json or .yaml", f"{pane.kind.id}.csv"), done)

    def _export(self, pane: KindPane, path: Path) -> None:
        """Write what is on view; a file that is there is never overwritten."""
        ctx, form = self.slinky.context, path.suffix.lstrip(".").replace("yml", "yaml")
        if form not in FORMATS or form == "name" or ctx is None:
            self.notify("the name must end in .csv, .json or .yaml", severity="warning")
            return
        rows = pane.shown()
        try:
            with path.open("x", encoding="utf-8") as out:
                out.write(render_rows(rows, pane.kind, ctx, form))
        except FileExistsError:
            self.notify(f"{path} is there already: take another name", severity="warning", markup=False)
        except OSError as error:
            self.notify(f"{path}: {error.strerror}", severity="error", markup=False)
        else:
            self.notify(f"{len(rows):,} rows written to {path}", markup=False)

    def action_unfold(self) -> None:
        pane = self.active_pane()
        if pane is not None and not pane.toggle():
            self.notify("no array here", timeout=2)

    def action_problems(self) -> None:
        from slinkytui.screens.listing import KindScreen

        self.app.push_screen(KindScreen(KINDS["problems"]))

    def action_describe(self) -> None:
        pane = self.active_pane()
        row = pane.current() if pane is not None else None
        if pane is not None and row is not None:
            self.app.push_screen(DetailScreen(pane.kind, cast(RowId, row.id)))  # type: ignore[attr-defined]

    def action_yaml(self) -> None:
        pane = self.active_pane()
        row = pane.current() if pane is not None else None
        if pane is not None and row is not None and pane.kind.raw:
            self.app.push_screen(YamlScreen(pane.kind, cast(RowId, row.id)))  # type: ignore[attr-defined]

    def action_owner(self) -> None:
        self._along("owner")

    def action_other(self) -> None:
        self._along("other")

    def _along(self, way: str) -> None:
        """To a relative of this row: on the board into its pane, else its page."""
        pane, ctx = self.active_pane(), self.slinky.context
        row = pane.current() if pane is not None else None
        if pane is None or row is None or ctx is None:
            return
        kind: str = getattr(pane.kind, way)
        link = next((x for x in pane.kind.links if x.kind == kind), None)
        found = list(link.ids(row, ctx)) if link is not None else []
        if not found:
            what = KINDS[kind].singular if kind else way
            self.notify(f"no {what} of this {pane.kind.singular} is known", timeout=3)
            return
        self.go_to(kind, found[0])

    def go_to(self, kind: str, row_id: RowId) -> None:
        """Show a row of another kind."""
        self.app.push_screen(DetailScreen(KINDS[kind], row_id))

    def on_resource_table_opened(self, event: ResourceTable.Opened) -> None:
        event.stop()
        pane = self.active_pane()
        if pane is not None and not pane.toggle():
            self.action_describe()

    def on_resource_table_head_clicked(self, event: ResourceTable.HeadClicked) -> None:
        event.stop()
        pane = next(p for p in self.query(KindPane) if p.table is event.table)
        self.sort_by(pane, pane.columns()[event.column].field)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        pane = self.active_pane() if self.is_mounted else None
        if action in ("owner", "other"):
            return pane is not None and bool(getattr(pane.kind, action))
        if action == "yaml":
            return pane is not None and pane.kind.raw
        if action == "unfold":
            return pane is not None and pane.kind.fold is not None
        if action == "verbs":
            return pane is not None and bool(pane.kind.verbs)
        if action in ("describe", "copy", "export", "columns", "sort"):
            return pane is not None
        return super().check_action(action, parameters)
