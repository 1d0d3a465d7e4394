"""What admission does with an object that was sent: fields nobody knows, the schema's defaults, the schema's rules."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, Final

from slinkytui.backend.sim.schema import Node, child, item, knows, resolve

Cause = tuple[str, str, str]
"""Reason, message, field."""
_BLOCKING: Final = ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTypeInvalid")
_UNCHECKED: Final[Cause] = (
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to "
    "complete validation",
    "<nil>",
)
_JSON: Final = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object", list: "array"}


_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


def misnamed(group: str, plural: str, name: str) -> list[Cause]:
    """What is wrong with an object's name."""
    if group == "rbac.authorization.k8s.io":
        return []
    why = ""
    if plural == "namespaces" and "." in name:
        why = "must not contain dots"
    elif not re.fullmatch(_SUBDOMAIN, name):
        why = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
            f"alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
        )
    return [("FieldValueInvalid", f"Invalid value: {_shown(name)}: {why}", "metadata.name")] if why else []


def unknown(value: Any, node: Node, at: str = "") -> list[str]:
    """The fields that no schema knows, as paths."""
    out: list[str] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            here = f"{at}.{key}" if at else key
            if knows(node, key):
                out += unknown(inner, child(node, key), here)
            else:
                out.append(here)
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            out += unknown(inner, item(node), f"{at}[{n}]")
    return out


def pruned(value: Any, node: Node) -> Any:
    """Without the fields that no schema knows."""
    if isinstance(value, dict):
        return {k: pruned(v, child(node, k)) for k, v in value.items() if knows(node, k)}
    if isinstance(value, list):
        return [pruned(v, item(node)) for v in value]
    return value


def defaulted(value: Any, node: Node) -> Any:
    """With the schema's defaults wherever their parent is; null in place of a default counts as nothing."""
    if isinstance(value, dict):
        out = {
            k: v
            for k, v in value.items()
            if not (v is None and "default" in child(node, k) and not child(node, k).get("nullable"))
        }
        for key, inner in (node.get("properties") or {}).items():
            if key not in out and "default" in resolve(inner):
                out[key] = copy.deepcopy(resolve(inner)["default"])
        return {k: defaulted(v, child(node, k)) for k, v in out.items()}
    if isinstance(value, list):
        return [defaulted(v, item(node)) for v in value]
    return value


def broken(parts: dict[str, tuple[Any, Node]], *, scaled: bool) -> list[Cause]:
    """Every rule that the parts of an object (spec, status) break. CEL's are looked at only where they can be."""
    out = [c for at, (value, node) in parts.items() for c in _plain(value, node, at)]
    if any(reason in _BLOCKING for reason, _, _ in out):
        return out + ([_UNCHECKED] if any(_has_rules(node) for _, node in parts.values()) else [])
    out += [c for at, (value, node) in parts.items() for c in _ruled(value, node, at)]
    replicas = parts.get("spec", ({}, {}))[0].get("replicas") if scaled else None
    if replicas is not None and replicas < 0:
        out.append(
            ("FieldValueInvalid", f"Invalid value: {replicas}: should be a non-negative integer", ".spec.replicas")
        )
    return out


def _has_rules(node: Node) -> bool:
    return "x-kubernetes-validations" in node or any(_has_rules(n) for n in (node.get("properties") or {}).values())


def _plain(value: Any, node: Node, at: str) -> list[Cause]:
    if value is None and node.get("nullable"):
        return []
    wrong = _typed(value, node, at)
    if wrong:
        return [wrong]
    out = _bounded(value, node, at)
    if isinstance(value, dict):
        for key in node.get("required", ()):
            if key not in value:
                out.append(("FieldValueRequired", "Required value", f"{at}.{key}"))
        for key, inner in value.items():
            out += _plain(inner, child(node, key), f"{at}.{key}")
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            out += _plain(inner, item(node), f"{at}[{n}]")
    return out


def _typed(value: Any, node: Node, at: str) -> Cause | None:
    want = node.get("type")
    got = "null" if value is None else _JSON[type(value)]
    if node.get("x-kubernetes-int-or-string"):
        fits = got in ("integer", "string")
        want = "integer,string"
    else:
        fits = want is None or got == want or (want == "number" and got == "integer") or (
            want == "integer" and isinstance(value, float) and value.is_integer()
        )  # fmt: skip
    if fits:
        return None
    return "FieldValueTypeInvalid", f'Invalid value: "{got}": {at} in body must be of type {want}: "{got}"', at


def _shown(value: Any) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else text


def _bounded(value: Any, node: Node, at: str) -> list[Cause]:
    out: list[Cause] = []
    body = f"Invalid value: {_shown(value)}: {at} in body"
    if "enum" in node and value not in node["enum"]:
        allowed = ", ".join(f'"{v}"' for v in node["enum"])
        out.append(("FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {allowed}", at))
    if "minimum" in node and value < node["minimum"]:
        out.append(("FieldValueInvalid", f"{body} should be greater than or equal to {node['minimum']}", at))
    if isinstance(value, str):
        if "pattern" in node and not re.search(node["pattern"], value):
            out.append(("FieldValueInvalid", f"{body} should match '{node['pattern']}'", at))
        if "minLength" in node and len(value) < node["minLength"]:
            out.append(("FieldValueInvalid", f"{body} should be at least {node['minLength']} chars long", at))
        if "maxLength" in node and len(value) > node["maxLength"]:
            out.append(("FieldValueTooLong", f"Too long: may not be more than {node['maxLength']} bytes", at))
        if node.get("format") == "date-time" and not re.match(
            r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$", value
        ):
            out.append(("FieldValueTypeInvalid", f"{body} must be of type date-time: {_shown(value)}", at))
    return out


def _ruled(value: Any, node: Node, at: str) -> list[Cause]:
    if not isinstance(value, dict):
        return []
    out: list[Cause] = [
        ("FieldValueInvalid", f"Invalid value: {rule['message']}", at)
        for rule in node.get("x-kubernetes-validations", ())
        if not RULES[rule["rule"]](value)
    ]
    for key in node.get("properties", ()):
        if key in value:
            out += _ruled(value[key], child(node, key), f"{at}.{key}")
    return out


def _shared(self: dict[str, Any]) -> bool:
    if not (self.get("ha") or {}).get("enabled"):
        return True
    volume = self.get("persistence") or {}
    return bool(volume.get("enabled") and volume.get("existingClaim"))


def _scheduled(self: dict[str, Any]) -> bool:
    return (
        self.get("type") != "ScheduledUpdate" or {"startTime", "duration"} <= (self.get("scheduledUpdate") or {}).keys()
    )


def _jwt(self: dict[str, Any]) -> bool:
    return "jwtKeyRef" in self or "jwtHs256KeyRef" in self


# What each CEL rule of the definitions says.
RULES: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "!self.external ? has(self.slurmKeyRef) : true": lambda s: s["external"] or "slurmKeyRef" in s,
    "!self.external ? has(self.jwtKeyRef) || has(self.jwtHs256KeyRef) : true": lambda s: s["external"] or _jwt(s),
    "self.external ? has(self.externalConfig) : true": lambda s: not s["external"] or "externalConfig" in s,
    "has(self.ha) && self.ha.enabled ? has(self.persistence) && self.persistence.enabled && "
    "has(self.persistence.existingClaim) && self.persistence.existingClaim.size() > 0 : true": _shared,
    "self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) && has(self.scheduledUpdate.startTime) && "
    "has(self.scheduledUpdate.duration))": _scheduled,
    "has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)": _jwt,
}  # fmt: skip
