"""Carries a decision out: one branch an effect, each isolated, each with its preconditions. It decides nothing.

Whether a worker may go and whether a drain may be lifted is asked of Slurm once more, right before: a decision is made
from what was read a moment ago.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeVar

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.nodeset.causes import is_older, is_ours
from slinkytui.backend.controllers.nodeset.decision import (
    Apply,
    CreatePod,
    Decision,
    DeletePod,
    DeleteRecord,
    Drain,
    Effect,
    Finalizers,
    ForgetRevision,
    PatchPod,
    PatchStatus,
    PodConditions,
    RankRevision,
    Tell,
    Undrain,
    UpdateNode,
)
from slinkytui.backend.controllers.nodeset.drained import Answer, Verdict, judge, unknown, yes
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.controllers.runtime.expectations import Expectations
from slinkytui.backend.controllers.runtime.gate import Gate
from slinkytui.backend.controllers.runtime.pool import Pool
from slinkytui.backend.errors import BadRequest, Conflict, NotFound, SlinkyError
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import BUDGETS, CLAIMS, CONFIGMAPS, NODESETS, PODS, REVISIONS, SERVICES
from slinkytui.backend.models import Did, Job, SlurmNode
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.hostlist import HostlistError, expand
from slinkytui.backend.slurm.states import is_busy, is_drain

_AT_A_TIME: Final = 64
"""Repairs of Slurm records in one pass."""
_ONE_BY_ONE: Final = 8
"""Up to so many nodes are read singly; more are read in one list."""
_RESOURCES: Final = {r.plural: r for r in (REVISIONS, SERVICES, BUDGETS, CONFIGMAPS)}
E = TypeVar("E", bound=Effect)

Tells = Callable[[Tell], None]


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
class Outcome:
    """What came of a decision: each act in words, and pods that could not be changed."""

    did: list[Did] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    retry: str = ""
    more: bool = False
    """Not everything was begun: the rest comes in the next pass, at once."""
    refused: list[str] = field(default_factory=list)

    def note(self, text: str, error: Exception | None = None) -> None:
        words = error.line() if isinstance(error, SlinkyError) else repr(error) if error is not None else ""
        self.did.append(Did(text, words))
        if error is None:
            return
        retryable = not isinstance(error, SlinkyError) or error.retryable or isinstance(error, Conflict)
        if retryable:
            self.retry = self.retry or f"{text}: {words}"
        else:
            self.refused.append(f"{text}: {words}")


@dataclass
class Effects:
    """`client` is the Slurm client of the NodeSet's cluster, None while there is none."""

    kube: KubeClient
    client: SlurmClient | None
    builder: Builder
    gate: Gate
    kube_pool: Pool
    slurm_pool: Pool
    expected: Expectations
    clock: Clock
    tell: Tells
    reread: Callable[[list[str]], Coroutine[Any, Any, None]]
    """Reads Slurm nodes again after a write, so that the next look is not older than our own acts."""

    async def perform(self, world: World, decision: Decision) -> Outcome:
        """Everything in its order: workers that are made, notes, drains, deletions, lifted drains, repairs, status."""
        out = Outcome()
        by_kind: dict[type[Any], list[Any]] = {}
        for effect in decision.effects:
            by_kind.setdefault(type(effect), []).append(effect)

        def of(kind: type[E]) -> list[E]:
            return by_kind.get(kind, [])

        for finalizers in of(Finalizers):
            await self._one(out, "finalizers", self._finalizers(world, finalizers))
        for told in of(Tell):
            self.tell(told)
        await self._kube(out, of(Apply), _applied, lambda e: self._apply(world, e))
        await self._kube(
            out, of(RankRevision), lambda e: f"revision {e.name} is {e.number}", lambda e: self._rank(world, e)
        )
        await self._creates(world, of(CreatePod), out)
        await self._kube(out, of(PatchPod), lambda e: f"mark pod {e.pod.id.name}", lambda e: self._mark(world, e))
        # A drain without its note would look like nobody's: where the note failed nothing further is done.
        await self._slurm(
            out, [d for d in of(Drain) if d.pod.meta.uid not in out.failed], lambda e: f"drain {e.node}", self._drain
        )
        await self._deletes(world, [d for d in of(DeletePod) if d.pod.meta.uid not in out.failed], out)
        await self._slurm(out, of(Undrain), lambda e: f"undrain {e.node}", self._undrain)
        await self._kube(
            out, of(PodConditions), lambda e: f"conditions of pod {e.pod.id.name}", lambda e: self._conditions(world, e)
        )
        await self._kube(
            out, of(ForgetRevision), lambda e: f"delete revision {e.name}", lambda e: self._forget_revision(world, e)
        )
        for status in of(PatchStatus):
            await self._one(out, "status", self._status(world, status, out))
        await self._repairs(decision, out)
        return out

    async def _repairs(self, decision: Decision, out: Outcome) -> None:
        """What a Slurm record should say besides. It is in no hurry: some of it at a time, so that it keeps no drain or
        deletion waiting that the next look asks for."""
        repairs = [e for e in decision.effects if isinstance(e, UpdateNode | DeleteRecord)]
        some = repairs[:_AT_A_TIME]
        await self._slurm(
            out, [e for e in some if isinstance(e, UpdateNode)], lambda e: f"update {e.node}: {e.what}", self._update
        )
        await self._slurm(
            out, [e for e in some if isinstance(e, DeleteRecord)], lambda e: f"forget {e.node}: {e.why}", self._forget
        )
        acted = (e.node for e in decision.effects if isinstance(e, Drain | Undrain))
        touched = list(dict.fromkeys((*acted, *(e.node for e in some))))
        if touched and self.client is not None:
            await self.reread(touched)
        out.more = len(repairs) > len(some)

    # -- Kubernetes

    async def _write(self, what: str, act: Coroutine[Any, Any, Any]) -> Any:
        return await self.gate.write(what, act)

    async def _one(self, out: Outcome, text: str, act: Coroutine[Any, Any, object]) -> None:
        try:
            await act
        except SlinkyError as error:
            out.note(text, error)
        else:
            out.note(text)

    async def _kube(
        self,
        out: Outcome,
        effects: Sequence[E],
        words: Callable[[E], str],
        act: Callable[[E], Coroutine[Any, Any, Any]],
    ) -> None:
        for result in await self.kube_pool.run_all(effects, act):
            out.note(words(result.item), result.error)
            pod = getattr(result.item, "pod", None)
            if result.error is not None and pod is not None:
                out.failed.add(pod.meta.uid)

    async def _creates(self, world: World, creates: Sequence[CreatePod], out: Outcome) -> None:
        results = await self.kube_pool.run_all(creates, lambda new: self._create(world, new), slow_start=True)
        for result in results:
            if result.begun:
                out.note(f"create pod {result.value or result.item.slot}", result.error)

    async def _create(self, world: World, new: CreatePod) -> str:
        body = self.builder.pod(new)
        for claim in self.builder.claims(new):
            try:
                await self._write("claim", self.kube.create(CLAIMS, world.key.namespace, claim))
            except Conflict as error:
                if error.retryable:
                    raise
        with self.expected.creating(world.uid) as creation:
            try:
                made = await self._write("pod", self.kube.create(PODS, world.key.namespace, body))
            except Conflict as error:
                if error.retryable:
                    raise
                return str(body["metadata"].get("name"))  # it is there already: the cache will tell
            creation.made(str(made["metadata"].get("uid") or ""))
        return str(made["metadata"]["name"])

    async def _mark(self, world: World, effect: PatchPod) -> None:
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

    async def _conditions(self, world: World, effect: PodConditions) -> None:
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

    async def _apply(self, world: World, effect: Apply) -> None:
        resource, name = _RESOURCES[effect.plural], str(effect.body["metadata"]["name"])
        if effect.exists:
            await self._write(name, self.kube.patch(resource, world.key.namespace, name, dict(effect.body)))
            return
        try:
            await self._write(name, self.kube.create(resource, world.key.namespace, dict(effect.body)))
        except Conflict as error:
            if error.retryable:
                raise  # anything else: it is there already, and the cache will tell

    async def _rank(self, world: World, effect: RankRevision) -> None:
        await self._write(
            "revision", self.kube.patch(REVISIONS, world.key.namespace, effect.name, {"revision": effect.number})
        )

    async def _forget_revision(self, world: World, effect: ForgetRevision) -> None:
        try:
            await self._write("revision", self.kube.delete(REVISIONS, world.key.namespace, effect.name, effect.uid))
        except NotFound:
            return

    async def _finalizers(self, world: World, effect: Finalizers) -> None:
        body = {
            "metadata": {"uid": world.uid, "resourceVersion": world.version, "finalizers": list(effect.names) or None}
        }
        try:
            await self._write("finalizers", self.kube.patch(NODESETS, world.key.namespace, world.key.name, body))
        except NotFound:
            return

    async def _status(self, world: World, effect: PatchStatus, out: Outcome) -> None:
        status = dict(effect.status)
        if out.refused:
            status["conditions"] = _refused(status.get("conditions") or [], out.refused, self.clock.now())
            if status == dict(world.status):
                return
        body = {"metadata": {"uid": world.uid}, "status": status}
        try:
            await self._write(
                "status", self.kube.patch(NODESETS, world.key.namespace, world.key.name, body, sub="status")
            )
        except NotFound:
            return

    # -- Slurm

    async def _slurm(
        self,
        out: Outcome,
        effects: Sequence[E],
        words: Callable[[E], str],
        act: Callable[[E], Coroutine[Any, Any, Any]],
    ) -> None:
        if self.client is None:
            return
        for result in await self.slurm_pool.run_all(effects, act):
            out.note(words(result.item), result.error)

    def _slurm_client(self) -> SlurmClient:
        if self.client is None:
            raise NotFound("no client of the Slurm cluster")
        return self.client

    async def _drain(self, effect: Drain) -> None:
        client = self._slurm_client()
        node = await client.node(effect.node)
        if is_drain(node.states) and "UNDRAIN" not in node.states and not is_ours(node.reason):
            return  # somebody was faster: their words stay
        body = {"state": ["DRAIN"], "reason": effect.reason}
        await self._write("drain", client.node_update(effect.node, body))

    async def _undrain(self, effect: Undrain) -> None:
        client = self._slurm_client()
        try:
            node = await client.node(effect.node)
        except NotFound:
            return
        if not is_drain(node.states) or not is_ours(node.reason) or "INVALID_REG" in node.states:
            return
        if "DOWN" in node.states and is_older(node, effect.pod):
            return  # it went down meanwhile: with the drain its words would go, and nobody could tell whose end that was
        await self._write("undrain", client.node_update(effect.node, {"state": ["UNDRAIN"]}))

    async def _update(self, effect: UpdateNode) -> None:
        try:
            await self._write("node", self._slurm_client().node_update(effect.node, dict(effect.body)))
        except NotFound:
            return

    async def _forget(self, effect: DeleteRecord) -> None:
        client = self._slurm_client()
        try:
            node = await client.node(effect.node)
        except NotFound:
            return
        if is_busy(node.states) or not {"DOWN", "NOT_RESPONDING"} <= set(node.states):
            return
        await self._write("record", client.node_delete(effect.node))

    # -- deletions

    async def _deletes(self, world: World, deletes: Sequence[DeletePod], out: Outcome) -> None:
        asked = [d for d in deletes if not d.ended and not d.forced and d.pod.node and d.node]
        verdicts = await self._verdicts(world, asked)
        may: list[DeletePod] = []
        for effect in deletes:
            verdict = verdicts.get(effect.pod.meta.uid, yes(effect.why))
            if verdict.answer is Answer.YES:
                may.append(effect)
            else:
                out.note(f"keep pod {effect.pod.id.name}: {verdict.why}")
                out.retry = out.retry or f"pod {effect.pod.id.name}: {verdict.why}"
        await self._kube(out, may, lambda e: f"delete pod {e.pod.id.name}: {e.why}", lambda e: self._delete(world, e))

    async def _delete(self, world: World, effect: DeletePod) -> None:
        pod = effect.pod
        with self.expected.deleting(world.uid, pod.meta.uid):
            try:
                await self._write("delete", self.kube.delete(PODS, pod.id.namespace, pod.id.name, pod.meta.uid))
            except NotFound:
                self.expected.gone(world.uid, pod.meta.uid)

    async def _verdicts(self, world: World, deletes: Sequence[DeletePod]) -> Mapping[str, Verdict]:
        """A fresh look at each worker's node, and then at the jobs that a node does not show."""
        if not deletes:
            return {}
        try:
            client = self._slurm_client()
            nodes = await self._nodes(client, [d.node for d in deletes])
            quiet = await self._quiet_jobs(client)
        except SlinkyError as error:
            return {d.pod.meta.uid: unknown(error.line()) for d in deletes}
        out: dict[str, Verdict] = {}
        for effect in deletes:
            node = nodes.get(effect.node)
            if node is not None:
                out[effect.pod.meta.uid] = judge(node, quiet.get(effect.node, ()), effect.pod)
            elif effect.node in world.slurm.nodes:
                out[effect.pod.meta.uid] = unknown(f"Slurm no longer lists {effect.node}; looked at again")
            else:
                out[effect.pod.meta.uid] = yes(effect.why)
        return out

    async def _nodes(self, client: SlurmClient, names: Sequence[str]) -> dict[str, SlurmNode]:
        """The records of these nodes now; one that is not known is left out."""
        if len(names) > _ONE_BY_ONE:
            listing = await client.nodes()
            if listing.lost:
                raise SlinkyError(f"{listing.lost} node records could not be read", retryable=True)
            wanted = set(names)
            rows = [r for r in listing.rows if isinstance(r, SlurmNode)]
            return {r.id.name: r for r in rows if r.id.name in wanted}
        out: dict[str, SlurmNode] = {}
        for result in await self.slurm_pool.run_all(dict.fromkeys(names), client.node):
            if result.value is not None:
                out[result.item] = result.value
            elif not isinstance(result.error, NotFound):
                raise result.error or NotFound(f"node {result.item}")
        return out

    async def _quiet_jobs(self, client: SlurmClient) -> dict[str, tuple[Job, ...]]:
        """Jobs that hold nodes which Slurm calls idle: suspended and stopped ones."""
        held = [s for s in await client.jobs_state() if {"SUSPENDED", "STOPPED"} & set(s.states)]
        out: dict[str, tuple[Job, ...]] = {}
        for state in held:
            try:
                jobs = await client.job(state.text)
            except NotFound:
                continue
            for job in jobs:
                try:
                    names: Iterable[str] = expand(job.nodes, limit=100_000) if job.nodes else ()
                except HostlistError as error:
                    raise SlinkyError(f"the nodes of job {job.id} cannot be read: {error}", retryable=True) from error
                for name in names:
                    out[name] = (*out.get(name, ()), job)
        return out


def _applied(effect: Apply) -> str:
    return f"{'patch' if effect.exists else 'create'} {effect.plural} {effect.body['metadata']['name']}"


def _refused(held: Sequence[Mapping[str, Any]], refused: Sequence[str], now: float) -> list[Mapping[str, Any]]:
    """The conditions with the server's own words about what it did not take."""
    text = "; ".join(refused)[:1024]
    out = []
    for one in held:
        if one.get("type") != "Degraded":
            out.append(one)
            continue
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        since = one["lastTransitionTime"] if one.get("status") == "True" else stamp
        out.append({**one, "status": "True", "reason": "Refused", "message": text, "lastTransitionTime": since})
    return out
