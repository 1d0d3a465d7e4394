"""A Kubernetes API over `Objects`: routes, rights, lists with paging, logs, and the service proxy to the simulated
slurmrestd. Writes are in `writes`, watches in `watches`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from slinkytui.backend.http import Handler, Request, Response
from slinkytui.backend.sim import logs
from slinkytui.backend.sim.bodies import APPLY, kind_of, sent
from slinkytui.backend.sim.discovery import discovery
from slinkytui.backend.sim.failures import Failed, about, qualified
from slinkytui.backend.sim.objects import BY_PLURAL, Name, Objects, Served
from slinkytui.backend.sim.openapi import openapi
from slinkytui.backend.sim.reviews import review
from slinkytui.backend.sim.selectors import check
from slinkytui.backend.sim.views import View, wanted
from slinkytui.backend.sim.watches import Watch, chosen
from slinkytui.backend.sim.writes import Writes, scale_of

VERSION: Final = {"major": "1", "minor": "36", "gitVersion": "v1.36.3+sim", "gitCommit": "", "gitTreeState": "", "buildDate": "",
                  "goVersion": "", "compiler": "", "platform": "linux/amd64"}  # fmt: skip
_LISTS: Final = 64
_NOT_ALLOWED: Final = "the server does not allow this method on the requested resource"
_NO_CONTAINERS: Final = "the simulator runs no containers: there is nothing to {} to"


class KubeSim:
    """`tokens` maps a token to "admin" or "reader". `services` maps (namespace, name:port) to a server's core."""

    def __init__(self, objects: Objects, tokens: dict[str, str]) -> None:
        self.objects, self.tokens = objects, tokens
        self.services: dict[tuple[str, str], Handler] = {}
        self._pages: dict[str, tuple[int, list[tuple[Name, dict[str, Any]]]]] = {}
        self._writes = Writes(objects, self._answer)

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
        role = _acting(role, request.headers.get("impersonate-user", ""))
        if parts[0] == "version":
            return _json(VERSION)
        if parts[0] == "openapi":
            return openapi(request.path, request.headers.get("accept", ""))
        if parts[0] in ("api", "apis") and len(parts) <= (2 if parts[0] == "api" else 3):
            return discovery(parts, request.headers.get("accept", ""))
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        if group in ("authorization.k8s.io", "authentication.k8s.io") and request.method == "POST":
            answered = review(rest[-1], sent(request), role)
            if answered is not None:
                return _json(answered, 201)
        namespace = ""
        if rest and rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        served = BY_PLURAL.get((group, rest[0] if rest else ""))
        if served is None or parts[2 if parts[0] == "apis" else 1] != served.version:
            return Response(404, b"404 page not found\n", "text/plain")
        if len(rest) >= 3 and rest[2] == "proxy" and served.plural == "services":
            return await self._proxy(request, namespace, rest[1])
        if role != "admin" and not (role == "reader" and request.method in ("GET", "HEAD")):
            raise _forbidden(request, role, served, namespace, rest[1] if len(rest) > 1 else "")
        if len(rest) == 1:
            return self._collection(request, served, namespace)
        return self._single(request, served, namespace, rest[1], rest[2] if len(rest) > 2 else "")

    async def _proxy(self, request: Request, namespace: str, name: str) -> Response:
        handler = self.services.get((namespace, name))
        if handler is None:
            raise Failed(503, "ServiceUnavailable", f'no endpoints available for service "{name}"')
        _, _, path = request.path.partition("/proxy")
        return await handler(Request(request.method, path or "/", request.query, request.headers, request.body))

    def _view(self, request: Request, served: Served) -> View:
        form = wanted(request.headers.get("accept", ""))
        return View(served, form, request.first("includeObject") or "Metadata", self.objects.now)

    def _answer(self, request: Request, served: Served, found: dict[str, Any], status: int) -> Response:
        shown = found if found.get("kind") == "Scale" else self._view(request, served).one(found)
        return _json(shown, status)

    def _collection(self, request: Request, served: Served, namespace: str) -> Response:
        if request.method == "POST":
            return self._writes.create(request, served, namespace)
        try:
            check(request.first("labelSelector"), request.first("fieldSelector"), served.plural)
        except ValueError as error:
            raise Failed(400, "BadRequest", str(error)) from error
        view = self._view(request, served)
        if request.method == "DELETE":
            return self._delete_all(request, view, namespace)
        if request.method != "GET":
            raise Failed(405, "MethodNotAllowed", _NOT_ALLOWED)
        if request.first("watch") in ("true", "1"):
            watch = Watch(self.objects, view, request, namespace)
            if watch.start < self.objects.oldest:
                raise Failed(410, "Expired", f"The resourceVersion for the provided watch is too old: {watch.start}")
            return Response(200, watch.run(float(request.first("timeoutSeconds") or 1800)))
        if request.first("continue") and request.first("continue") not in self._pages:
            raise Failed(
                410, "Expired", "The provided continue parameter is too old to display a consistent list result."
            )
        return Response(200, self._list(request, view, namespace))

    def _delete_all(self, request: Request, view: View, namespace: str) -> Response:
        meta = {"resourceVersion": str(self.objects.version)}
        found = [(n, o) for n, o in self.objects.all(view.served, namespace) if chosen(request, view, o)]
        for name, o in found:
            self._writes.delete(request, view.served, name, o)
        return _json(view.many([o for _, o in found], meta))

    async def _list(self, request: Request, view: View, namespace: str) -> AsyncIterator[bytes]:
        limit = int(request.first("limit") or 0)
        version, found = self._pages.get(request.first("continue")) or (
            self.objects.version,
            [(n, o) for n, o in self.objects.all(view.served, namespace) if chosen(request, view, o)],
        )
        page, rest = (found[:limit], found[limit:]) if limit else (found, [])
        meta: dict[str, Any] = {"resourceVersion": str(version)}
        if rest:
            # All pages are of the moment of the first; the oldest lists in progress are forgotten.
            meta["continue"] = uuid.uuid4().hex
            self._pages[meta["continue"]] = (version, rest)
            while len(self._pages) > _LISTS:
                del self._pages[next(iter(self._pages))]
            if not request.first("labelSelector") and not request.first("fieldSelector"):
                meta["remainingItemCount"] = len(rest)
        if not view.plain:
            yield msgspec.json.encode(view.many([o for _, o in page], meta))
            return
        head = {"kind": f"{view.served.kind}List", "apiVersion": view.served.api, "metadata": meta}
        yield msgspec.json.encode(head)[:-1] + b',"items":['
        encoded = [self.objects.encoded(view.served, n, o) for n, o in page]
        for at in range(0, len(encoded), 200):
            yield (b"," if at else b"") + b",".join(encoded[at : at + 200])
        yield b"]}"

    def _single(self, request: Request, served: Served, namespace: str, name: str, sub: str) -> Response:
        key: Name = (namespace if served.namespaced else "", name)
        found = self.objects.get(served, *key)
        if found is None and request.method == "PATCH" and kind_of(request) == APPLY and not sub:
            return self._writes.apply(request, served, namespace, name)
        if found is None:
            raise Failed(404, "NotFound", f'{qualified(served)} "{name}" not found', about(served, name))
        if served.plural == "pods" and sub in ("exec", "attach", "portforward"):
            raise Failed(400, "BadRequest", _NO_CONTAINERS.format("attach" if sub != "portforward" else "forward"))
        if sub and sub not in served.subs:
            raise Failed(404, "NotFound", "the server could not find the requested resource", {})
        match sub, request.method:
            case "eviction", "POST":
                return self._writes.evict(request, served, key, found)
            case "binding", "POST":
                return self._writes.bind(request, served, found)
            case "log", "GET":
                return self._log(request, found)
            case "scale", "GET":
                return _json(scale_of(found))
            case (("" | "status"), "GET"):
                return self._answer(request, served, found, 200)
            case "", "DELETE":
                return self._writes.delete(request, served, key, found)
            case (("" | "status" | "scale"), ("PUT" | "PATCH")):
                return self._writes.change(request, served, found, sub)
        raise Failed(405, "MethodNotAllowed", _NOT_ALLOWED)

    def _log(self, request: Request, pod: dict[str, Any]) -> Response:
        status = logs.container(pod, request.first("container"))
        tail = request.first("tailLines")
        stamps = request.first("timestamps") in ("true", "1")
        body = logs.text(logs.lines(pod, status), stamps=stamps, tail=int(tail) if tail else None)
        return Response(200, body, "text/plain")


def _acting(role: str, asked: str) -> str:
    """Who is meant by somebody who may act as others; only the admin may."""
    if asked and role != "admin":
        text = f'users "{asked}" is forbidden: User "{role}" cannot impersonate resource "users" in API group "" at the cluster scope'
        raise Failed(403, "Forbidden", text, {"name": asked, "kind": "users"})
    return asked or role


def _forbidden(request: Request, role: str, served: Served, namespace: str, name: str) -> Failed:
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
    verb = verbs.get(request.method, "get")
    if not name and verb in ("delete", "get"):
        verb = (
            "deletecollection" if verb == "delete" else "watch" if request.first("watch") in ("true", "1") else "list"
        )
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    which = f'{qualified(served)} "{name}"' if name else qualified(served)
    text = f'{which} is forbidden: User "{role}" cannot {verb} resource "{served.plural}" in API group "{served.group}" {where}'
    return Failed(403, "Forbidden", text, about(served, name))


def _json(found: Any, status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(found))
