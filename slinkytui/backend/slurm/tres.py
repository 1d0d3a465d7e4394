"""TRES strings: `cpu=64,mem=96046M,node=2,gres/gpu=8,gres/gpu:h100=8` and what a job asks for. Pure."""

from __future__ import annotations

import re
from typing import Final

_SUFFIX: Final = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_VALUE: Final = re.compile(r"^(\d+(?:\.\d+)?)([KMGTP]?)$")


def parse_tres(text: str) -> dict[str, float]:
    """Amounts by key; `mem` is in MiB, all else as written (suffixes are powers of 1024). Unreadable parts raise."""
    out: dict[str, float] = {}
    if text.strip() in ("", "(null)", "N/A"):
        return out
    for part in text.split(","):
        key, sep, value = part.strip().rpartition("=")
        found = _VALUE.match(value)
        if not sep or not key or found is None:
            raise ValueError(f"{part!r} is no TRES")
        amount = float(found[1]) * _SUFFIX[found[2]]
        out[key] = amount / 2**20 if key == "mem" and found[2] else amount
    return out


def gpus_of(tres: dict[str, float]) -> int | None:
    """GPUs of a TRES table: the untyped count when present, else the sum of the typed ones, never both."""
    if "gres/gpu" in tres:
        return int(tres["gres/gpu"])
    typed = [v for k, v in tres.items() if k.startswith("gres/gpu:")]
    return int(sum(typed)) if typed else None


def asked_gpus(text: str) -> int:
    """GPUs in a request: `gres/gpu:h100:2`, `gres/gpu=2`, `gres:gpu:2`, `gpu:2`; a bare `gres/gpu` is one."""
    total = 0
    for part in text.split(","):
        words = re.split(r"[:/=]", part.strip())
        if words and words[0] == "gres":
            words = words[1:]
        if words and words[0] == "gpu":
            total += int(words[-1]) if words[-1].isdigit() else 1
    return total
