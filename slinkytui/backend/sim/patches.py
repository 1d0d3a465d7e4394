"""RFC 7386 merges and RFC 6902 patches."""

from __future__ import annotations

import copy
from typing import Any


def merge(base: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    out = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge(out.get(key), value)
    return out


def json_patch(found: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """A changed copy. Raises ValueError for a step that does not fit."""
    out = copy.deepcopy(found)
    for step in steps:
        try:
            match step["op"]:
                case "move" | "copy" as op:
                    value = copy.deepcopy(_at(out, step["from"]))
                    if op == "move":
                        _step(out, {"op": "remove", "path": step["from"]})
                    _step(out, {"op": "add", "path": step["path"], "value": value})
                case _:
                    _step(out, step)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ValueError(str(error)) from error
    return out


def _parts(path: str) -> list[str]:
    return [p.replace("~1", "/").replace("~0", "~") for p in path.split("/")[1:]]


def _at(found: Any, path: str) -> Any:
    for part in _parts(path):
        found = found[int(part)] if isinstance(found, list) else found[part]
    return found


def _step(found: dict[str, Any], step: dict[str, Any]) -> None:
    *path, last = _parts(str(step["path"]))
    target: Any = found
    for part in path:
        target = target[int(part)] if isinstance(target, list) else target[part]
    at: Any = int(last) if isinstance(target, list) and last != "-" else last
    match step["op"]:
        case "remove":
            del target[at]
        case "test":
            if target[at] != step["value"]:
                raise ValueError("test failed")
        case "add" if isinstance(target, list):
            target.insert(len(target) if last == "-" else at, step["value"])
        case "add" | "replace":
            # The server replaces what is not there too, if its parent is.
            target[at] = step["value"]
        case other:
            raise ValueError(f"unknown operation {other}")
