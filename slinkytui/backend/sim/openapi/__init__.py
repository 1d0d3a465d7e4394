"""The OpenAPI documents: v3 for each group and version, v2 for all, made of the schemas that are known."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any, Final

import msgspec

from slinkytui.backend.http import Response
from slinkytui.backend.sim.discovery import resources
from slinkytui.backend.sim.schema import REF, schema_name, schemas

Found = dict[str, Any]
_INFO: Final = {"title": "Kubernetes", "version": "v1.36.3"}
_ACTIONS: Final = {
    "get": ("get", "get"),
    "put": ("update", "put"),
    "patch": ("patch", "patch"),
    "delete": ("delete", "delete"),
}
_WRITES: Final = ("post", "put", "patch")
_CONTENT: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
                   "application/strategic-merge-patch+json")  # fmt: skip


def openapi(path: str, accept: str) -> Response:
    """/openapi/v2, /openapi/v3 and what is below it."""
    if path.strip("/") == "openapi/v2":
        if "protobuf" in accept and "json" not in accept and "*/*" not in accept:
            return Response(406, b"406 not acceptable\n", "text/plain")
        return Response(200, _whole())
    if path.strip("/") == "openapi/v3":
        paths = {at: {"serverRelativeURL": f"/openapi/v3/{at}?hash={hashlib.sha256(_of(at)).hexdigest()[:32].upper()}"}
                 for at in map(_at, resources())}  # fmt: skip
        return Response(200, msgspec.json.encode({"paths": paths}))
    at = path.removeprefix("/openapi/v3/").strip("/")
    if at not in map(_at, resources()):
        return Response(404, b"404 page not found\n", "text/plain")
    return Response(200, _of(at))


def _at(version: str) -> str:
    return f"apis/{version}" if "/" in version else f"api/{version}"


@cache
def _of(at: str) -> bytes:
    version = at.partition("/")[2]
    kinds = {name for r in resources()[version] for name in _names(version, r) if name}
    found = {"openapi": "3.0.0", "info": _INFO, "paths": _paths(version), "components": {"schemas": _reachable(kinds)}}
    return msgspec.json.encode(found)


def _names(version: str, r: Found) -> list[str]:
    group, _, name = version.rpartition("/")
    group, name = r.get("group", group), r.get("version", name)
    return [schema_name(group, name, r["kind"]), schema_name(group, name, f"{r['kind']}List")]


def _reachable(start: set[str]) -> Found:
    done: Found = {}
    todo = sorted(start)
    while todo:
        name = todo.pop()
        if name not in done and name in schemas():
            done[name] = schemas()[name]
            todo += sorted(_references(done[name]))
    return {n: done[n] for n in sorted(done)}


def _references(found: Any) -> set[str]:
    if isinstance(found, list):
        return set().union(*map(_references, found))
    if not isinstance(found, dict):
        return set()
    own = {str(found["$ref"]).rpartition("/")[2]} if isinstance(found.get("$ref"), str) else set()
    return own.union(*map(_references, found.values()))


def _paths(version: str) -> Found:
    """For each resource what its collection and its objects take: enough for clients that look up kinds and parameters."""
    group, _, name = version.rpartition("/")
    out: Found = {}
    for r in resources()[version]:
        if "/" in r["name"]:
            continue
        kind = {"group": group, "version": name, "kind": r["kind"]}
        schema = schema_name(group, name, r["kind"])
        root = f"/{_at(version)}/{r['name']}"
        scoped = f"/{_at(version)}/namespaces/{{namespace}}/{r['name']}" if r["namespaced"] else root
        out[root] = {}
        if "list" in r["verbs"]:
            out[root]["get"] = _operation("list", "get", kind, schema)
        out.setdefault(scoped, {})
        if "create" in r["verbs"]:
            out[scoped]["post"] = _operation("post", "post", kind, schema)
            # Where a kind has no list of all namespaces its own root still names it.
            out[root].setdefault("post", out[scoped]["post"])
        out[f"{scoped}/{{name}}"] = {
            m: _operation(a, m, kind, schema) for m, (verb, a) in _ACTIONS.items() if verb in r["verbs"]
        }
    return out


def _operation(action: str, method: str, kind: Found, schema: str) -> Found:
    names = ["dryRun", "fieldManager", "fieldValidation"] if method in _WRITES else []
    names += ["force"] if method == "patch" else ["dryRun"] if method == "delete" else []
    body = {"application/json": {"schema": {"$ref": REF + schema}}} if schema else {}
    out: Found = {
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
        "parameters": [{"name": n, "in": "query", "schema": {"type": "boolean" if n == "force" else "string"}} for n in names],
        "responses": {"200": {"description": "OK", "content": body}},
    }  # fmt: skip
    if method in ("post", "put"):
        out["requestBody"] = {"content": body}
    if method == "patch":
        out["requestBody"] = {"content": {c: {"schema": {"type": "object"}} for c in _CONTENT}}
    return out


@cache
def _whole() -> bytes:
    """Swagger 2.0."""
    kinds = {name for version, found in resources().items() for r in found for name in _names(version, r) if name}
    found = {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": _old(_reachable(kinds))}
    return json.dumps(found, separators=(",", ":")).encode()


def _old(found: Any) -> Any:
    if isinstance(found, list):
        return [_old(v) for v in found]
    if not isinstance(found, dict):
        return found
    if "allOf" in found and len(found["allOf"]) == 1 and "$ref" in found["allOf"][0]:
        # v2 lets nothing but a description stand beside a reference.
        return _old({**{k: v for k, v in found.items() if k.startswith("x-")}, **found["allOf"][0]})
    if isinstance(found.get("$ref"), str):
        return {**found, "$ref": found["$ref"].replace(REF, "#/definitions/")}
    if found.get("x-kubernetes-int-or-string"):
        return {
            **{k: v for k, v in found.items() if k not in ("anyOf", "nullable")},
            "type": "string",
            "format": "int-or-string",
        }
    return {k: _old(v) for k, v in found.items() if k not in ("oneOf", "anyOf", "nullable")}
