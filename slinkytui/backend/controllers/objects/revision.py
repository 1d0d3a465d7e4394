"""Revisions of a NodeSet: what of its spec makes one, its hash and its object, byte for byte as the Slinky operator has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from slinkytui.backend.controllers.objects.marks import HASH, inherited, owner, selector
from slinkytui.backend.crds.core import BadShape
from slinkytui.backend.crds.nodeset import NodeSet, canonical_spec

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_START: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_LONGEST: Final = 223
_REPLACE: Final = {"$patch": "replace"}
_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def revision_data(nodeset: NodeSet) -> dict[str, Any]:
    """The `data` of a ControllerRevision: the parts of the spec that make a pod, each replacing what was there."""
    spec = nodeset.spec
    found: dict[str, Any] = {
        "template": {**spec.template, **_REPLACE},
        "slurmd": {**spec.slurmd, **_REPLACE},
        "logfile": {**spec.logfile, **_REPLACE},
        "ordinalPadding": spec.ordinal_padding,
        "oversubscribeNode": spec.oversubscribe_node,
    }
    if spec.ssh is not None:
        ref = spec.ssh.sssd_conf_ref
        found["ssh"] = {
            **_REPLACE, "enabled": spec.ssh.enabled,
            **({"extraSshdConfig": spec.ssh.extra_sshd_config} if spec.ssh.extra_sshd_config else {}),
            "sssdConfRef": {
                **({"name": ref.name} if ref.name else {}), "key": ref.key,
                **({} if ref.optional is None else {"optional": ref.optional}),
            },
        }  # fmt: skip
    if spec.extra_conf:
        found["extraConf"] = spec.extra_conf
    return {"spec": found}


def encoded(data: Mapping[str, Any]) -> bytes:
    """The bytes that are hashed: keys sorted, no blanks, and what HTML minds escaped."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES).encode()


def fnv1(data: bytes) -> int:
    """FNV-1, 32 bits (multiply first)."""
    found = _START
    for byte in data:
        found = (found * _PRIME & 0xFFFFFFFF) ^ byte
    return found


def revision_hash(data: Mapping[str, Any], collisions: int = 0) -> str:
    """`collisions` counts the names that were already taken by other data."""
    number = fnv1(encoded(data) + str(collisions).encode())
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def revision_name(nodeset: str, found: str) -> str:
    """The name of the revision with a hash."""
    return f"{nodeset[:_LONGEST]}-{found}"


def build_revision(nodeset: NodeSet, number: int, collisions: int = 0) -> dict[str, Any]:
    """A ControllerRevision. It carries the selector's labels, so that its own list finds it again."""
    data = revision_data(nodeset)
    found = revision_hash(data, collisions)
    labels = {**nodeset.spec.template["metadata"].get("labels", {}), **selector(nodeset.meta.name), HASH: found}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision_name(nodeset.meta.name, found),
            "namespace": nodeset.meta.namespace,
            "labels": labels,
            "annotations": inherited(nodeset.meta.annotations),
            "ownerReferences": [owner(nodeset)],
        },
        "data": data,
        "revision": number,
    }


def next_number(revisions: list[int]) -> int:
    return max(revisions, default=0) + 1


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two revisions make the same pods, whatever their hashes: what one of them leaves out has its default."""
    return one == other or _plain(one) == _plain(other)


def _plain(data: Mapping[str, Any]) -> Any:
    spec = {k: _bare(v) for k, v in (data.get("spec") or {}).items()}
    spec = {"ordinalPadding": 0, "oversubscribeNode": False, "extraConf": "", "ssh": None, **spec}
    try:
        found = canonical_spec(spec)
    except BadShape:
        return data
    ssh = found["ssh"]
    if isinstance(ssh, Mapping):
        found["ssh"] = {k: v for k, v in {"enabled": False, "extraSshdConfig": "", **ssh}.items() if v is not None}
    return found


def _bare(value: Any) -> Any:
    return {k: v for k, v in value.items() if k != "$patch"} if isinstance(value, Mapping) else value
