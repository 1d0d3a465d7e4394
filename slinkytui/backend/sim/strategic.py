"""Strategic merges: lists by their merge key, and the directives that clients write into them."""

from __future__ import annotations

import copy
from typing import Any

from slinkytui.backend.sim.schema import Node, child, item


def strategic(base: Any, patch: Any, node: Node) -> Any:
    """A changed copy. Raises ValueError for a directive that cannot be read."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    directive = patch.get("$patch", "merge")
    if directive == "delete":
        return {}
    plain = {k: v for k, v in patch.items() if not k.startswith("$")}
    if directive == "replace":
        return copy.deepcopy(plain)
    if directive != "merge":
        raise ValueError(f"unknown patch type found: {directive}")
    out = dict(base) if isinstance(base, dict) else {}
    for key, value in plain.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, list):
            order = patch.get(f"$setElementOrder/{key}")
            out[key] = _list(out.get(key) or [], value, child(node, key), order)
        else:
            out[key] = strategic(out.get(key), value, child(node, key))
    for key, value in patch.items():
        word, _, target = key.partition("/")
        if word == "$deleteFromPrimitiveList":
            out[target] = [v for v in out.get(target) or [] if v not in value]
        elif word == "$setElementOrder" and target not in plain and target in out:
            out[target] = _ordered(out[target], value, child(node, target), out[target])
    if "$retainKeys" in patch:
        out = {k: v for k, v in out.items() if k in patch["$retainKeys"]}
    return out


def _list(base: list[Any], patch: list[Any], node: Node, order: list[Any] | None) -> list[Any]:
    if any(isinstance(p, dict) and p.get("$patch") == "replace" for p in patch):
        return [copy.deepcopy(p) for p in patch if not (isinstance(p, dict) and "$patch" in p)]
    if "merge" not in str(node.get("x-kubernetes-patch-strategy", "")):
        return copy.deepcopy(patch)
    key = node.get("x-kubernetes-patch-merge-key")
    if key is None:
        out = base + [p for p in patch if p not in base]
        return _ordered(out, order if order is not None else patch, node, base)
    inner = item(node)
    out = list(base)
    for p in patch:
        if not isinstance(p, dict) or p.get(key) is None:
            raise ValueError(f"map: {p} does not contain declared merge key: {key}")
        at = next((n for n, b in enumerate(out) if b.get(key) == p[key]), None)
        if p.get("$patch") == "delete":
            out = [b for b in out if b.get(key) != p[key]]
        elif at is None:
            out.append(strategic({}, p, inner))
        else:
            out[at] = strategic(out[at], p, inner)
    asked = order if order is not None else [{key: p[key]} for p in patch if p.get("$patch") != "delete"]
    return _ordered(out, asked, node, base)


def _ordered(found: list[Any], order: list[Any], node: Node, base: list[Any]) -> list[Any]:
    """The elements in the order asked for; the others stay before what they stood before, so that new ones come first."""
    key = node.get("x-kubernetes-patch-merge-key")

    def named(v: Any) -> Any:
        return v.get(key) if key and isinstance(v, dict) else v

    places, before = [named(o) for o in order], [named(b) for b in base]
    asked = sorted((v for v in found if named(v) in places), key=lambda v: places.index(named(v)))
    rest = [v for v in found if named(v) not in places]
    out: list[Any] = []
    for v in asked:
        while rest and named(v) in before and before.index(named(rest[0])) < before.index(named(v)):
            out.append(rest.pop(0))
        out.append(v)
    return out + rest
