"""The words of header, strip and footer, made from the sources, the problems, the tally and the live bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.binding import ActiveBinding
from textual.screen import Screen

from slinkytui.backend import Cluster, Severity, Source, Table
from slinkytui.kinds import KINDS
from slinkytui.kinds.freshness import worst
from slinkytui.kinds.tally import Tally
from slinkytui.kinds.text import age, ago, coarse

if TYPE_CHECKING:
    from slinkytui.app import SlinkyApp

Parts = list[tuple[str, str]]
_TOKENS: Final = {"▼": "warning", "▽": "warning", "✖": "error", "?": "warning"}
_GLYPHS: Final = ("●", "◐", "○", "▼", "▽", "✖", "↻", "◆", "◌", "?")


def header_parts(app: SlinkyApp) -> tuple[Parts, Parts]:
    """Where we are, how fresh it is, who operates; at the right the problems."""
    reader = app.reader
    if reader is None or reader.hello is None:
        return [("slinkytui", "accent"), ("   starting the engine …", "muted")], []
    if reader.lost:
        return [("slinkytui", "accent"), (f"   {reader.lost}: q quits", "error")], []
    hello = reader.hello
    clusters = [c.name for c in reader.rows(Table.CLUSTERS).values() if isinstance(c, Cluster)]
    where = " ▸ ".join(p for p in (hello.context, hello.namespace, ",".join(clusters[:2])) if p) or hello.note
    parts: Parts = [("slinkytui", "accent")] if app.size.width >= 100 else []
    if hello.sim:
        parts.append((f"{' ' if parts else ''}SIM {hello.sim} ×{hello.sim_speed:g} ", "info"))
    parts.append((f"  {where}" if parts else where, "text"))
    sources = app.sources()
    for word, prefix in (("k8s", "kubernetes/"), ("slurm", "slurm/")):
        mine = [s for s in sources if s.name.startswith(prefix)]
        if mine:
            parts += _freshness(word, mine, app.now())
    operator = app.operator()
    if operator:
        parts.append((f"   operator: {operator}", "muted"))
    if app.read_only:
        parts.append(("   read-only", "info"))
    bad = [p for p in reader.rows(Table.PROBLEMS).values() if _needs_one(p)]
    if not bad:
        return parts, [("✓ no problems", "muted")]
    worst_token = "error" if any(getattr(p, "severity", "") == Severity.ERROR for p in bad) else "warning"
    return parts, [(f"▲ {len(bad)} problem{'' if len(bad) == 1 else 's'}", worst_token)]


def _needs_one(problem: Any) -> bool:
    return getattr(problem, "severity", "") in (Severity.ERROR, Severity.WARNING)


def _freshness(word: str, sources: list[Source], now: float) -> Parts:
    quiet = worst(sources)
    if quiet is not None:
        since = f"last answer {ago(quiet.last_success, now)}" if quiet.last_success else "no answer yet"
        verb = "refused" if quiet.state == "refused" else "retrying"
        return [(f"   {word} ", "muted"), (f"✖ {since}, {verb}", "error")]
    polled = [s for s in sources if s.period_s is not None and s.last_success is not None]
    since_s = min((now - (s.last_success or now) for s in polled), default=0.0)
    return [(f"   {word} ", "muted"), ("●", "text"), (f" {coarse(since_s)}" if polled else "", "muted")]


def strip_parts(tally: Tally, now: float, *, nodes_known: bool, jobs_known: bool) -> Parts:
    """Capacity in one line: what is there, what is free, who waits. What no server has told yet is `–`."""
    parts: Parts = [(f"nodes {len(tally.nodes):,} " if nodes_known else "nodes – ", "text")]
    for glyph in _GLYPHS:
        if tally.glyphs[glyph]:
            parts.append((f" {glyph} {tally.glyphs[glyph]:,}", _TOKENS.get(glyph, "muted")))
    parts.append((" │ ", "muted"))
    if tally.gpus:
        used = "–" if tally.used is None else f"{tally.used:,} {tally.used / tally.gpus:.0%}"
        free = "–" if tally.used is None else f"{tally.free:,}"
        parts += [
            (f"GPUs {tally.gpus:,}  ▮ {used}", "text"),
            (f"  free {free}, {tally.whole:,} whole node{'' if tally.whole == 1 else 's'}", "text"),
        ]
    else:
        parts.append(("no GPUs" if nodes_known else "GPUs –", "muted"))
    jobs = f"jobs R {tally.running:,}  PD {tally.pending:,}" if jobs_known else "jobs R –  PD –"
    parts += [(" │ ", "muted"), (jobs, "text")]
    if tally.oldest_wait is not None and now > tally.oldest_wait:
        parts.append((f"  oldest {age(tally.oldest_wait, now)}", "muted"))
    return parts


_FIRST: Final = (
    "verb", "describe", "owner", "other", "yaml", "verbs", "mark", "problems", "command", "filter", "pane", "zoom",
    "help", "back", "app.quit", "quit",
)  # fmt: skip
"""Actions in the order of their importance: those of the row first, global ones last."""
_GLOBAL: Final = _FIRST.index("command")


def footer_parts(screen: Screen[Any]) -> Parts:
    """The live bindings in two lines, the row's own first; a verb that is refused here is grey."""
    seen: set[str] = set()
    parts: Parts = []
    broken, room = False, screen.size.width - 2
    pane = getattr(screen, "active_pane", lambda: None)()
    for active in sorted(screen.active_bindings.values(), key=_rank):
        binding = active.binding
        text = _words(active, pane)
        if not binding.show or not active.enabled or not text or text in seen:
            continue
        seen.add(text)
        refused = bool(binding.action.startswith("verb(") and screen.refusal(_verb_of(binding.action)))  # type: ignore[attr-defined]
        key = screen.app.get_key_display(binding)
        size = len(key) + len(text) + 4
        if not broken and _rank(active) >= _GLOBAL:
            parts.append(("\n", ""))
            broken, room = True, screen.size.width - 2
        if size - 3 > room:
            continue  # dropped whole: half a word helps nobody
        room -= size
        parts += [(key, "muted" if refused else "accent"), (f" {text}   ", "muted")]
    return parts


def _verb_of(action: str) -> str:
    return action.removeprefix("verb('").removesuffix("')")


def _rank(active: ActiveBinding) -> int:
    name = active.binding.action.partition("(")[0]
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _words(active: ActiveBinding, pane: Any) -> str:
    """`J` and `o` say where they lead from this kind."""
    if pane is not None and active.binding.action in ("owner", "other"):
        kind = getattr(pane.kind, active.binding.action)
        word = KINDS[kind].title.removesuffix("s") if kind else ""
        return f"its {word.lower() if word.istitle() else word}" if kind else ""
    return active.binding.description
