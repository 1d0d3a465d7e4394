"""A Kubernetes API over `Objects`: discovery, list with paging, watch with bookmarks and 410, the patch kinds, scale,
status, preconditions, rights, and the service proxy to the simulated slurmrestd.
"""

from __future__ import annotations

import asyncio
import copy
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from slinkytui.backend.http import Handler, Request, Response
from slinkytui.backend.sim.discovery import discovery
from slinkytui.backend.sim.evict import blocked_by, release
from slinkytui.backend.sim.objects import BY_PLURAL, SLINKY, Change, Name, Objects, Served, rfc3339
from slinkytui.backend.sim.patches import json_patch, merge
from slinkytui.backend.sim.selectors import check, selected

VERSION: Final = {"major": "1", "minor": "36", "gitVersion": "v1.36.3+sim", "platform": "linux/amd64"}
_UNSUPPORTED: Final = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)
_LISTS: Final = 64
_BOOKMARK_S: Final = 30.0


class Failed(Exception):
    """A Status answer."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def response(self) -> Response:
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
                  "reason": self.reason, "code": self.code}  # fmt: skip
        if self.details:
            status["details"] = self.details
        return Response(self.code, json.dumps(status).encode())


def qualified(served: Served) -> str:
    return f"{served.plural}.{served.group}" if served.group else served.plural


def about(served: Served, name: str) -> dict[str, Any]:
    """A Status's details: which object."""
    found = {"name": name, "group": served.group, "kind": served.plural}
    return {k: v for k, v in found.items() if v}


