"""Label selectors as kubectl takes them: `app=x,tier!=db,env in (a,b),!old`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from slinkytui.backend.errors import UsageError

Selector = Callable[[Mapping[str, str]], bool]

_COMMA: Final = re.compile(r",(?![^()]*\))")
_KEY: Final = r"(?P<key>(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*)"
_EXISTS: Final = re.compile(rf"(?P<absent>!?)\s*{_KEY}")
_EQUAL: Final = re.compile(rf"{_KEY}\s*(?P<op>==|=|!=)\s*(?P<value>[\w.-]*)")
_SET: Final = re.compile(rf"{_KEY}\s+(?P<op>in|notin)\s*\((?P<values>[\w.,\s-]*)\)")


def compile_selector(text: str) -> Selector:
    """A test of labels. As on the API server, `!=` and `notin` also choose objects without the label.

    Raises UsageError that names the term which cannot be read.
    """
    terms = [_term(term.strip()) for term in _COMMA.split(text)] if text.strip() else []
    return lambda labels: all(test(labels) for test in terms)


def _term(text: str) -> Selector:
    if found := _EXISTS.fullmatch(text):
        key, wanted = found["key"], not found["absent"]
        return lambda labels: (key in labels) == wanted
    if found := _EQUAL.fullmatch(text):
        key, value, same = found["key"], found["value"], found["op"] != "!="
        return lambda labels: (labels.get(key) == value) == same
    if found := _SET.fullmatch(text):
        key, among = found["key"], found["op"] == "in"
        values = {value.strip() for value in found["values"].split(",")}
        return lambda labels: (labels.get(key) in values) == among
    raise UsageError(f"-l: cannot read {text!r}", hint="like app=x, app!=x, app in (x,y), app, !app")


def labels_of(row: Any) -> Mapping[str, str] | None:
    """The labels of a row's Kubernetes object; None for rows that have none by their nature."""
    meta = getattr(row, "meta", None) or getattr(getattr(row, "nodeset", None), "meta", None)
    return None if meta is None else dict(meta.labels)
