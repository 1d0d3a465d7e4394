"""A Kubernetes API over `Objects`: discovery, list with paging, watch with bookmarks and 410, the patch kinds, scale,
status, preconditions, rights, and the service proxy to the simulated slurmrestd.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from slinkytui.backend.http import Handler, Request, Response
from slinkytui.backend.sim.objects import BY_PLURAL, RESOURCES, Name, Objects, Served, rfc3339

VERSION: Final = {"major": "1", "minor": "36", "gitVersion": "v1.36.3+sim", "platform": "linux/amd64"}
_BOOKMARK_S: Final = 30.0


class Failed(Exception):
    """A Status answer."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def response(self) -> Response:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
                  "reason": self.reason, "code": self.code}  # fmt: skip
        return Response(self.code, json.dumps(status).encode())


def qualified(served: Served) -> str:
    return f"{served.plural}.{served.group}" if served.group else served.plural


class KubeSim:
    """`tokens` maps a token to "admin" or "reader". `services` maps (namespace, name:port) to a server's core."""

    def __init__(self, objects: Objects, tokens: dict[str, str]) -> None:
        self.objects, self.tokens = objects, tokens
        self.services: dict[tuple[str, str], Handler] = {}

    async def handle(self, request: Request) -> Response:
        try:
            return await self._handle(request)
        except Failed as failed:
            return failed.response()

    async def _handle(self, request: Request) -> Response:
        parts = [unquote(p) for p in request.path.strip("/").split("/")]
        role = self.tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if parts[0] in ("healthz", "readyz", "livez"):
            return Response(200, b"ok", "text/plain")
        if role is None:
            raise Failed(401, "Unauthorized", "Unauthorized")
        if parts[0] == "version":
            return _json(VERSION)
        if parts[0] in ("api", "apis") and len(parts) <= (2 if parts[0] == "api" else 3):
            return _discovery(parts)
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        if group == "authorization.k8s.io":
            return self._review(request, role)
        namespace = ""
        if rest and rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        served = BY_PLURAL.get((group, rest[0] if rest else ""))
        if served is None:
            return Response(404, b"404 page not found", "text/plain")
        if len(rest) >= 3 and rest[2] == "proxy" and served.plural == "services":
            return await self._proxy(request, namespace, rest[1])
        if role != "admin" and request.method not in ("GET", "HEAD"):
            verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[request.method]
            raise Failed(
                403,
                "Forbidden",
                f'{qualified(served)} is forbidden: User "{role}" cannot {verb} resource "{served.plural}" in API group "{group}"',
            )
        if len(rest) == 1:
            return await self._collection(request, served, namespace)
        return self._single(request, served, namespace, rest[1], rest[2] if len(rest) > 2 else "")

    async def _proxy(self, request: Request, namespace: str, name: str) -> Response:
        handler = self.services.get((namespace, name))
        if handler is None:
            raise Failed(503, "ServiceUnavailable", f'no endpoints available for service "{name}"')
        _, _, path = request.path.partition("/proxy")
        return await handler(Request(request.method, path or "/", request.query, request.headers, request.body))

    def _review(self, request: Request, role: str) -> Response:
        body = msgspec.json.decode(request.body)
        verb = ((body.get("spec") or {}).get("resourceAttributes") or {}).get("verb", "")
        allowed = role == "admin" or verb in ("get", "list", "watch")
        body["status"] = {"allowed": allowed, "reason": "" if allowed else f"{role} may only read"}
        return _json(body, 201)

    async def _collection(self, request: Request, served: Served, namespace: str) -> Response:
        if request.method == "POST":
            return self._create(request, served, namespace)
        if request.method != "GET":
            raise Failed(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        if request.first("watch") in ("true", "1"):
            start = int(request.first("resourceVersion") or self.objects.version)
            if start < self.objects.oldest:
                raise Failed(410, "Expired", f"The resourceVersion for the provided watch is too old: {start}")
            seconds = float(request.first("timeoutSeconds") or 1800)
            return Response(200, self._watch(request, served, namespace, start, seconds))
        return Response(200, self._list(request, served, namespace))

    async def _list(self, request: Request, served: Served, namespace: str) -> AsyncIterator[bytes]:
        limit = int(request.first("limit") or 0)
        after = request.first("continue")
        chosen = list(self.objects.all(served, namespace))
        if request.first("labelSelector") or request.first("fieldSelector"):
            chosen = [(n, o) for n, o in chosen if _selected(request, served, o)]
        if after:
            chosen = [(n, o) for n, o in chosen if "/".join(n) > after]
        page = chosen[:limit] if limit else chosen
        meta: dict[str, Any] = {"resourceVersion": str(self.objects.version)}
        if len(page) < len(chosen):
            meta["continue"] = "/".join(page[-1][0])
            meta["remainingItemCount"] = len(chosen) - len(page)
        head = {"kind": f"{served.kind}List", "apiVersion": served.api, "metadata": meta}
        yield msgspec.json.encode(head)[:-1] + b',"items":['
        encoded = [self.objects.encoded(served, n, o) for n, o in page]
        for at in range(0, len(encoded), 200):
            yield (b"," if at else b"") + b",".join(encoded[at : at + 200])
        yield b"]}"

    async def _watch(
        self, request: Request, served: Served, namespace: str, start: int, seconds: float
    ) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        until, sent = loop.time() + seconds, start
        bookmarks = request.first("allowWatchBookmarks") in ("true", "1")
        while loop.time() < until:
            waiter = self.objects.changed
            if sent < self.objects.oldest:
                yield b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}\n'
                return
            lines = [
                c.line for c in self._since(sent) if c.served is served and (not namespace or c.name[0] == namespace)
            ]
            sent = self.objects.version
            if lines:
                yield b"".join(lines)
                continue
            try:
                await asyncio.wait_for(waiter.wait(), min(_BOOKMARK_S, max(0.0, until - loop.time())))
            except TimeoutError:
                if bookmarks:
                    body = {
                        "type": "BOOKMARK",
                        "object": {
                            "kind": served.kind,
                            "apiVersion": served.api,
                            "metadata": {"resourceVersion": str(sent)},
                        },
                    }
                    yield json.dumps(body).encode() + b"\n"

    def _since(self, version: int) -> list[Any]:
        log = self.objects.log
        low, high = 0, len(log)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if log[middle].version <= version else (low, middle)
        return log[low:]

    def _create(self, request: Request, served: Served, namespace: str) -> Response:
        body = _object(request.body)
        meta = body.setdefault("metadata", {})
        if served.namespaced:
            meta["namespace"] = namespace
            if not self.objects.get(BY_PLURAL["", "namespaces"], "", namespace):
                raise Failed(404, "NotFound", f'namespaces "{namespace}" not found')
        name = meta.get("name") or ""
        if not name and meta.get("generateName"):
            name = meta["name"] = f"{meta['generateName']}{self.objects.version:05x}"
        if not name:
            raise Failed(
                422,
                "Invalid",
                f'{served.kind} "" is invalid: metadata.name: Required value: name or generateName is required',
            )
        if self.objects.get(served, namespace if served.namespaced else "", name):
            raise Failed(409, "AlreadyExists", f'{qualified(served)} "{name}" already exists')
        return _json(body if request.first("dryRun") else self.objects.put(served, body), 201)

    def _single(self, request: Request, served: Served, namespace: str, name: str, sub: str) -> Response:
        key: Name = (namespace if served.namespaced else "", name)
        found = self.objects.get(served, *key)
        if found is None:
            raise Failed(404, "NotFound", f'{qualified(served)} "{name}" not found')
        if sub and sub not in served.subs:
            raise Failed(404, "NotFound", "the server could not find the requested resource")
        match request.method:
            case "GET":
                return _json(_scale_of(found) if sub == "scale" else found)
            case "DELETE":
                return self._delete(request, served, key, found)
            case "PUT":
                return self._store(request, served, found, _object(request.body), sub)
            case "PATCH":
                base = _scale_of(found) if sub == "scale" else found
                return self._store(request, served, found, _patched(request, base), sub)
        raise Failed(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _store(self, request: Request, served: Served, old: dict[str, Any], new: dict[str, Any], sub: str) -> Response:
        asked = str((new.get("metadata") or {}).get("resourceVersion") or "")
        if asked and asked != old["metadata"]["resourceVersion"]:
            raise Failed(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {qualified(served)} "{old["metadata"]["name"]}": the object has been modified; please apply your changes to the latest version and try again',
            )
        stored = copy.deepcopy(old)
        if sub == "scale":
            stored.setdefault("spec", {})["replicas"] = int((new.get("spec") or {}).get("replicas", 0))
        elif sub == "status":
            stored["status"] = new.get("status")
        else:
            keep = {
                k: old["metadata"].get(k)
                for k in ("uid", "creationTimestamp", "generation", "deletionTimestamp", "name", "namespace")
                if k in old["metadata"]
            }
            stored = {**new, "metadata": {**new.get("metadata", {}), **keep}}
            if "status" in served.subs and "status" in old:
                stored["status"] = old["status"]
        if request.first("dryRun"):
            return _json(stored)
        if {**stored, "metadata": None} == {**old, "metadata": None} and _plain(stored) == _plain(old):
            return _json(_scale_of(old) if sub == "scale" else old)
        done = self.objects.put(served, stored, spec_changed=stored.get("spec") != old.get("spec"))
        return _json(_scale_of(done) if sub == "scale" else done)

    def _delete(self, request: Request, served: Served, key: Name, found: dict[str, Any]) -> Response:
        body = msgspec.json.decode(request.body) if request.body else {}
        wanted = (body.get("preconditions") or {}).get("uid")
        if wanted and wanted != found["metadata"]["uid"]:
            raise Failed(
                409,
                "Conflict",
                f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found['metadata']['uid']}",
            )
        running = (
            served.plural == "pods"
            and (found.get("spec") or {}).get("nodeName")
            and body.get("gracePeriodSeconds") != 0
        )
        if found["metadata"].get("finalizers") or running:
            marked = copy.deepcopy(found)
            marked["metadata"].setdefault("deletionTimestamp", rfc3339(self.objects.now()))
            return _json(self.objects.put(served, marked))
        return _json(self.objects.drop(served, key))


