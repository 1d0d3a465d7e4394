"""Rows as JSON, YAML, CSV or names: what `get` prints and the console exports."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any, Final

from slinkytui.kinds.base import Context, Kind

FORMATS: Final = ("json", "yaml", "csv", "name")


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


def render_rows(rows: Sequence[Any], kind: Kind, ctx: Context, output: str) -> str:
    """The rows in one of FORMATS, with the line end of the last line, and nothing in it that a terminal would obey."""
    return inert(_rendered(rows, kind, ctx, output), output)


def inert(text: str, output: str) -> str:
    """Without anything that a terminal would obey. JSON and YAML keep the exact value as an escape."""
    if text.replace("\n", "").isprintable():
        return text
    if output == "json":
        return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    if output == "yaml":
        import yaml

        return yaml.safe_dump(yaml.safe_load(text), sort_keys=False, allow_unicode=False)
    return "".join(c if c.isprintable() or c == "\n" else "·" for c in text)


def _rendered(rows: Sequence[Any], kind: Kind, ctx: Context, output: str) -> str:
    match output:
        case "json":
            return json.dumps([as_object(r, kind, ctx) for r in rows], indent=2, ensure_ascii=False) + "\n"
        case "yaml":
            import yaml

            return yaml.safe_dump([as_object(r, kind, ctx) for r in rows], sort_keys=False, allow_unicode=True)
        case "name":
            return "".join(f"{kind.singular}/{r.id}\n" for r in rows)
        case "csv":
            return _csv(rows, kind, ctx)
    raise ValueError(f"no format {output!r}")


def _csv(rows: Sequence[Any], kind: Kind, ctx: Context) -> str:
    out = io.StringIO()
    fields = [c.field for c in (*kind.columns, *kind.extra) if c.json]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(fields)
    for row in rows:
        values = as_object(row, kind, ctx)
        writer.writerow(["" if (v := values[f]) is None else ",".join(v) if isinstance(v, list) else v for f in fields])
    return out.getvalue()