class KubeSim:
    """`tokens` maps a token to "admin" or "reader". `services` maps (namespace, name:port) to a server's core."""

    def __init__(self, objects: Objects, tokens: dict[str, str]) -> None:
        self.objects, self.tokens = objects, tokens
        self._pages: dict[str, tuple[int, list[tuple[Name, dict[str, Any]]]]] = {}
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
            return discovery(parts)
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        if group == "authorization.k8s.io":
            return self._review(request, role)
        namespace = ""
        if rest and rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        served = BY_PLURAL.get((group, rest[0] if rest else ""))
        if served is None:
            return Response(404, b"404 page not found\n", "text/plain")
        if len(rest) >= 3 and rest[2] == "proxy" and served.plural == "services":
            return await self._proxy(request, namespace, rest[1])
        if role != "admin" and request.method not in ("GET", "HEAD"):
            raise _forbidden(request.method, role, served, namespace, rest[1] if len(rest) > 1 else "")
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
        try:
            check(request.first("labelSelector"), request.first("fieldSelector"), served.plural)
        except ValueError as error:
            raise Failed(400, "BadRequest", str(error)) from error
        if request.first("watch") in ("true", "1"):
            start = int(request.first("resourceVersion") or self.objects.version)
            if start < self.objects.oldest:
                raise Failed(410, "Expired", f"The resourceVersion for the provided watch is too old: {start}")
            seconds = float(request.first("timeoutSeconds") or 1800)
            return Response(200, self._watch(request, served, namespace, start, seconds))
        if request.first("continue") and request.first("continue") not in self._pages:
            raise Failed(
                410, "Expired", "The provided continue parameter is too old to display a consistent list result."
            )
        return Response(200, self._list(request, served, namespace))

    async def _list(self, request: Request, served: Served, namespace: str) -> AsyncIterator[bytes]:
        limit = int(request.first("limit") or 0)
        after = request.first("continue")
        version, chosen = self._pages.get(after) or (
            self.objects.version,
            [(n, o) for n, o in self.objects.all(served, namespace) if _selected(request, served, o)],
        )
        page, rest = (chosen[:limit], chosen[limit:]) if limit else (chosen, [])
        meta: dict[str, Any] = {"resourceVersion": str(version)}
        if rest:
            # All pages are of the moment of the first; the oldest lists in progress are forgotten.
            meta["continue"] = uuid.uuid4().hex
            self._pages[meta["continue"]] = (version, rest)
            while len(self._pages) > _LISTS:
                del self._pages[next(iter(self._pages))]
            if not request.first("labelSelector") and not request.first("fieldSelector"):
                meta["remainingItemCount"] = len(rest)
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
                line
                for c in self._since(sent)
                if c.served is served and (not namespace or c.name[0] == namespace)
                for line in [_told(request, c)]
                if line
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
            name = meta["name"] = f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
        if not name:
            raise Failed(
                422,
                "Invalid",
                f'{served.kind} "" is invalid: metadata.name: Required value: name or generateName is required',
            )
        if self.objects.get(served, namespace if served.namespaced else "", name):
            raise Failed(409, "AlreadyExists", f'{qualified(served)} "{name}" already exists', about(served, name))
        if "status" in served.subs:
            body.pop("status", None)
        if served.plural == "pods":
            body["status"] = {"phase": "Pending"}
        return _json(body if request.first("dryRun") else self.objects.put(served, body), 201)

    def _single(self, request: Request, served: Served, namespace: str, name: str, sub: str) -> Response:
        key: Name = (namespace if served.namespaced else "", name)
        found = self.objects.get(served, *key)
        if found is None:
            raise Failed(404, "NotFound", f'{qualified(served)} "{name}" not found', about(served, name))
        if sub and sub not in served.subs:
            raise Failed(404, "NotFound", "the server could not find the requested resource")
        if sub == "eviction":
            return self._evict(request, served, key, found)
        match request.method:
            case "GET":
                return _json(_scale_of(found) if sub == "scale" else found)
            case "DELETE":
                return self._delete(request, served, key, found)
            case "PUT":
                return self._store(request, served, found, _object(request.body), sub)
            case "PATCH":
                base = _scale_of(found) if sub == "scale" else found
                if "strategic" in request.headers.get("content-type", "") and served.group == SLINKY:
                    raise Failed(415, "UnsupportedMediaType", _UNSUPPORTED)
                return self._store(request, served, found, _patched(request, base), sub)
        raise Failed(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _store(self, request: Request, served: Served, old: dict[str, Any], new: dict[str, Any], sub: str) -> Response:
        asked = str((new.get("metadata") or {}).get("resourceVersion") or "")
        if asked and asked != old["metadata"]["resourceVersion"]:
            raise Failed(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {qualified(served)} "{old["metadata"]["name"]}": the object has been modified; please apply your changes to the latest version and try again',
                about(served, old["metadata"]["name"]),
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

    def _evict(self, request: Request, served: Served, key: Name, found: dict[str, Any]) -> Response:
        why = blocked_by(self.objects, found)
        if why:
            cause = {"reason": "DisruptionBudget", "message": why}
            text = "Cannot evict pod as it would violate the pod's disruption budget."
            raise Failed(429, "TooManyRequests", text, {"causes": [cause]})
        options = msgspec.json.encode(_object(request.body).get("deleteOptions") or {})
        self._delete(Request("DELETE", request.path, request.query, request.headers, options), served, key, found)
        return _json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    def _delete(self, request: Request, served: Served, key: Name, found: dict[str, Any]) -> Response:
        body = msgspec.json.decode(request.body) if request.body else {}
        wanted = (body.get("preconditions") or {}).get("uid")
        if wanted and wanted != found["metadata"]["uid"]:
            raise Failed(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {served.kind}{"." if served.group else ""}{served.group} "{key[1]}": the UID in the precondition ({wanted}) does not match the UID in record ({found["metadata"]["uid"]}). The object might have been deleted and then recreated',
                about(served, key[1]),
            )
        if request.first("dryRun"):
            return _json(found)
        running = (
            served.plural == "pods"
            and (found.get("spec") or {}).get("nodeName")
            and body.get("gracePeriodSeconds") != 0
            and request.first("gracePeriodSeconds") != "0"
        )
        if found["metadata"].get("finalizers") or running:
            marked = copy.deepcopy(found)
            marked["metadata"].setdefault("deletionTimestamp", rfc3339(self.objects.now()))
            return _json(self.objects.put(served, marked))
        gone = self.objects.drop(served, key)
        release(self.objects, gone["metadata"]["uid"], orphan=body.get("propagationPolicy") == "Orphan")
        return _json(gone)


def _forbidden(method: str, role: str, served: Served, namespace: str, name: str) -> Failed:
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    which = f'{qualified(served)} "{name}"' if name else qualified(served)
    text = f'{which} is forbidden: User "{role}" cannot {verb} resource "{served.plural}" in API group "{served.group}" {where}'
    return Failed(403, "Forbidden", text, about(served, name))


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
        try:
            return json_patch(found, msgspec.json.decode(request.body))
        except ValueError as error:
            text = f"the server rejected our request due to an error in our request: {error}"
            raise Failed(422, "Invalid", text) from error
    if kind not in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
        raise Failed(415, "UnsupportedMediaType", f"the body of the request was in an unknown format - {kind}")
    merged: dict[str, Any] = merge(copy.deepcopy(found), _object(request.body))
    return merged


def _selected(request: Request, served: Served, found: dict[str, Any]) -> bool:
    return selected(request.first("labelSelector"), request.first("fieldSelector"), served.plural, found)


def _told(request: Request, change: Change) -> bytes:
    """What a watch with these selectors says of a change: an object that leaves them is deleted, one that comes is new."""
    if not request.first("labelSelector") and not request.first("fieldSelector"):
        return change.line
    now = change.type != "DELETED" and _selected(request, change.served, change.found)
    before = change.found if change.type == "DELETED" else change.old
    had = before is not None and _selected(request, change.served, before)
    if not now and not had:
        return b""
    kind = b"MODIFIED" if now and had else b"ADDED" if now else b"DELETED"
    return b'{"type":"' + kind + b'","object":' + msgspec.json.encode(change.found) + b"}\n"
