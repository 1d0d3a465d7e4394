"""Slurm hostlists both ways: `rack[0-1]n[00-15],login` to names, names to a folded text. Pure.

Padding, order, several bracket groups and commas inside brackets are kept as Slurm keeps them. A list that cannot be
read raises HostlistError with the position; one that would explode is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

_EMPTY: Final = frozenset({"", "(null)", "None assigned", "N/A"})
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?$")
_NUMBERED: Final = re.compile(r"^(.*?)(\d+)(\D*)$", re.S)


class HostlistError(ValueError):
    """A hostlist that cannot be read."""


def expand(text: str, *, limit: int = 1_000_000) -> list[str]:
    """The names in order. Raises HostlistError for bad text and for more than `limit` names."""
    if text.strip() in _EMPTY:
        return []
    names: list[str] = []
    for item in _items(text):
        room = limit - len(names)
        names.extend(_expand_item(item, text, room))
    return names


def count(text: str) -> int:
    """How many names a hostlist has, without making them."""
    if text.strip() in _EMPTY:
        return 0
    total = 0
    for item in _items(text):
        size = 1
        for part in _parts(item, text):
            if isinstance(part, list):
                size *= sum(last - first + 1 for first, last, _ in part)
        total += size
    return total


def fold(names: Iterable[str]) -> str:
    """A short hostlist of these names, in order: runs of one prefix, suffix and padding become a bracket."""
    out: list[str] = []
    prefix = suffix = ""
    ranges: list[tuple[int, int, int]] = []

    def flush() -> None:
        if ranges:
            if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
                out.append(f"{prefix}{ranges[0][0]:0{ranges[0][2]}d}{suffix}")
            else:
                out.append(f"{prefix}[{','.join(_range_text(*r) for r in ranges)}]{suffix}")
            ranges.clear()

    for name in names:
        found = _NUMBERED.match(name) if not re.search(r"[\[\],]", name) else None
        if found is None:
            flush()
            out.append(name)
            continue
        head, digits, tail = found.groups()
        number, width = int(digits), len(digits) if digits.startswith("0") else 1
        if ranges and (head, tail) == (prefix, suffix):
            first, last, old = ranges[-1]
            if number == last + 1 and _same_padding(old, width, digits):
                ranges[-1] = (first, number, old)
            else:
                ranges.append((number, number, width))
        else:
            flush()
            prefix, suffix = head, tail
            ranges.append((number, number, width))
    flush()
    return ",".join(out)


def _same_padding(old: int, width: int, digits: str) -> bool:
    return len(digits) == old if width > 1 or old > 1 else True


def _range_text(first: int, last: int, width: int) -> str:
    return f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}"


def _items(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        if depth not in (0, 1):
            raise HostlistError(f"unbalanced bracket at {at + 1} in {text[:80]!r}")
        if char == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if depth:
        raise HostlistError(f"a bracket is not closed in {text[:80]!r}")
    yield text[start:].strip()


def _parts(item: str, text: str) -> list[str | list[tuple[int, int, int]]]:
    parts: list[str | list[tuple[int, int, int]]] = []
    for piece in re.split(r"(\[[^\]]*\])", item):
        if piece.startswith("["):
            parts.append([_range(r, text) for r in piece[1:-1].split(",")])
        elif piece:
            parts.append(piece)
    if not parts:
        raise HostlistError(f"an empty name in {text[:80]!r}")
    return parts


def _range(piece: str, text: str) -> tuple[int, int, int]:
    found = _RANGE.match(piece.strip())
    if found is None:
        raise HostlistError(f"{piece!r} is no range, in {text[:80]!r}")
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    if last < first:
        raise HostlistError(f"range {piece!r} runs backwards, in {text[:80]!r}")
    return first, last, len(found[1])


def _expand_item(item: str, text: str, room: int) -> Iterator[str]:
    parts = _parts(item, text)
    size = 1
    for part in parts:
        if isinstance(part, list):
            size *= sum(last - first + 1 for first, last, _ in part)
    if size > room:
        raise HostlistError(f"more names than the limit in {text[:80]!r}")
    choices = [
        [part] if isinstance(part, str) else [f"{n:0{w}d}" for a, b, w in part for n in range(a, b + 1)]
        for part in parts
    ]
    return ("".join(chosen) for chosen in product(*choices))
