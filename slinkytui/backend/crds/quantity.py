"""Kubernetes quantities: read, and written in the one canonical way that the API server writes them. Pure."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final, Literal, NamedTuple

Form = Literal["decimal", "binary", "exponent"]
_SHAPE: Final = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(.*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL_WORD: Final = {v: k for k, v in _DECIMAL.items()}
_BINARY_WORD: Final = {v: k for k, v in _BINARY.items()}
_NANO: Final = 10**9
_MOST: Final = 2**63 - 1


class Quantity(NamedTuple):
    """`value` in whole units (cores, bytes), never finer than a thousand-millionth."""

    value: Fraction
    form: Form

    def __str__(self) -> str:
        """The canonical text: the largest suffix that leaves a whole number."""
        if not self.value:
            return "0"
        if self.form == "binary" and abs(self.value) >= 1024 and self.value.denominator == 1:
            number, power = _factored(int(self.value), 1024, max(_BINARY_WORD))
            return f"{number}{_BINARY_WORD.get(power, '')}"
        number, power = _factored(int(self.value * _NANO), 1000, 9 if self.form != "exponent" else 99)
        exponent = 3 * power - 9
        if self.form == "exponent":
            return f"{number}e{exponent}" if exponent else str(number)
        return f"{number}{_DECIMAL_WORD[exponent]}"


def _factored(number: int, by: int, most: int) -> tuple[int, int]:
    power = 0
    while power < most and number % by == 0:
        number, power = number // by, power + 1
    return number, power


def parse_quantity(text: str | int | float) -> Quantity:
    """Raises ValueError with the text for what is no quantity. Too fine values are rounded away from
    zero, binary ones end at 64 bits."""
    found = _SHAPE.fullmatch(str(text).strip())
    if not found:
        raise ValueError(f"{text!r} is not a quantity")
    sign, digits, suffix = found.groups()
    number = Fraction(digits if digits[0] != "." else f"0{digits}")
    form: Form = "decimal"
    if suffix in _BINARY:
        number, form = number * 1024 ** _BINARY[suffix], "binary"
    elif suffix in _DECIMAL:
        number *= Fraction(10) ** _DECIMAL[suffix]
    elif (power := _EXPONENT.fullmatch(suffix)) and len(power[1]) < 4:
        number, form = number * Fraction(10) ** int(power[1]), "exponent"
    else:
        raise ValueError(f"{text!r} is not a quantity")
    number = Fraction(-(-number * _NANO // 1), _NANO)
    if form == "binary":
        number = min(number, Fraction(_MOST))
    return Quantity(-number if sign == "-" else number, form)
