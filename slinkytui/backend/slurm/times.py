"""Durations and moments as people write them to Slurm: 90, 30:00, 1:30:00, 1-12, 1-12:30:00, UNLIMITED. Pure."""

from __future__ import annotations

import re
from typing import Final

from slinkytui.backend.models import INFINITE

_SHAPE: Final = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?")
_ENDLESS: Final = ("UNLIMITED", "INFINITE", "-1")


def parse_duration(text: str) -> float:
    """Seconds of a time limit, or INFINITE. Slurm reads a bare number as minutes, and after `D-` as hours.

    Raises ValueError for what sbatch would refuse.
    """
    text = text.strip()
    if text.upper() in _ENDLESS:
        return INFINITE
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise ValueError(f"no Slurm duration: {text!r} (like 90, 1:30:00 or 1-12:30:00)")
    days, first = found["days"], int(found["first"])
    second, third = (int(found[k]) if found[k] is not None else None for k in ("second", "third"))
    if days is not None:
        return float(int(days) * 86_400 + first * 3_600 + (second or 0) * 60 + (third or 0))
    if second is None:
        return first * 60.0
    if third is None:
        return first * 60.0 + second
    return first * 3_600.0 + second * 60 + third


def format_duration(seconds: float) -> str:
    """The shortest spelling that squeue would print: 30:00, 1:30:00, 1-12:30:00, UNLIMITED."""
    if seconds == INFINITE:
        return "UNLIMITED"
    total = int(seconds)
    if total < 0:
        raise ValueError("a duration is not negative")
    days, rest = divmod(total, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, secs = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{secs:02d}"
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes}:{secs:02d}"