def _json(found: Any, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(found))


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise Failed(400, "BadRequest", f"the body cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise Failed(400, "BadRequest", "the body is no object")
    return found


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in found["metadata"].items() if k not in ("resourceVersion", "managedFields")}


def _scale_of(found: dict[str, Any]) -> dict[str, Any]:
    meta, status = found["metadata"], found.get("status") or {}
    return {
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {k: meta[k] for k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if k in meta},
        "spec": {"replicas": (found.get("spec") or {}).get("replicas", 0)},
        "status": {"replicas": status.get("replicas", 0), "selector": status.get("selector", "")},
    }  # fmt: skip


def _patched(request: Request, found: dict[str, Any]) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0]
    if kind == "application/json-patch+json":
        return _json_patch(found, msgspec.json.decode(request.body))
    if kind not in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
        raise Failed(415, "UnsupportedMediaType", f"the body of the request was in an unknown format - {kind}")
    merged: dict[str, Any] = merge(copy.deepcopy(found), _object(request.body))
    return merged


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


def _json_patch(found: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
    out = copy.deepcopy(found)
    for step in steps:
        *path, last = [p.replace("~1", "/").replace("~0", "~") for p in str(step["path"]).strip("/").split("/")]
        target: Any = out
        try:
            for part in path:
                target = target[int(part)] if isinstance(target, list) else target[part]
            _json_step(target, last, step)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise Failed(
                422, "Invalid", f"the server rejected our request due to an error in our request: {error}"
            ) from error
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


def _selected(request: Request, served: Served, found: dict[str, Any]) -> bool:
    labels = found["metadata"].get("labels") or {}
    for term in filter(None, request.first("labelSelector").split(",")):
        if "!=" in term:
            key, _, value = term.partition("!=")
            if labels.get(key) == value:
                return False
        elif "=" in term:
            key, _, value = term.partition("=")
            if labels.get(key) != value.lstrip("="):
                return False
        elif (term.lstrip("!") in labels) == term.startswith("!"):
            return False
    for term in filter(None, request.first("fieldSelector").split(",")):
        key, _, value = term.partition("=")
        target: Any = found
        for part in key.rstrip("!").split("."):
            target = (target or {}).get(part)
        if (str(target or "") == value.lstrip("=")) == key.endswith("!"):
            return False
    return True


def _discovery(parts: list[str]) -> Response:
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
                    "kind": r.kind,
                    "verbs": ["get", "patch", "update"],
                }
                for s in r.subs
            ]
    if not resources:
        return Response(404, b"404 page not found", "text/plain")
    return _json(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "/".join(parts[1:]), "resources": resources}
    )
