"""The filter language: `state=idle & gpus>0 & name~^gpu | user=alice`, or plain words that any cell may hold.

`&` binds tighter than `|`, `!` before a term negates it, parentheses group. Operators: = != ~ !~ > >= < <=.
A comparison with an unknown value is false, also the negated one: unknown is never yes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any, Final

from slinkytui.backend import UsageError
from slinkytui.kinds.base import Column, Context, Kind, Value, show

Test = Callable[[Any, Context], bool]
_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<not>!(?=\()) | (?P<open>\() | (?P<close>\)) | (?P<and>&&?) | (?P<or>\|\|?)
      | (?P<term>(?:"[^"]*"|'[^']*'|\([^()\s]*(?:\|[^()\s]*)+\)\$?|[^\s&|()])+) )""",
    re.X,
)
_COMPARE: Final = re.compile(r"^(?P<not>!?)(?P<field>[A-Za-z_][\w-]*)(?P<op>!=|!~|>=|<=|=|~|>|<)(?P<value>.*)$", re.S)
_SIZES: Final = {"k": 1_000.0, "K": 1_024.0, "M": 1_024.0**2, "G": 1_024.0**3, "T": 1_024.0**4, "%": 0.01}


def compile_filter(text: str, kind: Kind) -> Test:
    """A test of rows of this kind. Raises UsageError that names the mistake and the nearest field."""
    return _Parser(text, kind).parse()


def fields_of(text: str, kind: Kind) -> frozenset[str]:
    """The fields that a filter looks at; a plain word looks at every column. Raises UsageError like the filter."""
    parser = _Parser(text, kind)
    parser.parse()
    return frozenset(parser.fields)


class _Parser:
    def __init__(self, text: str, kind: Kind) -> None:
        self.fields: set[str] = set()
        self._kind = kind
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def parse(self) -> Test:
        if not self._tokens:
            return lambda row, ctx: True
        test = self._any()
        if self._at < len(self._tokens):
            raise UsageError(f"filter: unexpected {self._tokens[self._at][1]!r} in {self._text!r}")
        return test

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _any(self) -> Test:
        tests = [self._all()]
        while self._peek() == "or":
            self._at += 1
            tests.append(self._all())
        return tests[0] if len(tests) == 1 else lambda row, ctx: any(t(row, ctx) for t in tests)

    def _all(self) -> Test:
        tests = [self._one()]
        while self._peek() in ("and", "term", "open", "not"):
            if self._peek() == "and":
                self._at += 1
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda row, ctx: all(t(row, ctx) for t in tests)

    def _one(self) -> Test:
        kind = self._peek()
        if kind == "not":
            self._at += 1
            inner = self._one()
            return lambda row, ctx: not inner(row, ctx)
        if kind == "open":
            self._at += 1
            test = self._any()
            if self._peek() != "close":
                raise UsageError(f"filter: a parenthesis is not closed in {self._text!r}")
            self._at += 1
            return test
        if kind != "term":
            raise UsageError(f"filter: a term is missing in {self._text!r}", hint="like: state=idle & gpus>0")
        text = self._tokens[self._at][1]
        self._at += 1
        return self._term(text)

    def _term(self, text: str) -> Test:
        found = _COMPARE.match(text)
        if found is None:
            self.fields.update(c.field for c in self._kind.columns)
            return _word(text, self._kind)
        column = self._kind.column(found["field"].replace("-", "_").lower())
        if column is None:
            near = difflib.get_close_matches(found["field"], self._kind.fields, 1, 0.4)
            hint = f"did you mean {near[0]}?" if near else f"fields: {', '.join(self._kind.fields)}"
            raise UsageError(f"filter: {self._kind.id} have no field {found['field']!r}", hint=hint)
        self.fields.add(column.field)
        return _comparison(column, found["op"], found["value"].strip("\"'"), negate=bool(found["not"]))


def _tokens(text: str) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise UsageError(f"filter: cannot read {text[at:]!r}")
        out.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    return out


def _word(text: str, kind: Kind) -> Test:
    negate, word = text.startswith("!"), text.lstrip("!").strip("\"'").casefold()

    def test(row: Any, ctx: Context) -> bool:
        hit = any(word in show(c.value(row, ctx)).casefold() for c in kind.columns)
        return hit != negate

    return test


def _comparison(column: Column, op: str, wanted: str, *, negate: bool) -> Test:
    positive = {"!=": "=", "!~": "~"}.get(op, op)
    flip = negate != (op in ("!=", "!~"))
    check = _check(positive, wanted)

    def test(row: Any, ctx: Context) -> bool:
        value = column.value(row, ctx)
        if value is None:
            return wanted == "" and positive == "=" and not flip
        return check(value) != flip

    return test


def _check(op: str, wanted: str) -> Callable[[Value], bool]:
    if op == "~":
        try:
            pattern = re.compile(wanted, re.I)
        except re.error as error:
            raise UsageError(f"filter: {wanted!r} is no regular expression: {error}") from None
        return lambda value: any(pattern.search(v) for v in _texts(value))
    if op == "=":
        number = _number(wanted)
        folded = wanted.casefold()
        return lambda value: (
            (number is not None and isinstance(value, int | float) and not isinstance(value, bool) and value == number)
            or any(v.casefold() == folded for v in _texts(value))
        )
    limit = _number(wanted)
    if limit is None:
        raise UsageError(f"filter: {op} wants a number, not {wanted!r}")
    compare: dict[str, Callable[[float], bool]] = {
        ">": lambda v: v > limit,
        ">=": lambda v: v >= limit,
        "<": lambda v: v < limit,
        "<=": lambda v: v <= limit,
    }
    return lambda value: isinstance(value, int | float) and compare[op](float(value))


def _texts(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (show(value),)


def _number(text: str) -> float | None:
    scale = _SIZES.get(text[-1:], 1.0)
    try:
        return float(text[:-1] if text[-1:] in _SIZES else text) * scale
    except ValueError:
        return None
