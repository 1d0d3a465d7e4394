"""What an operator last decided about each object, why, and what came of it. Rows exist where an operator runs."""

from __future__ import annotations

from slinkytui.backend import Decided, Key, RowId, Table
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, Section, Token
from slinkytui.kinds.text import age, moment

_DID = 12


def state(row: Decided) -> str:
    """Failed, waits, acted or settled."""
    if row.error or any(d.error for d in row.did):
        return "failed"
    if any(b.waits for b in row.why):
        return "waits"
    return "acted" if row.acted is not None and row.acted == row.at else "settled"


def _token(row: Decided, ctx: Context) -> Token:
    return {"failed": "error", "waits": "warning"}.get(state(row), "text")  # type: ignore[return-value]  # a closed set


def _waits(row: Decided) -> str:
    found = [b for b in row.why if b.waits]
    if not found:
        return ""
    first = f"{found[0].subject + ': ' if found[0].subject else ''}{found[0].text}"
    return f"{first}  (+{len(found) - 1})" if found[1:] else first


def _again(row: Decided, ctx: Context) -> str:
    if row.again_s is None:
        return "on change"
    return f"in {max(0.0, row.at + row.again_s - ctx.now):.0f}s"


def _nodesets(row: Decided, ctx: Context) -> tuple[RowId, ...]:
    return (Key(*row.id),) if row.controller == "nodeset" else ()


def decision_sections(row: Decided, ctx: Context) -> tuple[Section, ...]:
    """The last pass over one object."""
    return (
        Section(
            "Last pass",
            (
                Line("state", state(row), _token(row, ctx)),
                Line("at", f"{moment(row.at)}, {age(row.at, ctx.now)} ago"),
                Line("looks again", _again(row, ctx)),
                Line("reconcile", row.reconcile or "–"),
                *((Line("failed", row.error, "error"),) if row.error else ()),
            ),
        ),
        Section(
            "Why",
            tuple(
                Line(b.subject or "–", b.text + (f", since {age(b.since, ctx.now)}" if b.since else ""), "warning" if b.waits else "text")
                for b in row.why
            ),
        ),
        Section(
            f"Did {age(row.acted, ctx.now)} ago" if row.acted else "Did",
            tuple(Line("refused" if d.error else "done", f"{d.text}{': ' + d.error if d.error else ''}", "error" if d.error else "text")
                  for d in row.did[:_DID])
            + ((Line("", f"and {len(row.did) - _DID} more", "muted"),) if row.did[_DID:] else ()),
        ),
    )  # fmt: skip


DECISIONS = Kind(
    id="decisions",
    title="Decisions",
    singular="decision",
    table=Table.DECISIONS,
    aliases=("dec",),
    columns=(
        Column("OBJECT", "name", lambda r, c: str(r.id), width=16),
        Column("KIND", "kind", lambda r, c: r.controller, width=8, drop=4),
        Column("STATE", "state", lambda r, c: state(r), token=_token, width=8),
        Column(
            "AGE", "age_s", lambda r, c: c.now - r.at, lambda r, c: age(r.at, c.now), align="right", live=True, drop=3
        ),
        Column(
            "ACTED",
            "acted_s",
            lambda r, c: None if r.acted is None else c.now - r.acted,
            lambda r, c: age(r.acted, c.now),
            align="right",
            live=True,
            drop=2,
        ),
        Column("DID", "did", lambda r, c: len(r.did), align="right", drop=2),
        Column("AGAIN", "again", lambda r, c: r.again_s, _again, drop=3, live=True, width=9),
        Column("WAITS FOR", "waits", lambda r, c: _waits(r) or None, grow=True),
    ),
    extra=(
        Column("ERROR", "error", lambda r, c: r.error or None),
        Column("RECONCILE", "reconcile", lambda r, c: r.reconcile or None),
        Column("WHY", "why", lambda r, c: tuple(f"{b.subject}: {b.text}" if b.subject else b.text for b in r.why)),
        Column("ACTS", "acts", lambda r, c: tuple(f"{d.text}: {d.error}" if d.error else d.text for d in r.did)),
    ),
    links=(Link("NodeSet", "nodesets", _nodesets),),
    detail=decision_sections,
    summary=lambda r, c: f"{r.controller} {r.id} ▸ {state(r)}",
    says=lambda r, c: _waits(r) or r.error,
    severity=_token,
    marked=lambda r, c: state(r) == "failed",
    owner="nodesets",
    raw=False,
)
