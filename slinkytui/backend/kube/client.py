"""The typed face of one API server: objects as bytes, patches with preconditions, rights. Errors as in `backend`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.http import Answer, Query, Request, Transport
from slinkytui.backend.kube.errors import classify
from slinkytui.backend.kube.resources import PODS, Resource

MANAGER: Final = "slinkytui"
_PATCH: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class KubeClient:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def close(self) -> None:
        await self.transport.close()

    async def call(
        self, method: str, path: str, what: str, *, query: Query = (), body: Any = None, kind: str = "application/json"
    ) -> bytes:
        """One small call; the body of a success. Raises with the server's own words."""
        data = b"" if body is None else msgspec.json.encode(body)
        headers = {"accept": "application/json", **({"content-type": kind} if data else {})}
        async with self.transport.send(Request(method, path, query, headers, data)) as answer:
            found = await answer.read()
            if answer.status >= 300:
                raise classify(what, answer.status, found)
        return found

    async def version(self) -> str:
        return str(msgspec.json.decode(await self.call("GET", "/version", "version")).get("gitVersion", ""))

    async def serves(self, group: str, version: str) -> bool:
        """Whether a group is there at all."""
        found = msgspec.json.decode(await self.call("GET", "/apis", "API groups"))
        return any(
            g.get("name") == group and any(v.get("version") == version for v in g.get("versions", ()))
            for g in found.get("groups", ())
        )

    async def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        """The raw object."""
        what = f"{resource.kind} {namespace + '/' if namespace else ''}{name}"
        found = msgspec.json.decode(await self.call("GET", resource.path(namespace, name), what))
        if not isinstance(found, dict):
            raise SlinkyError(f"{what}: the answer is no object")
        return found

    async def create(self, resource: Resource, namespace: str, body: Any) -> dict[str, Any]:
        """Make an object. Raises AlreadyExists, or the server's refusal with its own words."""
        meta = body["metadata"]
        what = f"{resource.kind} {namespace + '/' if namespace else ''}{meta.get('name') or meta.get('generateName')}"
        query: Query = (("fieldManager", MANAGER),)
        return dict(
            msgspec.json.decode(await self.call("POST", resource.path(namespace), what, query=query, body=body))
        )

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: Any, *,
        kind: Literal["merge", "json", "strategic", "apply"] = "merge", sub: str = "", force: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Change an object. A resourceVersion or UID in `body` is the precondition."""
        what = f"{resource.kind} {namespace + '/' if namespace else ''}{name}"
        query: Query = (("fieldManager", MANAGER),) + ((("force", "true"),) if force else ())
        path = resource.path(namespace, name, sub)
        return dict(
            msgspec.json.decode(await self.call("PATCH", path, what, query=query, body=body, kind=_PATCH[kind]))
        )

    async def scale(self, resource: Resource, namespace: str, name: str, replicas: int, version: str) -> dict[str, Any]:
        """Set spec.replicas on the scale subresource, only if the object is still at this resourceVersion."""
        body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": replicas}}
        return await self.patch(resource, namespace, name, body, sub="scale")

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Delete exactly the object with this UID."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        await self.call("DELETE", resource.path(namespace, name), f"{resource.kind} {name}", body=body)

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Ask for a pod to go, which its budgets may refuse (`TooMany`, worth a later try)."""
        body = {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }  # fmt: skip
        path = PODS.path(namespace, name, "eviction")
        await self.call("POST", path, f"eviction of pod {namespace}/{name}", body=body)

    async def may(self, verb: str, resource: Resource, namespace: str = "", sub: str = "") -> tuple[bool, str]:
        """Whether we may, and the server's reason."""
        attributes = {
            "verb": verb,
            "group": resource.group,
            "resource": resource.plural,
            "namespace": namespace,
            "subresource": sub,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        status = msgspec.json.decode(await self.call("POST", path, "rights", body=body)).get("status") or {}
        return bool(status.get("allowed")), str(status.get("reason") or "")

    def service(self, namespace: str, service: str, port: int) -> Transport:
        """A way to a service's port through the API server's proxy."""
        return _ServiceProxy(
            self.transport,
            f"/api/v1/namespaces/{quote(namespace, safe='')}/services/{quote(service, safe='')}:{port}/proxy",
        )


class _ServiceProxy:
    def __init__(self, inner: Transport, prefix: str) -> None:
        self._inner, self._prefix = inner, prefix

    def send(self, request: Request, *, timeout_s: float | None = None) -> AbstractAsyncContextManager[Answer]:
        return self._send(request, timeout_s)

    @asynccontextmanager
    async def _send(self, request: Request, timeout_s: float | None) -> AsyncIterator[Answer]:
        inside = Request(request.method, self._prefix + request.path, request.query, request.headers, request.body)
        async with self._inner.send(inside, timeout_s=timeout_s or 60.0) as answer:
            yield answer

    async def close(self) -> None:
        """The connection belongs to the API server's client."""
