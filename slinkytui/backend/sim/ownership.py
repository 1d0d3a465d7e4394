"""Who owns which field: server-side apply with its conflicts, and the owners after an ordinary write."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any, Final

from slinkytui.backend.sim.failures import Failed
from slinkytui.backend.sim.fieldset import (
    Path,
    closure,
    compare,
    fields,
    from_v1,
    merged,
    shown,
    to_v1,
    without,
)
from slinkytui.backend.sim.schema import Node

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SERVERS: Final = frozenset(
    ("f:metadata", f"f:{k}")
    for k in ("name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion",
              "deletionTimestamp", "deletionGracePeriodSeconds", "generateName")
)  # fmt: skip
_NOBODY: Final = _SERVERS | {("f:apiVersion",), ("f:kind",), ("f:metadata",)}


@dataclass(frozen=True)
class Owner:
    """One entry of managedFields, without its fields. An applier is the same one in every version."""

    manager: str
    operation: str
    version: str
    subresource: str = ""

    @property
    def text(self) -> str:
        out = f'"{self.manager}"'
        if self.subresource:
            out += f' with subresource "{self.subresource}"'
        return f"{out} using {self.version}" if self.operation == "Update" else out

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.manager, self.operation, "" if self.operation == "Apply" else self.version, self.subresource


@dataclass
class Entry:
    owner: Owner
    time: str
    paths: set[Path]


def entries(found: dict[str, Any]) -> list[Entry]:
    return [
        Entry(
            Owner(e.get("manager", ""), e.get("operation", ""), e.get("apiVersion", ""), e.get("subresource", "")),
            e.get("time", ""), from_v1(e.get("fieldsV1") or {}),
        )
        for e in found.get("metadata", {}).get("managedFields") or ()
        if e
    ]  # fmt: skip


def written(known: list[Entry]) -> list[dict[str, Any]]:
    """managedFields: appliers first, then by time."""
    ordered = sorted(known, key=lambda e: (e.owner.operation != "Apply", e.time, e.owner.manager))
    return [
        {"manager": e.owner.manager, "operation": e.owner.operation, "apiVersion": e.owner.version, "time": e.time,
         "fieldsType": "FieldsV1", "fieldsV1": to_v1(e.paths), **({"subresource": e.owner.subresource} if e.owner.subresource else {})}
        for e in ordered
        if e.paths
    ]  # fmt: skip


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    meta = {k: v for k, v in found.get("metadata", {}).items() if k != "managedFields"}
    return {**found, "metadata": meta}


def updated(old: dict[str, Any], new: dict[str, Any], node: Node, owner: Owner, now: str) -> list[dict[str, Any]]:
    """managedFields after `owner` made `new` of `old` ({} for a creation) by an ordinary write."""
    given = new.get("metadata", {}).get("managedFields")
    if given is not None and not any(given):
        return []
    known = entries(new) if given is not None else entries(old)
    if old and not known:
        # Nobody has been followed so far; the first apply begins with it.
        return []
    base = old or {"metadata": {}, **({} if "." in owner.version else {"spec": {}, "status": {}})}
    moved = compare(_plain(base), _plain(new), node)
    took = {p for p in moved.added | moved.modified if p not in _NOBODY}
    mine = next((e for e in known if e.owner.key == owner.key), None)
    for e in known:
        before = e.paths
        e.paths = (before | took) - moved.removed if e is mine else before - took - moved.removed
        if e is mine and e.paths != before:
            e.time = now
    if mine is None and took:
        known.append(Entry(owner, now, took))
    return written(known)


def applied(live: dict[str, Any], wanted: dict[str, Any], node: Node, owner: Owner, *, force: bool,
            now: str) -> dict[str, Any]:  # fmt: skip
    """The object after `owner` applied `wanted`. Raises Failed (409) for fields that others own with other values."""
    known = entries(live)
    if live and not known:
        first = Owner("before-first-apply", "Update", owner.version)
        known = [
            Entry(
                first,
                now,
                fields(_plain(live), node) - _NOBODY - {p for p in fields(_plain(live), node) if p[0] == "f:status"},
            )
        ]
    ours = fields(wanted, node) - _NOBODY
    mine = next((e for e in known if e.owner.key == owner.key), None)
    others = [e for e in known if e is not mine]
    result = merged(_plain(live), wanted, node) if live else copy.deepcopy(wanted)
    if mine is not None:
        kept = closure(ours.union(*(e.paths for e in others)))
        result = without(result, closure(mine.paths) - kept, node)
    moved = compare(_plain(live) if live else {}, result, node)
    took = moved.added | moved.modified
    clashes = [(e.owner, p) for e in others for p in sorted(e.paths & took)]
    if owner.manager == "kubectl" and clashes:
        allowed = _client_side(live, node)
        clashes = [(o, p) for o, p in clashes if p not in allowed]
    if clashes and not force:
        raise refusal(clashes)
    for e in others:
        e.paths -= took | moved.removed
    if mine is None:
        known.append(Entry(owner, now, ours))
    elif mine.paths != ours:
        mine.paths, mine.time, mine.owner = ours, now, owner
    result["metadata"]["managedFields"] = written(known)
    return dict(result)


def _client_side(live: dict[str, Any], node: Node) -> set[Path]:
    """What kubectl applied on the client's side and nobody has changed since: kubectl on the server's side may take it."""
    text = _last_applied(live)
    if not text:
        return set()
    last = json.loads(text)
    moved = compare(last, _plain(live), node)
    return fields(last, node) - moved.modified - moved.added - moved.removed


def _last_applied(found: dict[str, Any]) -> str:
    return str((found.get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED, ""))


def kept_in_step(live: dict[str, Any], new: dict[str, Any], wanted: dict[str, Any], owner: Owner) -> None:
    """Where kubectl once applied on the client's side, its note of that follows what it applies on the server's side."""
    if owner.manager == "kubectl" and _last_applied(live):
        noted = json.dumps(wanted, separators=(",", ":"), sort_keys=True) + "\n"
        new["metadata"]["annotations"] = {**(new["metadata"].get("annotations") or {}), LAST_APPLIED: noted}


def refusal(clashes: list[tuple[Owner, Path]]) -> Failed:
    """409 in the server's words."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {o.text}", "field": shown(p)} for o, p in clashes
    ]
    if len(clashes) == 1:
        owner, path = clashes[0]
        text = f"Apply failed with 1 conflict: conflict with {owner.text}: {shown(path)}"
    else:
        by = dict.fromkeys(sorted({o for o, _ in clashes}, key=lambda o: o.key))
        parts = [f"conflicts with {o.text}:" + "".join(f"\n- {shown(p)}" for q, p in clashes if q == o) for o in by]
        text = f"Apply failed with {len(clashes)} conflicts: " + "\n".join(parts)
    return Failed(409, "Conflict", text, {"causes": causes})
