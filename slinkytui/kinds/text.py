"""Times, sizes and ages as a person reads them: short and relative in tables, exact in details."""

from __future__ import annotations

from datetime import UTC, datetime

from slinkytui.kinds.base import Context


def age(since: float | None, now: float) -> str:
    """`20s`, `4m`, `2h05`, `3d`; unknown `–`. In few steps: a screen of new pods must not write a line a second."""
    if since is None or since <= 0:
        return "–"
    return coarse(now - since)


def span(seconds: float | None) -> str:
    """A duration in one or two units; never negative."""
    if seconds is None:
        return "–"
    if seconds == float("inf"):
        return "∞"
    s = int(max(0.0, seconds))
    if s < 120:
        return f"{s}s"
    if s < 600:
        return f"{s // 60}m{s % 60:02d}s"
    if s < 7_200:
        return f"{s // 60}m"
    if s < 172_800:
        return f"{s // 3600}h{s % 3600 // 60:02d}"
    return f"{s // 86_400}d"


def ago(since: float | None, now: float) -> str:
    """`4m ago`, `just now`; unknown `–`."""
    text = age(since, now)
    return {"–": "–", "now": "just now"}.get(text, f"{text} ago")


_STEPS = (30, 20, 10, 5, 2, 1)


def coarse(seconds: float) -> str:
    """A duration in few steps: seconds up to half a minute, then minutes."""
    if seconds >= 60:
        return f"{int(seconds) // 60}m" if seconds < 600 else span(seconds)
    return next((f"{step}s" for step in _STEPS if seconds >= step), "now")


def rough(seconds: float | None) -> str:
    """A duration that changes once a minute: 2:41 hours, 41m, 2d03h; below two minutes `<2m`."""
    if seconds is None:
        return "–"
    if seconds == float("inf"):
        return "∞"
    minutes = int(max(0.0, seconds)) // 60
    if minutes < 2:
        return "<2m"
    if minutes < 60:
        return f"{minutes}m"
    hours, rest = divmod(minutes, 60)
    return f"{hours}:{rest:02d}" if hours < 24 else f"{hours // 24}d{hours % 24:02d}h"


def clock(seconds: float | None) -> str:
    """Slurm's own spelling of a duration: 2:41, 11:02:09, 1-02:03:04."""
    if seconds is None:
        return "–"
    if seconds == float("inf"):
        return "∞"
    s = int(max(0.0, seconds))
    days, rest = divmod(s, 86_400)
    hours, rest = divmod(rest, 3_600)
    if days:
        return f"{days}-{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def moment(at: float | None) -> str:
    """An absolute local time, for details."""
    if at is None or at <= 0:
        return "–"
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def when(at: float | None, now: float) -> str:
    """An absolute time where a decision hangs on it: 14:20, tomorrow 02:10, Mon 02:10, 2026-12-24 02:10."""
    if at is None or at <= 0:
        return "–"
    then, today = datetime.fromtimestamp(at, UTC).astimezone(), datetime.fromtimestamp(now, UTC).astimezone()
    days = (then.date() - today.date()).days
    if days == 0:
        return then.strftime("%H:%M")
    if days == 1:
        return then.strftime("tomorrow %H:%M")
    return then.strftime("%a %H:%M") if 0 < days < 7 else then.strftime("%Y-%m-%d %H:%M")


def memory(mib: float | None) -> str:
    """MiB as GiB or TiB."""
    if mib is None:
        return "–"
    if mib < 1_024:
        return f"{mib:.0f}M"
    return f"{mib / 1024:.0f}G" if mib < 1_048_576 else f"{mib / 1_048_576:.2f}T"


def age_of(since: float | None, ctx: Context) -> str:
    return age(since, ctx.now)
