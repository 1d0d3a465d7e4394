"""Bodies that typed clients send as protobuf, read as the JSON they stand for, by the recorded numbers of the fields.

Such clients take JSON as an answer. Text that is not set stands in these bodies as empty text and is left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from slinkytui.backend.sim.schema import recording, schema_name

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_DELETION: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
# Structs that are always sent, also with nothing in them.
_HOLLOW: Final = frozenset({"status", "strategy", "updateStrategy", "loadBalancer", "resources"})


def decoded(body: bytes) -> dict[str, Any] | None:
    """The object, or None for a kind that is not known. Raises ValueError for bytes that are no such body."""
    if not body.startswith(_MAGIC):
        raise ValueError("no protobuf of Kubernetes")
    outer = dict(_fields(body[len(_MAGIC) :]))
    about = {n: v.decode() for n, v in _fields(outer.get(1, b""))}
    api, kind = about.get(1, ""), about.get(2, "")
    name = _DELETION if kind == "DeleteOptions" else schema_name(api.rpartition("/")[0], api.rpartition("/")[2], kind)
    if name not in recording()["messages"]:
        return None
    return {"apiVersion": api, "kind": kind, **_message(outer.get(2, b""), name)}


def _message(data: bytes, name: str) -> dict[str, Any]:
    known = recording()["messages"][name]
    out: dict[str, Any] = {}
    for number, value in _fields(data):
        field, kind, mode = known.get(str(number), ("", "", "unknown"))
        if mode == "unknown":
            continue
        if mode == "map":
            entry = dict(_fields(value))
            out.setdefault(field, {})[entry.get(1, b"").decode()] = _value(entry.get(2, b""), kind)
            continue
        read = _value(value, kind)
        if mode == "repeated":
            out.setdefault(field, []).append(read)
        elif not field:
            out |= read
        elif read not in ("", None) and not (read == {} and field in _HOLLOW):
            out[field] = read
    return out


def _value(value: Any, kind: str) -> Any:
    match kind.rpartition(".")[2]:
        case "string":
            return value.decode()
        case "bool":
            return bool(value)
        case "int32" | "int64":
            # Negative numbers are written as 64 bits in two's complement.
            return value - (1 << 64) if value >> 63 else value
        case "bytes":
            return base64.b64encode(value).decode()
        case "Time" | "MicroTime":
            return _time(dict(_fields(value)))
        case "Quantity":
            return dict(_fields(value)).get(1, b"").decode()
        case "IntOrString":
            found = dict(_fields(value))
            return found.get(3, b"").decode() if found.get(1) else found.get(2, 0)
        case "FieldsV1" | "JSON" | "RawExtension":
            raw = dict(_fields(value)).get(1, b"")
            return json.loads(raw) if raw else None
    return _message(value, kind)


def _time(found: dict[int, int]) -> str | None:
    """No seconds at all is Go's zero time."""
    seconds = found.get(1)
    if seconds is None or seconds >> 63:
        return None
    stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{found[2] // 1000:06d}Z" if found.get(2) else f"{stamp}Z"


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and their values: integers or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, at = _varint(data, at)
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
        else:
            raise ValueError(f"unknown wire type {key & 7}")
        if at + size > len(data):
            raise ValueError("the body is cut off")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("the body is cut off")
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 128:
            return value, at
