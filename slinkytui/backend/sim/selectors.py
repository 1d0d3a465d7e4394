"""Label and field selectors as the API server reads them."""

from __future__ import annotations

import re
from typing import Any, Final

_TERM: Final = re.compile(r"^\s*(!?)([\w./-]+)\s*(?:(==|=|!=|\bin\b|\bnotin\b)\s*(.*?))?\s*$")
_FIELDS: Final = {
    "pods": {"metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
             "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"},
    "nodes": {"metadata.name", "spec.unschedulable"},
    "events": {"metadata.name", "metadata.namespace", "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
               "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
               "reason", "type", "source", "reportingComponent"},
    "secrets": {"metadata.name", "metadata.namespace", "type"},
    "namespaces": {"metadata.name", "status.phase"},
    "replicasets": {"metadata.name", "metadata.namespace", "status.replicas"},
}  # fmt: skip
_COMMON: Final = {"metadata.name", "metadata.namespace"}


def selected(labels: str, fields: str, plural: str, found: dict[str, Any]) -> bool:
    """Whether both selectors choose the object. Raises ValueError with the server's words for one that is none."""
    has = found["metadata"].get("labels") or {}
    return all(_label(term, has) for term in _terms(labels)) and all(
        _field(term, plural, found) for term in fields.split(",") if term
    )


def check(labels: str, fields: str, plural: str) -> None:
    """Raises ValueError for selectors that cannot be read, whatever there is to choose from."""
    selected(labels, "", plural, {"metadata": {}})
    for term in filter(None, fields.split(",")):
        _field(term, plural, {})


def _terms(labels: str) -> list[str]:
    return [t for t in re.split(r",(?![^()]*\))", labels) if t.strip()]


def _label(term: str, has: dict[str, str]) -> bool:
    parsed = _TERM.match(term)
    if parsed is None:
        raise ValueError(f"unable to parse requirement: {term}")
    absent, key, operator, value = parsed.groups()
    if operator is None:
        return (key in has) != bool(absent)
    if operator in ("in", "notin"):
        if not (value.startswith("(") and value.endswith(")")):
            raise ValueError(f"unable to parse requirement: found '{value}', expected: '(' and ')'")
        values = {v.strip() for v in value[1:-1].split(",")}
        return (has.get(key) in values) == (operator == "in")
    return (has.get(key) == value) == (operator != "!=")


def _field(term: str, plural: str, found: dict[str, Any]) -> bool:
    key, _, value = term.partition("=")
    different = key.endswith("!")
    key = key.rstrip("!")
    if key not in _FIELDS.get(plural, _COMMON):
        raise ValueError(f"field label not supported: {key}")
    target: Any = found
    # An event's source is looked for as its component.
    path = "source.component" if (plural, key) == ("events", "source") else key
    for part in path.split("."):
        target = (target or {}).get(part)
    text = str(target).lower() if isinstance(target, bool) else str(target or "")
    return (text == value.removeprefix("=")) != different
