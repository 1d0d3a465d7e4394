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
        *path, last = [p.replace("~1", "/").replace("~0", "~") for p in str(step["path"]).strip("/").split("/")]
        target: Any = out
        try:
            for part in path:
                target = target[int(part)] if isinstance(target, list) else target[part]
            _json_step(target, last, step)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ValueError(str(error)) from error
    return out


def _json_step(target: Any, last: str, step: dict[str, Any]) -> None:
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
            target[at] = step["value"]
        case other:
            raise ValueError(f"unknown operation {other}")
