"""`slinkytui get -w`: the rows, then each change as it comes. A server that is away is told once and waited for."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from slinkytui.backend.models import RowId, Source, Table
from slinkytui.backend.options import Options
from slinkytui.commands_get import Query, aligned, begin, cells, is_named, plain
from slinkytui.kinds.base import Context
from slinkytui.kinds.render import as_object
from slinkytui.oneshot import settled_engine, sources_of, trouble

Write = Callable[[str], None]


async def watch(options: Options, query: Query, timeout_s: float) -> int:
    """Print until interrupted. What is away at the start is an error, as without -w."""
    async with settled_engine(options, timeout_s, query.reads) as engine:
        begin(engine, query.kind)
        kind, store = query.kind, engine.store
        changes = store.watch((kind.table, Table.SOURCES, *kind.tables))
        printer, away = Printer(query, _out), Away(_err)

        def context() -> Context:
            return Context(engine.clock.now(), store)

        ctx = context()
        printer.start(query.arrange(list(store.rows(kind.table).values()), ctx), ctx)
        while True:
            away.tell(sources_of(engine, kind.table))
            await changes.wake.wait()
            changes.wake.clear()
            changed = changes.take()
            rows = store.rows(kind.table)
            # Cells may look into other tables: a change there may change any row.
            other = any(table in changed for table in kind.tables)
            ids: Iterable[RowId] = [*rows, *changed.get(kind.table, ())] if other else changed.get(kind.table, ())
            ctx = context()
            for row_id in dict.fromkeys(ids):
                printer.take(row_id, rows.get(row_id), ctx)


def _out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _err(text: str) -> None:
    print(f"slinkytui: {text}", file=sys.stderr, flush=True)


class Printer:
    """Prints rows whose printed values have changed. Columns that change with time alone are no change.

    In JSON a line is the row with one key more, `event`: added, changed or gone. A row that no longer fits the filter
    is gone.
    """

    def __init__(self, query: Query, write: Write) -> None:
        self._query, self._write = query, write
        self._shown: dict[RowId, tuple[Any, Any]] = {}
        self._widths = [max(len(c.title), c.width) for c in query.columns]

    def start(self, rows: list[Any], ctx: Context) -> None:
        """The heading and the rows there are."""
        query = self._query
        rows = [r for r in rows if not query.name or is_named(r.id, query.name)]
        if query.output in ("table", "wide"):
            lines = [cells(query.columns, r, ctx) for r in rows]
            self._widths = [max([w, *(len(line[i]) for line in lines)]) for i, w in enumerate(self._widths)]
            self._write(aligned([c.title for c in query.columns], self._widths, query.columns))
        for row in rows:
            self.take(row.id, row, ctx)

    def take(self, row_id: RowId, row: Any, ctx: Context) -> None:
        """A row as it is now; None when it is no more."""
        query = self._query
        if query.name and not is_named(row_id, query.name):
            return
        if row is None or not query.test(row, ctx):
            held = self._shown.pop(row_id, None)
            if held is not None:
                self._print(held[0], ctx, "gone")
            return
        value = self._value(row, ctx)
        held = self._shown.get(row_id)
        self._shown[row_id] = (row, value)
        if held is None or held[1] != value:
            self._print(row, ctx, "added" if held is None else "changed")

    def _value(self, row: Any, ctx: Context) -> Any:
        query = self._query
        if query.output == "json":
            found = as_object(row, query.kind, ctx)
            live = {c.field for c in (*query.kind.columns, *query.kind.extra) if c.live}
            return {k: v for k, v in found.items() if k not in live}
        if query.output == "name":
            return str(row.id)
        return [c.cell(row, ctx) for c in query.columns if not c.live]

    def _print(self, row: Any, ctx: Context, event: str) -> None:
        query = self._query
        if query.output == "json":
            self._write(json.dumps({**as_object(row, query.kind, ctx), "event": event}, ensure_ascii=True) + "\n")
        elif query.output == "name":
            if event != "gone":
                self._write(plain(f"{query.kind.singular}/{row.id}") + "\n")
        else:
            line = aligned(cells(query.columns, row, ctx), self._widths, query.columns)
            self._write(f"{line.rstrip()}  (gone)\n" if event == "gone" else line)


class Away:
    """Says once that a source is away, and once that it is back."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._gone: set[str] = set()

    def tell(self, sources: Iterable[Source]) -> None:
        for source in sources:
            error = trouble(source)
            if error is not None and source.name not in self._gone:
                self._gone.add(source.name)
                self._write(plain(f"{error.line()}; the rows are from before, waiting"))
            elif error is None and source.name in self._gone:
                self._gone.discard(source.name)
                self._write(f"{source.name} is back")
