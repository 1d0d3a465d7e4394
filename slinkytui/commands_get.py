"""`slinkytui get`: the rows of a kind as a table, JSON, YAML, CSV or names; once, or followed with -w."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slinkytui.backend import JobId, NotFound, UsageError
from slinkytui.backend.engine import Engine
from slinkytui.backend.fleet.join import MADE_OF
from slinkytui.backend.models import Table
from slinkytui.backend.options import Options
from slinkytui.kinds import KINDS, Kind, find_kind
from slinkytui.kinds.base import Column, Context
from slinkytui.kinds.filters import compile_filter, fields_of
from slinkytui.kinds.order import Order
from slinkytui.kinds.render import FORMATS, render_rows
from slinkytui.labels import compile_selector, labels_of
from slinkytui.oneshot import OURS, SLURM_TABLES, demand, settled_engine

Test = Callable[[Any, Context], bool]
_LABELLED = (
    Table.PODS, Table.KUBENODES, Table.NODESETS, Table.CONTROLLERS, Table.LOGINSETS, Table.RESTAPIS, Table.ACCOUNTINGS,
    Table.TOKENS,
)  # fmt: skip


@dataclass(frozen=True)
class Query:
    """What `get` was asked for. `columns` are those of the table, in order."""

    kind: Kind
    name: str
    test: Test
    field: str
    descending: bool
    output: str
    columns: tuple[Column, ...]
    reads: frozenset[Table]
    """The tables that the answer is made of: what is silent and not asked about holds nothing up."""

    def arrange(self, rows: Sequence[Any], ctx: Context) -> list[Any]:
        """The rows that were asked for, in order."""
        chosen = [r for r in rows if self.test(r, ctx)]
        return arrange(chosen, self.kind, self.field, ctx, descending=self.descending)


def query_of(args: argparse.Namespace) -> Query:
    """The query of `get`'s arguments. Raises UsageError that names the nearest word."""
    word, _, inline = args.kind.partition("/")
    kind = find_kind(word)
    if kind is None:
        raise UsageError(f"no kind {word!r}", hint=nearest(word, KINDS, "kinds"))
    if inline and args.name:
        raise UsageError(f"one name, not {inline!r} and {args.name!r}")
    descending, field = args.sort.startswith("-"), args.sort.removeprefix("-").replace("-", "_").lower()
    if field and kind.column(field) is None:
        raise UsageError(f"{kind.id} have no field {field!r}", hint=nearest(field, kind.fields, "fields"))
    wanted = compile_filter(args.filter, kind)
    test = wanted
    if args.selector:
        if kind.table not in _LABELLED:
            raise UsageError(
                f"-l is for labels of Kubernetes objects, {kind.id} have none", hint="-f EXPR filters them"
            )
        chosen = compile_selector(args.selector)
        test = lambda row, ctx: chosen(labels_of(row) or {}) and wanted(row, ctx)  # noqa: E731  # closes over both
    if args.watch and args.output in ("yaml", "csv"):
        raise UsageError(f"-w does not go with -o {args.output}", hint="-o json prints one object a line")
    columns = table_columns(kind, args.output, getattr(args, "columns", {}))
    used = {*fields_of(args.filter, kind), field or kind.sort}
    if args.output in ("table", "wide"):
        used.update(c.field for c in columns)
    elif args.output != "name":
        used.update(kind.fields)
    reads = MADE_OF.get(kind.table, frozenset((kind.table,))).union(
        *(c.needs for f in used if (c := kind.column(f)) is not None)
    )
    return Query(kind, inline or args.name or "", test, field or kind.sort, descending, args.output, columns, reads)


def nearest(word: str, known: Mapping[str, Any] | Sequence[str], what: str) -> str:
    """A hint: the nearest known word, or all of them."""
    near = difflib.get_close_matches(word.lower(), list(known), 1, 0.6)
    return f"did you mean {near[0]}?" if near else f"{what}: {' '.join(known)}"


