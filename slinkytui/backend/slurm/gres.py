"""GRES strings: `gpu:h100:8(S:0-1),shard:32`, `gpu:h100:2(IDX:0,2-3)`, `shard:8(3/8,0/8)`. Pure."""

from __future__ import annotations

import re
from typing import Final

from slinkytui.backend.models import Gres
from slinkytui.backend.slurm.hostlist import HostlistError, expand

_EMPTY: Final = frozenset({"", "(null)", "N/A"})
_SUFFIX: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_ENTRY: Final = re.compile(r"^(?P<head>[^()]*(?:\(null\)[^()]*)*)(?P<tails>(?:\([^()]*\))*)$")
GPU: Final = "gpu"


def parse_gres(text: str) -> tuple[Gres, ...]:
    """All entries in order. What cannot be read raises ValueError that names it."""
    if text.strip() in _EMPTY:
        return ()
    return tuple(_entry(item) for item in _split(text) if item.strip())


def format_gres(entries: tuple[Gres, ...]) -> str:
    """The text that parses to the same entries."""
    return ",".join(_text(e) for e in entries)


def gpus(entries: tuple[Gres, ...] | None) -> int | None:
    """Devices of kind gpu; None when the entries are unknown."""
    return None if entries is None else sum(e.count for e in entries if e.name == GPU)


def _text(entry: Gres) -> str:
    parts = [entry.name, entry.type, "no_consume" if entry.no_consume else "", str(entry.count)]
    out = ":".join(p for p in parts if p)
    if entry.per_device:
        return out + "(" + ",".join(f"{'-' if used < 0 else used}/{total}" for used, total in entry.per_device) + ")"
    if entry.sockets:
        out += f"(S:{entry.sockets})"
    if entry.indices is not None:
        out += f"(IDX:{','.join(map(str, entry.indices)) if entry.indices else 'N/A'})"
    return out


def _split(text: str) -> list[str]:
    """Commas at parenthesis depth 0 separate entries."""
    out, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            out.append(text[start:at])
            start = at + 1
    out.append(text[start:])
    return out


def _entry(item: str) -> Gres:
    found = _ENTRY.match(item.strip().replace(":(null)", ""))
    if found is None:
        raise ValueError(f"{item!r} is no GRES")
    name, *rest = found["head"].strip().split(":")
    amount, counted = _count(rest[-1]) if rest else (1, False)
    middle = rest[:-1] if counted else rest
    sockets, indices = "", None
    per_device: tuple[tuple[int, int], ...] = ()
    for tail in re.findall(r"\(([^()]*)\)", found["tails"]):
        if tail.startswith("S:"):
            sockets = tail[2:]
        elif tail.startswith("IDX:"):
            indices = _indices(tail[4:], item)
        elif "/" in tail:
            per_device = tuple(_device(d, item) for d in tail.split(","))
    kind = ":".join(m for m in middle if m != "no_consume")
    return Gres(name, kind, amount, indices, sockets, per_device, "no_consume" in middle)


def _count(text: str) -> tuple[int, bool]:
    found = re.fullmatch(r"(\d+)([KMGTP]?)", text.strip())
    return (int(found[1]) * _SUFFIX.get(found[2], 1), True) if found else (1, False)


def _indices(text: str, item: str) -> tuple[int, ...]:
    if text in ("N/A", ""):
        return ()
    try:
        return tuple(int(n) for n in expand(f"[{text}]", limit=4_096))
    except (HostlistError, ValueError):
        raise ValueError(f"the indexes of {item!r} cannot be read") from None


def _device(text: str, item: str) -> tuple[int, int]:
    used, _, total = text.partition("/")
    try:
        return (-1 if used == "-" else int(used)), int(total)
    except ValueError:
        raise ValueError(f"the device {text!r} of {item!r} cannot be read") from None
