"""What the simulated API server says that it serves: groups, resources, and all of it at once (aggregated)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from slinkytui.backend.http import Response
from slinkytui.backend.sim.objects import RESOURCES, Served
from slinkytui.backend.sim.schema import recording

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_REVIEWS: Final = ("authentication.k8s.io/v1", "authorization.k8s.io/v1")
# A server lists its own groups in an order of its own, custom resources last.
_ORDER: Final = ("", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "policy", "rbac.authorization.k8s.io", "apiextensions.k8s.io",
                 "coordination.k8s.io")  # fmt: skip
_VERBS: Final = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]


def _json(found: Any, kind: str = "application/json") -> Response:
    return Response(200, msgspec.json.encode(found), kind)


@cache
def resources() -> dict[str, list[dict[str, Any]]]:
    """By group and version, in the order in which groups are listed."""
    held = {f"{r.group}/{r.version}".strip("/") for r in RESOURCES} | set(_REVIEWS)

    def place(version: str) -> tuple[int, str]:
        group = version.rpartition("/")[0]
        return (_ORDER.index(group) if group in _ORDER else len(_ORDER), group)

    return {v: _of(v) for v in sorted(held, key=place)}


def _of(version: str) -> list[dict[str, Any]]:
    recorded = recording()["resources"].get(version)
    served = {r.plural: r for r in RESOURCES if r.api == version}
    if recorded is None:
        return [entry for plural in sorted(served) for entry in _custom(served[plural])]
    if version in _REVIEWS:
        return list(recorded)
    wanted = {f"{p}/{s}" for p, r in served.items() for s in r.subs} | served.keys()
    return [r for r in recorded if r["name"] in wanted]


def _custom(r: Served) -> list[dict[str, Any]]:
    common = {"namespaced": r.namespaced, "kind": r.kind}
    out: list[dict[str, Any]] = [
        {"name": r.plural, "singularName": r.kind.lower(), **common, "verbs": _VERBS, "shortNames": list(r.short)}
    ]
    for s in r.subs:
        kind = {"kind": "Scale", "group": "autoscaling", "version": "v1"} if s == "scale" else {}
        out.append(
            {"name": f"{r.plural}/{s}", "singularName": "", **common, "verbs": ["get", "patch", "update"], **kind}
        )
    return out


def discovery(parts: list[str], accept: str = "") -> Response:
    """The answer for /api, /apis and what is below them down to a version."""
    if len(parts) == 1 and "as=APIGroupDiscoveryList" in accept and "v=v2" in accept.replace("v2beta1", ""):
        return _json(_everything(parts[0] == "api"), _AGGREGATED)
    if parts == ["api"]:
        return _json({"kind": "APIVersions", "versions": ["v1"]})
    groups = [_group(v) for v in resources() if "/" in v]
    if parts == ["apis"]:
        return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    if parts[0] == "apis" and len(parts) == 2:
        found = next((g for g in groups if g["name"] == parts[1]), None)
        return _json({"kind": "APIGroup", "apiVersion": "v1", **found}) if found else _nothing()
    version = "/".join(parts[1:])
    if version not in resources():
        return _nothing()
    return _json(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources()[version]}
    )


def _nothing() -> Response:
    return Response(404, b"404 page not found\n", "text/plain")


def _group(version: str) -> dict[str, Any]:
    one = {"groupVersion": version, "version": version.rpartition("/")[2]}
    return {"name": version.rpartition("/")[0], "versions": [one], "preferredVersion": one}


def _everything(core: bool) -> dict[str, Any]:
    """The aggregated form: apidiscovery.k8s.io/v2."""
    items = []
    for version, found in resources().items():
        if core == (version == "v1"):
            group, _, name = version.rpartition("/")
            told = [_aggregated(r, found, group, name) for r in found if "/" not in r["name"]]
            versions = [{"version": name, "resources": told, "freshness": "Current"}]
            items.append(
                {
                    "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
                    "versions": versions,
                }
            )
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _kind(r: dict[str, Any], group: str, version: str) -> dict[str, str]:
    return {"group": r.get("group", group), "version": r.get("version", version), "kind": r["kind"]}


def _aggregated(r: dict[str, Any], found: list[dict[str, Any]], group: str, version: str) -> dict[str, Any]:
    out: dict[str, Any] = {
        "resource": r["name"], "responseKind": _kind(r, group, version), "scope": "Namespaced" if r["namespaced"] else "Cluster",
        "singularResource": r["singularName"], "verbs": r["verbs"],
    }  # fmt: skip
    out |= {k: r[k] for k in ("shortNames", "categories") if r.get(k)}
    subs = [
        {"subresource": s["name"].partition("/")[2], "responseKind": _kind(s, group, version), "verbs": s["verbs"]}
        for s in found
        if s["name"].startswith(f"{r['name']}/")
    ]
    return {**out, "subresources": subs} if subs else out
