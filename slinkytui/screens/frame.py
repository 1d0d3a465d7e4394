"""The words of header, strip and footer, made from the sources, the problems and the live bindings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.screen import Screen

from slinkytui.backend import Cluster, FleetNode, Job, Severity, Source, Table
from slinkytui.kinds.states import job_state, node_state
from slinkytui.kinds.text import span

if TYPE_CHECKING:
    from slinkytui.app import SlinkyApp

Parts = list[tuple[str, str]]
_STEPS = (1, 2, 5, 10, 20, 30, 60)


def coarse(seconds: float) -> str:
    """An age in few steps, so that a quiet screen writes few bytes."""
    for step in reversed(_STEPS):
        if seconds >= step:
            return span(seconds) if seconds >= 60 else f"{step}s"
    return "now"


def header_parts(app: SlinkyApp) -> tuple[Parts, Parts]:
    """Where we are and how fresh it is; at the right the problems."""
    reader = app.reader
    if reader is None or reader.hello is None:
        return [("slinkytui", "accent"), ("   starting the engine …", "muted")], []
    if reader.lost:
        return [("slinkytui", "accent"), (f"   {reader.lost}: q quits", "error")], []
    hello = reader.hello
    clusters = [c.name for c in reader.rows(Table.CLUSTERS).values() if isinstance(c, Cluster)]
    where = " ▸ ".join(p for p in (hello.context, ",".join(clusters[:2])) if p) or hello.note
    parts: Parts = [("slinkytui  ", "accent"), (where, "text")]
    sources = [s for s in reader.rows(Table.SOURCES).values() if isinstance(s, Source)]
    for word, prefix in (("k8s", "kubernetes/"), ("slurm", "slurm/")):
        mine = [s for s in sources if s.name.startswith(prefix)]
        if mine:
            parts += _freshness(word, mine, app.now())
    if hello.sim:
        parts.append((f"   SIM {hello.sim} ×{hello.sim_speed:g}", "info"))
    if app.read_only:
        parts.append(("   read-only", "info"))
    bad = [
        p
        for p in reader.rows(Table.PROBLEMS).values()
        if getattr(p, "severity", "") in (Severity.ERROR, Severity.WARNING)
    ]
    count = f"▲ {len(bad)} problem{'' if len(bad) == 1 else 's'}" if bad else "✓ no problems"
    return parts, [(count, "warning" if bad else "muted")]


def _freshness(word: str, sources: list[Source], now: float) -> Parts:
    bad = [s for s in sources if s.state in ("stale", "refused")]
    if bad:
        worst = min(bad, key=lambda s: s.last_success or 0)
        since = f"last answer {coarse(now - worst.last_success)} ago" if worst.last_success else "no answer yet"
        verb = "refused" if worst.state == "refused" else "retrying"
        return [(f"   {word} ", "muted"), (f"✖ {since}, {verb}", "error")]
    polled = [s for s in sources if s.period_s is not None and s.last_success is not None]
    age = min((now - (s.last_success or now) for s in polled), default=0.0)
    return [(f"   {word} ", "muted"), ("●", "text"), (f" {coarse(age)}" if polled else "", "muted")]


def stale(app: SlinkyApp, prefix: str) -> bool:
    """Whether a world does not answer now."""
    reader = app.reader
    if reader is None:
        return False
    sources = [s for s in reader.rows(Table.SOURCES).values() if isinstance(s, Source) and s.name.startswith(prefix)]
    return any(s.state == "stale" for s in sources)


def strip_parts(nodes: Iterable[FleetNode], jobs: Iterable[Job]) -> Parts:
    """Capacity in one line: what is there, what is free, who waits."""
    nodes = list(nodes)
    states: dict[str, int] = {}
    total = used = free = whole = 0
    unknown = False
    for node in nodes:
        state = node_state(node)
        states[state.glyph] = states.get(state.glyph, 0) + 1
        total += node.gpus_total or 0
        if node.gpus_total and node.gpus_used is None:
            unknown = True
            continue
        used += node.gpus_used or 0
        if state.word in ("idle", "mixed", "allocated") and node.gpus_total:
            free += node.gpus_total - (node.gpus_used or 0)
            whole += node.gpus_used == 0
    running = pending = 0
    for job in jobs:
        code = job_state(job).code
        running += code == "R"
        pending += (job.task_count or 1) if code == "PD" else 0
    tokens = {"▼": "warning", "▽": "warning", "✖": "error", "?": "warning"}
    parts: Parts = [(f"nodes {len(nodes):,} ", "text")]
    for glyph in ("●", "◐", "○", "▼", "▽", "✖", "↻", "◆", "◌", "?"):
        if glyph in states:
            parts.append((f" {glyph} {states[glyph]:,}", tokens.get(glyph, "muted")))
    share = f"{used / total:.0%}" if total and not unknown else "–"
    parts += [(" │ ", "muted"), (f"GPUs {total:,}  ▮ {'–' if unknown else f'{used:,}'} {share}", "text"),
              (f"  free {'–' if unknown else f'{free:,}'}, {whole:,} whole nodes", "text"),
              (" │ ", "muted"), (f"jobs R {running:,}  PD {pending:,}", "text")]  # fmt: skip
    return parts


def footer_parts(screen: Screen[None]) -> Parts:
    """The live bindings, the row's own first, global keys last."""
    parts: Parts = []
    seen: set[str] = set()
    found = sorted(
        screen.active_bindings.values(),
        key=lambda a: a.binding.action not in ("verb",) and not a.binding.action.startswith("verb"),
    )
    for active in found:
        binding = active.binding
        if not binding.show or not active.enabled or not binding.description or binding.description in seen:
            continue
        seen.add(binding.description)
        parts += [(screen.app.get_key_display(binding), "accent"), (f" {binding.description}   ", "muted")]
    return parts
