#!/usr/bin/env python3
"""Writes what the operator knows of the shape of pods and claims, from the sources of Kubernetes' Go types.

    scripts/record_pod_shape.py DIR_OF_k8s.io/api DIR_OF_k8s.io/apimachinery

A field is one text: `[]` or `{}` for a list or a map, `*` for a pointer, a type's name or one of the plain ones; `!` if it is
written even when it is empty, `#key` (or `#` for plain values) if a strategic merge joins its elements.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

OUT = Path(__file__).parent.parent / "slinkytui" / "backend" / "crds" / "core.json"
ROOTS = ("PodSpec", "PersistentVolumeClaim")
PLAIN = {
    "string": "string", "bool": "bool", "int": "int", "int32": "int", "int64": "int", "byte": "byte", "float64": "float",
    "resource.Quantity": "quantity", "intstr.IntOrString": "either", "metav1.Time": "time", "metav1.MicroTime": "time", "Time": "time",
    "types.UID": "string", "types.NodeName": "string", "metav1.FieldsV1": "any", "FieldsV1": "any",
}  # fmt: skip
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
ALIAS = re.compile(r"^type (\w+) ([\w.\[\]]+)$", re.M)
FIELD = re.compile(r"^\s*(?:(\w+)\s+)?([*\[\]\w.]+)\s+`([^`]*)`")


def main(api: str, machinery: str) -> None:
    text = (Path(api) / "core/v1/types.go").read_text()
    meta = (Path(machinery) / "pkg/apis/meta/v1/types.go").read_text()
    structs = {**dict(STRUCT.findall(meta)), **dict(STRUCT.findall(text))}
    alias = {**dict(ALIAS.findall(meta)), **dict(ALIAS.findall(text))}
    found: dict[str, dict[str, str]] = {}
    waiting = list(ROOTS)

    def base(kind: str) -> tuple[str, bool]:
        """The text of a type, and whether it is a struct."""
        if kind.startswith("map["):
            return "{}" + base(kind.partition("]")[2])[0], False
        if kind == "[]byte":
            return "bytes", False
        if kind.startswith(("[]", "*")):
            cut = 2 if kind.startswith("[]") else 1
            return kind[:cut] + base(kind[cut:])[0], False
        if kind in PLAIN:
            return PLAIN[kind], PLAIN[kind] in ("quantity", "either", "time")
        if kind == "ResourceList":
            return "{}quantity", False
        kind = kind.removeprefix("metav1.")
        if kind in alias:
            return base(alias[kind])
        if kind not in structs:
            raise SystemExit(f"unknown type {kind}")
        if kind not in found and kind not in waiting:
            waiting.append(kind)
        return kind, True

    def fields(name: str) -> dict[str, str]:
        out: dict[str, str] = {}
        for line in structs[name].splitlines():
            hit = FIELD.match(line)
            if not hit:
                continue
            tags = dict(re.findall(r'(\w+):"([^"]*)"', hit[3]))
            key, *options = tags["json"].split(",")
            if not key:
                out.update(fields(hit[2].removeprefix("metav1.")))
                continue
            kind, is_struct = base(hit[2])
            always = "omitzero" not in options and ("omitempty" not in options or is_struct)
            merges = "merge" in tags.get("patchStrategy", "").split(",")
            out[key] = kind + ("!" if always else "") + (f"#{tags.get('patchMergeKey', '')}" if merges else "")
        return out

    while waiting:
        name = waiting.pop()
        found[name] = fields(name)
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(found.items())]
    OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(found)} types, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
