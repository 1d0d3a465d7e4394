"""A kind's list in a frame: columns, filter, sort, marks. The board shows four, a full-screen list one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, cast

from textual.app import ComposeResult
from textual.containers import Vertical

from slinkytui.backend import Row, RowId, UsageError
from slinkytui.kinds.base import Column, Context, Kind
from slinkytui.kinds.filters import Test, compile_filter
from slinkytui.widgets.table import Cells, Head, ResourceTable

if TYPE_CHECKING:
    from slinkytui.app import SlinkyApp


class KindPane(Vertical):
    """`table` holds the rows of `kind` that pass the filter."""

    DEFAULT_CSS = """
    KindPane { border: round $border; border-title-color: $text; border-subtitle-color: $text-muted; }
    KindPane:focus-within { border: heavy $accent; }
    """

    def __init__(self, kind: Kind, *, wide: bool = False, filter_text: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind, self.wide = kind, wide
        self.filter_text = filter_text
        self.sort_field, self.descending = kind.sort, False
        self._test: Test | None = None
        self._rows: dict[RowId, Row] = {}
        self.problem = ""
        self.border_title = kind.title

    @property
    def slinky(self) -> SlinkyApp:
        return cast("SlinkyApp", self.app)

    def compose(self) -> ComposeResult:
        yield ResourceTable(self.slinky.palette)

    @property
    def table(self) -> ResourceTable:
        return self.query_one(ResourceTable)

    def columns(self) -> list[Column]:
        return [c for c in self.kind.columns if self.wide or not c.wide]

    def narrow(self, text: str) -> None:
        """Filter as it is typed; a text that cannot be read yet says why and keeps the rows."""
        self.filter_text = text
        self._test = None
        self.fill()

    def fill(self) -> None:
        """Take the rows from the reader, filter and sort them."""
        ctx = self.slinky.context
        if ctx is None:
            self.table.empty = "starting the engine …"
            self.table.refresh()
            return
        rows = ctx.lookup.rows(self.kind.table)
        self.problem = ""
        if self._test is None:
            try:
                self._test = compile_filter(self.filter_text, self.kind)
            except UsageError as error:
                self.problem = error.line()
        test = self._test
        picked = [(i, r) for i, r in rows.items() if test is None or test(r, ctx)]
        ids = self._arrange(picked, ctx)
        columns = self.columns()
        heads = [Head(c.title, c.align, c.width, c.grow, c.drop) for c in columns]

        def cells(row_id: Hashable) -> Cells:
            row = rows.get(cast(RowId, row_id))
            now = self.slinky.context
            if row is None or now is None:
                return ()
            return [(c.cell(row, now), c.token(row, now) if c.token else "text") for c in columns]

        def flag(row_id: Hashable) -> str:
            row = rows.get(cast(RowId, row_id))
            now = self.slinky.context
            return "≠" if row is not None and now is not None and self.kind.marked(row, now) else " "

        self.table.empty = self.problem or (
            "no row passes the filter" if self.filter_text and rows else self._why_empty()
        )
        self.table.show(heads, ids, cells, flag)
        shown = f"{len(ids):,}" if len(ids) == len(rows) else f"{len(ids):,} of {len(rows):,}"
        self.border_subtitle = None
        self.border_title = f"{self.kind.title} ─ {shown}" + (f", / {self.filter_text}" if self.filter_text else "")

    def _arrange(self, picked: list[tuple[RowId, Row]], ctx: Context) -> list[Hashable]:
        column = self.kind.column(self.sort_field)

        def key(pair: tuple[RowId, Row]) -> tuple[Any, ...]:
            value = column.value(pair[1], ctx) if column else None
            if value is None:
                return (1, 0, "", str(pair[0]))
            if isinstance(value, bool | int | float):
                return (0, float(value), "", str(pair[0]))
            return (0, 0.0, _padded(str(value)), str(pair[0]))

        return [row_id for row_id, _ in sorted(picked, key=key, reverse=self.descending)]

    def _why_empty(self) -> str:
        reader = self.slinky.reader
        if reader is None or self.kind.table not in reader.ready:
            return "loading …"
        hints = {
            "nodesets": "no NodeSets: :nodes shows what Slurm has; slinkytui crds | kubectl apply -f - installs the kinds",
            "nodes": "no Slurm nodes: is slurmrestd reached? see ! problems",
            "jobs": "no jobs",
        }
        return hints.get(self.kind.id, f"no {self.kind.title.lower()}")


def _padded(text: str) -> str:
    """A text that sorts gpu-9 before gpu-10."""
    out, digits = [], ""
    for char in text:
        if char.isdigit():
            digits += char
            continue
        if digits:
            out.append(digits.zfill(12))
            digits = ""
        out.append(char)
    return "".join(out) + (digits.zfill(12) if digits else "")
