"""`slinkytui get`: the rows of a kind as a table, JSON, YAML, CSV or names."""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import json
import sys
from collections.abc import Sequence
from typing import Any

import yaml

from slinkytui.backend import NotFound, UsageError
from slinkytui.backend.models import Table
from slinkytui.backend.options import Options
from slinkytui.kinds import KINDS, Kind, find_kind
from slinkytui.kinds.base import Column, Context, Value
from slinkytui.kinds.filters import compile_filter
from slinkytui.oneshot import demand, settled_engine


def run_get(options: Options, args: argparse.Namespace) -> int:
    kind = find_kind(args.kind)
    if kind is None:
        raise UsageError(f"no kind {args.kind!r}", hint=f"kinds: {' '.join(KINDS)}")
    test = compile_filter(args.filter, kind)
    descending, field = args.sort.startswith("-"), args.sort.lstrip("-")
    if field and kind.column(field) is None:
        raise UsageError(f"{kind.id} have no field {field!r}", hint=f"fields: {', '.join(kind.fields)}")
    rows, ctx = asyncio.run(_rows(options, kind))
    if args.name:
        rows = [r for r in rows if args.name in (str(r.id), getattr(r.id, "name", ""))]
        if not rows:
            raise NotFound(f"{kind.singular} {args.name} not found")
    rows = arrange([r for r in rows if test(r, ctx)], kind, field or kind.sort, ctx, descending=descending)
    sys.stdout.write(render(rows, kind, ctx, args.output))
    return 0


async def _rows(options: Options, kind: Kind) -> tuple[list[Any], Context]:
    async with settled_engine(options) as engine:
        demand(engine, kind.table)
        if kind.table == Table.GPUS:
            engine.wanted(Table.GPUS, 1)
        rows = list(engine.store.rows(kind.table).values())
        return rows, Context(engine.clock.now(), engine.store)


def arrange(rows: Sequence[Any], kind: Kind, field: str, ctx: Context, *, descending: bool = False) -> list[Any]:
    """Sorted by a field; unknown last, numbers as numbers."""
    column = kind.column(field)
    if column is None:
        return sorted(rows, key=lambda r: str(r.id))
    known = [(v, r) for r in rows if (v := column.value(r, ctx)) is not None]
    known.sort(key=lambda pair: (_sortable(pair[0]), natural(str(pair[1].id))), reverse=descending)
    return [r for _, r in known] + [r for r in rows if column.value(r, ctx) is None]


def _sortable(value: Value) -> tuple[int, float, list[tuple[int, str]]]:
    if isinstance(value, bool | int | float):
        return (0, float(value), [])
    return (1, 0.0, natural(",".join(value) if isinstance(value, tuple) else str(value)))


def natural(text: str) -> list[tuple[int, str]]:
    """A key that puts gpu-9 before gpu-10."""
    out: list[tuple[int, str]] = []
    digits = word = ""
    for char in text:
        if char.isdigit() and char.isascii():
            if word:
                out.append((0, word))
                word = ""
            digits += char
        else:
            if digits:
                out.append((int(digits), ""))
                digits = ""
            word += char
    out.append((int(digits), "") if digits else (0, word))
    return out


def as_object(row: Any, kind: Kind, ctx: Context) -> dict[str, Any]:
    """A row for machines: snake_case keys, raw values, null for unknown, "infinite" for no limit."""
    out: dict[str, Any] = {}
    for column in (*kind.columns, *kind.extra):
        if column.json:
            value = column.value(row, ctx)
            out[column.field] = (
                "infinite" if value == float("inf") else list(value) if isinstance(value, tuple) else value
            )
    return out


def render(rows: Sequence[Any], kind: Kind, ctx: Context, output: str) -> str:
    match output:
        case "json":
            return json.dumps([as_object(r, kind, ctx) for r in rows], indent=2, ensure_ascii=False) + "\n"
        case "yaml":
            return yaml.safe_dump([as_object(r, kind, ctx) for r in rows], sort_keys=False, allow_unicode=True)
        case "name":
            return "".join(f"{kind.singular}/{r.id}\n" for r in rows)
        case "csv":
            return _csv(rows, kind, ctx)
    columns = [c for c in kind.columns if output == "wide" or not c.wide]
    return table_text(columns, rows, ctx)


def _csv(rows: Sequence[Any], kind: Kind, ctx: Context) -> str:
    out = io.StringIO()
    columns = [c for c in (*kind.columns, *kind.extra) if c.json]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([c.field for c in columns])
    for row in rows:
        values = as_object(row, kind, ctx)
        writer.writerow(
            ["" if (v := values[c.field]) is None else ",".join(v) if isinstance(v, list) else v for c in columns]
        )
    return out.getvalue()


def table_text(columns: Sequence[Column], rows: Sequence[Any], ctx: Context) -> str:
    """A plain table; text from clusters is printed without control characters."""
    lines = [[c.title for c in columns]] + [[plain(c.cell(r, ctx)) for c in columns] for r in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    out = []
    for line in lines:
        cells = [
            t.rjust(w) if c.align == "right" else t.ljust(w) for t, w, c in zip(line, widths, columns, strict=True)
        ]
        out.append("  ".join(cells).rstrip() + "\n")
    return "".join(out)


def plain(text: str) -> str:
    """Without anything that a terminal would obey: controls, escapes, direction marks."""
    return "".join(c if c.isprintable() else "·" for c in text)
