"""What every detail page has besides its kind's own sections: why something is wrong, and what happened."""

from __future__ import annotations

from typing import Any, Final

from slinkytui.backend.models import Event, Explained, Problem, Table
from slinkytui.kinds.base import Context, Kind, Line, Section, Token
from slinkytui.kinds.text import age

_EVENTS: Final = 20
_ACTS: Final = 8
_SAID: Final[dict[str, Token]] = {"waits": "warning", "held": "warning", "refused": "error"}
_ELSEWHERE: Final = ("NodeSet", "Kubernetes", "Slurm node")
"""Told by the page's own sections."""


def why_sections(row: Any, ctx: Context) -> tuple[Section, ...]:
    """The problems that name this row, with since when."""
    found = [
        p
        for p in ctx.lookup.rows(Table.PROBLEMS).values()
        if isinstance(p, Problem) and row.id in (p.node, p.pod, p.nodeset, p.job)
    ]
    lines = tuple(
        Line(
            p.kind,
            f"{p.text}{f', since {age(p.since, ctx.now)}' if p.since else ''}",
            "error" if p.severity == "error" else "warning",
        )
        for p in found
    )
    return (Section("Why it needs you", lines),)


def explained_section(found: Explained) -> Section:
    """What an operator makes of an object: what is, what is waited for, and what it would do now."""
    lines = [
        Line(one.label, one.text, _SAID.get(one.label, "text")) for one in found.lines if one.label not in _ELSEWHERE
    ]
    acts = found.acts[:_ACTS]
    lines += [Line("would do" if at == 0 else "", act) for at, act in enumerate(acts)]
    if found.acts[_ACTS:]:
        lines.append(Line("", f"and {len(found.acts) - _ACTS} more", "muted"))
    if not found.acts:
        lines.append(Line("would do", "nothing", "muted"))
    return Section("What the operator makes of it", tuple(lines))


def event_sections(kind: Kind, row: Any, ctx: Context) -> tuple[Section, ...]:
    """The newest events of the Kubernetes objects behind this row."""
    about = set(kind.about(row))
    if not about:
        return ()
    found = [
        e
        for e in ctx.lookup.rows(Table.EVENTS).values()
        if isinstance(e, Event) and (e.about_kind, e.about_namespace, e.about_name) in about
    ]
    found.sort(key=lambda e: e.last or 0, reverse=True)
    lines = tuple(
        Line(
            age(e.last, ctx.now),
            f"{e.reason}  {e.message}{f'  ({e.count} times)' if e.count > 1 else ''}",
            "warning" if e.type == "Warning" else "text",
        )
        for e in found[:_EVENTS]
    )
    return (Section("Events", lines),)
