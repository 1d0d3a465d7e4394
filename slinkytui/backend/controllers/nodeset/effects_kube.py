"""The writes to Kubernetes, each with its preconditions. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.nodeset.decision import (
    Apply,
    CreatePod,
    DeletePod,
    Finalizers,
    ForgetRevision,
    PatchPod,
    PodConditions,
    RankRevision,
)
from slinkytui.backend.controllers.nodeset.doubts import our_field
from slinkytui.backend.controllers.nodeset.status import status_patch
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.controllers.runtime.expectations import Expectations
from slinkytui.backend.controllers.runtime.gate import Gate
from slinkytui.backend.errors import BadRequest, Conflict, NotFound
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import BUDGETS, CLAIMS, CONFIGMAPS, NODESETS, PODS, REVISIONS, SERVICES

_RESOURCES: Final = {r.plural: r for r in (REVISIONS, SERVICES, BUDGETS, CONFIGMAPS)}


class Builder(Protocol):
    """Makes the objects of a worker. Raises SlinkyError with the field of our resource that is wrong."""

    def pod(self, new: CreatePod) -> dict[str, Any]: ...

    def claims(self, new: CreatePod) -> Sequence[dict[str, Any]]: ...


class Nobody:
    """Makes nothing: for a NodeSet of which no worker can be made now."""

    def __init__(self, why: str) -> None:
        self._why = why

    def pod(self, new: CreatePod) -> dict[str, Any]:
        raise BadRequest(f"no worker can be made: {self._why}")

    def claims(self, new: CreatePod) -> Sequence[dict[str, Any]]:
        return ()


@dataclass
class KubeHand:
    """Writes for one NodeSet."""

    kube: KubeClient
    gate: Gate
    expected: Expectations
    clock: Clock
    builder: Builder

    async def _write(self, what: str, act: Coroutine[Any, Any, Any]) -> Any:
        return await self.gate.write(what, act)

    async def create(self, world: World, new: CreatePod) -> str:
        """The name of the worker that was made."""
        body = self.builder.pod(new)
        for claim in self.builder.claims(new):
            try:
                await self._write("claim", self.kube.create(CLAIMS, world.key.namespace, claim))
            except Conflict as error:
                if error.retryable:
                    raise
            except BadRequest as error:
                template = str(claim["metadata"]["name"]).partition(f"-{world.key.name}-")[0]
                raise _of_ours(error, our_field("claim", error.detail, template)) from error
        with self.expected.creating(world.uid) as creation:
            try:
                made = await self._write("pod", self.kube.create(PODS, world.key.namespace, body))
            except Conflict as error:
                if error.retryable:
                    raise
                return str(body["metadata"].get("name"))  # it is there already: the cache will tell
            except BadRequest as error:
                raise _of_ours(error, our_field("pod", error.detail)) from error
            creation.made(str(made["metadata"].get("uid") or ""))
        return str(made["metadata"]["name"])

    async def delete(self, world: World, effect: DeletePod) -> None:
        pod = effect.pod
        with self.expected.deleting(world.uid, pod.meta.uid):
            try:
                await self._write("delete", self.kube.delete(PODS, pod.id.namespace, pod.id.name, pod.meta.uid))
            except NotFound:
                self.expected.gone(world.uid, pod.meta.uid)

    async def mark(self, world: World, effect: PatchPod) -> None:
        meta: dict[str, Any] = {"uid": effect.pod.meta.uid}
        if effect.guarded:
            meta["resourceVersion"] = effect.pod.meta.version
        for name, values in (("labels", effect.labels), ("annotations", effect.annotations)):
            if values:
                meta[name] = dict(values)
        with self.expected.changing(world.uid, effect.pod.meta.uid) as change:
            try:
                made = await self._write(
                    "mark", self.kube.patch(PODS, effect.pod.id.namespace, effect.pod.id.name, {"metadata": meta})
                )
            except NotFound:
                return  # gone: nothing is left to mark
            change.made(str(made["metadata"].get("resourceVersion") or ""))

    async def conditions(self, world: World, effect: PodConditions) -> None:
        """By type, so that what the kubelet writes meanwhile stays."""
        stamp = datetime.fromtimestamp(self.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        held = {c.type: c for c in effect.pod.conditions}
        items: list[dict[str, Any]] = []
        for kind, message in effect.wanted:
            one = {"type": kind, "status": "True", "message": message}
            if kind not in held or held[kind].status != "True":
                one["lastTransitionTime"] = stamp
            items.append(one)
        items += [{"$patch": "delete", "type": kind} for kind in effect.drop]
        body = {"metadata": {"uid": effect.pod.meta.uid}, "status": {"conditions": items}}
        with self.expected.changing(world.uid, effect.pod.meta.uid) as change:
            try:
                made = await self._write(
                    "conditions",
                    self.kube.patch(
                        PODS, effect.pod.id.namespace, effect.pod.id.name, body, kind="strategic", sub="status"
                    ),
                )
            except NotFound:
                return
            change.made(str(made["metadata"].get("resourceVersion") or ""))

    async def apply(self, world: World, effect: Apply) -> None:
        resource, name = _RESOURCES[effect.plural], str(effect.body["metadata"]["name"])
        if effect.exists:
            await self._write(name, self.kube.patch(resource, world.key.namespace, name, dict(effect.body)))
            return
        try:
            await self._write(name, self.kube.create(resource, world.key.namespace, dict(effect.body)))
        except Conflict as error:
            if error.retryable:
                raise  # anything else: it is there already, and the cache will tell

    async def rank(self, world: World, effect: RankRevision) -> None:
        await self._write(
            "revision", self.kube.patch(REVISIONS, world.key.namespace, effect.name, {"revision": effect.number})
        )

    async def forget_revision(self, world: World, effect: ForgetRevision) -> None:
        try:
            await self._write("revision", self.kube.delete(REVISIONS, world.key.namespace, effect.name, effect.uid))
        except NotFound:
            return

    async def finalizers(self, world: World, effect: Finalizers) -> None:
        body = {
            "metadata": {"uid": world.uid, "resourceVersion": world.version, "finalizers": list(effect.names) or None}
        }
        try:
            await self._write("finalizers", self.kube.patch(NODESETS, world.key.namespace, world.key.name, body))
        except NotFound:
            return

    async def status(self, world: World, status: dict[str, Any]) -> None:
        body = {"metadata": {"uid": world.uid}, "status": status_patch(world.status, status)}
        try:
            await self._write(
                "status", self.kube.patch(NODESETS, world.key.namespace, world.key.name, body, sub="status")
            )
        except NotFound:
            return


def _of_ours(error: BadRequest, field: str) -> BadRequest:
    """The server's refusal, with the field of our resource that it comes from."""
    return BadRequest(error.title, detail=error.detail, hint=f"from {field} of the NodeSet" if field else error.hint)
