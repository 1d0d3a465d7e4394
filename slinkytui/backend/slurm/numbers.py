"""Slurm's number objects: `{"set","infinite","number"}`, plain numbers, sentinels, "Infinity". Unset is None. Pure."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from slinkytui.backend.models import INFINITE


class NumberObject(msgspec.Struct, gc=False):
    set: bool | None = False
    infinite: bool | None = False
    number: float | int | None = 0


Number = NumberObject | int | float | str | None
_NO_VALUE: Final = {65534, 4294967294, 18446744073709551614}
_PLAIN: Final = 65534
"""Below the least sentinel."""
_INFINITE: Final = {65535, 4294967295, 18446744073709551615}


def number(value: Number) -> float | None:
    """The value, INFINITE, or None where it is unset."""
    if isinstance(value, NumberObject):
        if value.infinite:
            return INFINITE
        value = value.number if value.set else None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if value is None or value in _NO_VALUE or math.isnan(value):
        return None
    return INFINITE if value in _INFINITE or math.isinf(value) else value


def whole(value: Number) -> int | None:
    """A whole number; infinite and unset are None (for fields where infinite says nothing)."""
    if value is None:
        return None
    if type(value) is NumberObject:
        if not value.set:
            return None
        inner = value.number
        if type(inner) is int and inner < _PLAIN and not value.infinite:
            return inner  # almost every number: no further question
    found = number(value)
    return None if found is None or math.isinf(found) else int(found)


def moment(value: Number) -> int | None:
    """A time stamp; 0 is "not yet" and so None."""
    return whole(value) or None
