"""Sets of fields as managedFields write them (FieldsV1), and what differs between two objects.

A path is a tuple of elements: `f:NAME` in a map, `k:{JSON}` and `v:JSON` in lists that merge. Lists without a type
and values of unknown shape that are no maps are one field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from slinkytui.backend.sim.schema import Node, child, item

Path = tuple[str, ...]
ABSENT: Final = object()


def children(value: Any, node: Node) -> dict[str, tuple[Any, Node]] | None:
    """The parts of a value that are owned one by one; None for a value that is owned as a whole."""
    if isinstance(value, dict):
        if node.get("x-kubernetes-map-type") == "atomic":
            return None
        return {f"f:{k}": (v, child(node, k)) for k, v in value.items()}
    if isinstance(value, list):
        if node.get("x-kubernetes-list-type") == "set":
            return {f"v:{_compact(v)}": (v, item(node)) for v in value}
        if node.get("x-kubernetes-list-type") == "map":
            inner = item(node)
            return {element(v, node, inner): (v, inner) for v in value}
    return None


def element(value: Any, node: Node, inner: Node) -> str:
    """The path element of one entry of a list that merges by keys; a key that is not given has its default."""
    found = {}
    for key in sorted(node["x-kubernetes-list-map-keys"]):
        got = value.get(key, child(inner, key).get("default")) if isinstance(value, dict) else None
        if got is not None:
            found[key] = got
    return f"k:{_compact(found)}"


def _compact(found: Any) -> str:
    return json.dumps(found, separators=(",", ":"), sort_keys=True)


def fields(value: Any, node: Node, path: Path = ()) -> set[Path]:
    """What somebody who applies this value owns."""
    parts = children(value, node)
    if not parts:
        return {path} if path else set()
    out: set[Path] = set()
    for name, (v, n) in parts.items():
        if name[0] != "f":
            out.add((*path, name))
        out |= fields(v, n, (*path, name))
    return out


@dataclass
class Difference:
    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)


def compare(old: Any, new: Any, node: Node, path: Path = (), out: Difference | None = None) -> Difference:
    """What has to be done to the first to have the second."""
    out = Difference() if out is None else out
    if old is not ABSENT and new is not ABSENT and old == new:
        return out
    before = {} if old is ABSENT else children(old, node)
    after = {} if new is ABSENT else children(new, node)
    if path and old is ABSENT:
        out.added.add(path)
    elif path and new is ABSENT:
        out.removed.add(path)
    if before is None or after is None or not (before or after):
        if old is not ABSENT and new is not ABSENT:
            out.modified.add(path)
        return out
    for name in dict.fromkeys((*before, *after)):
        a, b = before.get(name, (ABSENT, {})), after.get(name, (ABSENT, {}))
        compare(a[0], b[0], b[1] or a[1], (*path, name), out)
    return out


def closure(paths: Iterable[Path]) -> set[Path]:
    """The paths and every path on the way to them."""
    return {p[:n] for p in paths for n in range(1, len(p) + 1)}


def merged(live: Any, applied: Any, node: Node) -> Any:
    """Both, the applied one's values first; entries that only the live one has stay."""
    before, after = children(live, node), children(applied, node)
    if before is None or after is None or type(live) is not type(applied):
        return applied
    both = {
        name: merged(before[name][0], after[name][0], after[name][1]) if name in before and name in after
        else (after.get(name) or before[name])[0]
        for name in dict.fromkeys((*before, *after))
    }  # fmt: skip
    return {name[2:]: v for name, v in both.items()} if isinstance(live, dict) else list(both.values())


def without(value: Any, paths: set[Path], node: Node, path: Path = ()) -> Any:
    """The value less these fields; what is empty afterwards goes too (ABSENT)."""
    parts = children(value, node)
    if not parts:
        return value
    left: dict[str, Any] = {}
    for name, (v, n) in parts.items():
        here = (*path, name)
        if here not in paths:
            kept = without(v, {p for p in paths if p[: len(here)] == here}, n, here) if paths else v
            if kept is not ABSENT:
                left[name] = kept
    if not left and paths:
        return ABSENT
    return {name[2:]: v for name, v in left.items()} if isinstance(value, dict) else list(left.values())


def to_v1(paths: Iterable[Path]) -> dict[str, Any]:
    """As managedFields hold it."""
    chosen = set(paths)
    out: dict[str, Any] = {}
    for path in sorted(chosen):
        at = out
        for n, name in enumerate(path, 1):
            if name not in at:
                at[name] = {".": {}} if path[:n] in chosen else {}
            at = at[name]
    return _trimmed(out)


def _trimmed(found: dict[str, Any]) -> dict[str, Any]:
    return {k: ({} if v.keys() == {"."} else _trimmed(v)) for k, v in found.items()}


def from_v1(found: dict[str, Any], path: Path = ()) -> set[Path]:
    out: set[Path] = set()
    for name, inner in found.items():
        if name == ".":
            out.add(path)
        elif inner:
            out |= from_v1(inner, (*path, name))
        else:
            out.add((*path, name))
    return out


def shown(path: Path) -> str:
    """As error messages write it: `.spec.containers[name="slurmd"].image`."""
    out = ""
    for name in path:
        if name[0] == "f":
            out += f".{name[2:]}"
        elif name[0] == "k":
            keys = json.loads(name[2:])
            out += f"[{','.join(f'{k}={_compact(v)}' for k, v in keys.items())}]"
        else:
            out += f"[={name[2:]}]"
    return out
