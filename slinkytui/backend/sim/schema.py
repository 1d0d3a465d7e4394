"""What is known of the shape of each kind: the schemas of Kubernetes' own as a real server published them
(scripts/record_openapi.py), those of the custom resources from their definitions.

A node is a plain OpenAPI v3 schema, references resolved one step at a time; `{}` is a value of unknown shape.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from slinkytui.backend import crds

Node = dict[str, Any]
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
REF: Final = "#/components/schemas/"
_FILE: Final = Path(__file__).parent / "openapi" / "kubernetes.json.gz"


@cache
def recording() -> dict[str, Any]:
    """`schemas` by name, `resources` and `columns` (with version/plural) as the real server's discovery and tables say."""
    return dict(json.loads(gzip.decompress(_FILE.read_bytes())))


@cache
def schemas() -> dict[str, Node]:
    """All of them by name, the custom resources' included."""
    return {**recording()["schemas"], **{name(d.kind): custom(d) for d in crds.DEFINITIONS}}


def name(kind: str) -> str:
    """A custom resource's schema name as the server makes it."""
    return f"net.slurm.slinky.v1beta1.{kind}"


def custom(d: crds.Definition) -> Node:
    """A custom resource's schema as it is published."""
    found = dict(crds.document(d)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    found["properties"] = {**found["properties"], "metadata": {"allOf": [{"$ref": REF + META}]}}
    found["x-kubernetes-group-version-kind"] = [{"group": crds.GROUP, "version": "v1beta1", "kind": d.kind}]
    return found


@cache
def _by_kind() -> dict[tuple[str, str, str], str]:
    return {
        (k["group"], k["version"], k["kind"]): name
        for name, node in schemas().items()
        for k in node.get("x-kubernetes-group-version-kind", ())
    }


def schema_name(group: str, version: str, kind: str) -> str:
    """The name of a kind's schema, or "" for a kind without one."""
    return _by_kind().get((group, version, kind), "")


def schema_of(group: str, version: str, kind: str) -> Node:
    return schemas().get(schema_name(group, version, kind), {})


def resolve(node: Node) -> Node:
    """The node itself, references followed; what stands beside a reference goes over it."""
    while True:
        target = node.get("$ref")
        if target is None and len(node.get("allOf", ())) == 1:
            target = node["allOf"][0].get("$ref")
        if target is None:
            return node
        beside = {k: v for k, v in node.items() if k not in ("$ref", "allOf")}
        node = {**schemas().get(str(target).rsplit("/", 1)[1], {}), **beside}


def child(node: Node, key: str) -> Node:
    """The schema of a map's entry."""
    found = (node.get("properties") or {}).get(key)
    if found is None:
        more = node.get("additionalProperties")
        found = more if isinstance(more, dict) else {}
    return resolve(found)


def item(node: Node) -> Node:
    """The schema of a list's elements."""
    found = node.get("items")
    return resolve(found) if isinstance(found, dict) else {}


def knows(node: Node, key: str) -> bool:
    """Whether a map of this shape may have the key."""
    if not node or node.get("x-kubernetes-preserve-unknown-fields") or node.get("additionalProperties"):
        return True
    return key in node.get("properties", ()) if "properties" in node else True