def table_columns(kind: Kind, output: str, chosen: Mapping[str, Sequence[str]]) -> tuple[Column, ...]:
    """The columns of a table: those of the settings for this kind, else the kind's own; wide shows all."""
    fields = chosen.get(kind.id)
    if fields and output != "wide":
        return tuple(c for f in fields if (c := kind.column(f)) is not None)
    return tuple(c for c in kind.columns if output == "wide" or not c.wide)


def run_get(options: Options, args: argparse.Namespace) -> int:
    query = query_of(args)
    if args.watch:
        from slinkytui.commands_watch import watch

        return asyncio.run(watch(options, query, args.timeout))
    rows, ctx = asyncio.run(_rows(options, query, args.timeout))
    rows = named(rows, query.name, query.kind)
    sys.stdout.write(render(query.arrange(rows, ctx), query, ctx))
    return 0


async def _rows(options: Options, query: Query, timeout_s: float) -> tuple[list[Any], Context]:
    kind = query.kind
    async with settled_engine(options, timeout_s, query.reads) as engine:
        begin(engine, kind)
        if kind.table == Table.DECISIONS:
            return list(await engine.decisions()), Context(engine.clock.now(), engine.store)
        return list(engine.store.rows(kind.table).values()), Context(engine.clock.now(), engine.store)


def begin(engine: Engine, kind: Kind) -> None:
    """Raise unless the kind's rows are known; ask for those that are made on demand."""
    if kind.table not in (*SLURM_TABLES, *OURS) and engine.access is None:
        raise UsageError(f"{kind.id} come from Kubernetes, and there is none", hint="--kubeconfig FILE")
    demand(engine, kind.table)
    engine.wanted(kind.table, 1)


def named(rows: Sequence[Any], name: str, kind: Kind) -> list[Any]:
    """The rows of exactly this name, as it is printed or without its namespace; of an array's number all its tasks."""
    if not name:
        return list(rows)
    found = [r for r in rows if is_named(r.id, name)]
    if not found and kind.table == Table.JOBS:
        found = [r for r in rows if isinstance(r.id, JobId) and str(r.id.id) == name]
    if not found:
        near = difflib.get_close_matches(name, [str(r.id) for r in rows], 1, 0.7)
        raise NotFound(f"{kind.singular} {name} not found", hint=f"did you mean {near[0]}?" if near else "")
    return found


def is_named(row_id: Any, name: str) -> bool:
    return name in (str(row_id), getattr(row_id, "name", ""))


def arrange(rows: Sequence[Any], kind: Kind, field: str, ctx: Context, *, descending: bool = False) -> list[Any]:
    """Sorted by a field; unknown last in both directions, numbers as numbers."""
    key = Order(kind.column(field))
    keyed = sorted(((key(row, ctx), row) for row in rows), key=lambda pair: pair[0])
    known = [row for k, row in keyed if not k[1]]
    return (known[::-1] if descending else known) + [row for k, row in keyed if k[1]]


def render(rows: Sequence[Any], query: Query, ctx: Context) -> str:
    """The rows as they are printed, with the last line's end."""
    if query.output in FORMATS:
        return render_rows(rows, query.kind, ctx, query.output)
    return table_text(query.columns, rows, ctx)


def table_text(columns: Sequence[Column], rows: Sequence[Any], ctx: Context) -> str:
    """A plain table; text from clusters is printed without control characters."""
    lines = [[c.title for c in columns], *(cells(columns, r, ctx) for r in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "".join(aligned(line, widths, columns) for line in lines)


def cells(columns: Sequence[Column], row: Any, ctx: Context) -> list[str]:
    return [plain(c.cell(row, ctx)) for c in columns]


def aligned(line: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    """One line of a table, with its end."""
    padded = [t.rjust(w) if c.align == "right" else t.ljust(w) for t, w, c in zip(line, widths, columns, strict=True)]
    return "  ".join(padded).rstrip() + "\n"


def plain(text: str) -> str:
    """Without anything that a terminal would obey: controls, escapes, direction marks."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "·" for c in text)
