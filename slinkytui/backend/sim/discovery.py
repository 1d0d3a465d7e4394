"""What the simulated API server says that it serves."""

from __future__ import annotations

from typing import Any

import msgspec

from slinkytui.backend.http import Response
from slinkytui.backend.sim.objects import RESOURCES


def _json(found: Any) -> Response:
    return Response(200, msgspec.json.encode(found))


def discovery(parts: list[str]) -> Response:
    """The answer for /api, /apis and what is below them down to a version."""
    groups = sorted({(r.group, r.version) for r in RESOURCES if r.group})
    if parts == ["api"]:
        return _json({"kind": "APIVersions", "versions": ["v1"]})
    if parts == ["apis"]:
        found = [
            {
                "name": g,
                "versions": [{"groupVersion": f"{g}/{v}", "version": v}],
                "preferredVersion": {"groupVersion": f"{g}/{v}", "version": v},
            }
            for g, v in groups
        ]
        return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": found})
    group = "" if parts[0] == "api" else parts[1]
    if parts[0] == "apis" and len(parts) == 2:
        version = next((v for g, v in groups if g == group), "")
        one = {"groupVersion": f"{group}/{version}", "version": version}
        return _json(
            {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": [one], "preferredVersion": one}
        )
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    resources: list[dict[str, Any]] = []
    for r in RESOURCES:
        if r.group == group:
            resources.append(
                {
                    "name": r.plural,
                    "singularName": r.kind.lower(),
                    "namespaced": r.namespaced,
                    "kind": r.kind,
                    "verbs": verbs,
                    "shortNames": list(r.short),
                }
            )
            resources += [
                {
                    "name": f"{r.plural}/{s}",
                    "singularName": "",
                    "namespaced": r.namespaced,
                    "kind": "Eviction" if s == "eviction" else "Scale" if s == "scale" else r.kind,
                    "verbs": ["create"] if s == "eviction" else ["get", "patch", "update"],
                }
                for s in r.subs
            ]
    if not resources:
        return Response(404, b"404 page not found\n", "text/plain")
    return _json(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "/".join(parts[1:]), "resources": resources}
    )
