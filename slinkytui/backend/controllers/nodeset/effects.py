"""Carries a decision out: one branch an effect, each isolated. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from slinkytui.backend.controllers.nodeset.decision import (
    Adopt,
    Apply,
    CreatePod,
    Decision,
    DeletePod,
    DeleteRecord,
    Drain,
    Effect,
    Finalizers,
    ForgetRevision,
    OwnClaim,
    PatchPod,
    PatchStatus,
    PodConditions,
    RankRevision,
    Tell,
    Undrain,
    UpdateNode,
)
from slinkytui.backend.controllers.nodeset.doubts import say_once
from slinkytui.backend.controllers.nodeset.drained import Answer, yes
from slinkytui.backend.controllers.nodeset.effects_kube import Builder, KubeHand, Nobody
from slinkytui.backend.controllers.nodeset.effects_owners import adopt, own_claim
from slinkytui.backend.controllers.nodeset.effects_slurm import SlurmHand
from slinkytui.backend.controllers.nodeset.outcome import Outcome, with_refusals
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.controllers.runtime.pool import Pool
from slinkytui.backend.errors import SlinkyError

__all__ = ["Builder", "Effects", "KubeHand", "Nobody", "Outcome", "SlurmHand"]

_AT_A_TIME: Final = 64
"""Repairs of Slurm records in one pass."""
E = TypeVar("E", bound=Effect)

Tells = Callable[[Tell], None]


@dataclass
class Effects:
    """`kube` and `slurm` write; the pools say how much at a time."""

    kube: KubeHand
    slurm: SlurmHand
    kube_pool: Pool
    tell: Tells
    reread: Callable[[list[str]], Coroutine[Any, Any, None]]
    """Reads Slurm nodes again after a write, so that the next look is not older than our own acts."""

    async def perform(self, world: World, decision: Decision) -> Outcome:
        """Everything in its order: workers that are made, notes, drains, deletions, lifted drains, repairs, status."""
        out, kube = Outcome(), self.kube
        by_kind: dict[type[Any], list[Any]] = {}
        for effect in decision.effects:
            by_kind.setdefault(type(effect), []).append(effect)

        def of(kind: type[E]) -> list[E]:
            return by_kind.get(kind, [])

        for finalizers in of(Finalizers):
            await self._one(out, "finalizers", kube.finalizers(world, finalizers))
        for told in of(Tell):
            self.tell(told)
        await self._kube(out, of(Apply), _applied, lambda e: kube.apply(world, e))
        await self._kube(
            out, of(RankRevision), lambda e: f"revision {e.name} is {e.number}", lambda e: kube.rank(world, e)
        )
        await self._kube(
            out, of(Adopt), lambda e: f"adopt {e.plural} {e.name}",
            lambda e: adopt(kube.kube, kube.gate, kube.expected, world, e),
        )  # fmt: skip
        await self._creates(world, of(CreatePod), out)
        await self._kube(out, of(PatchPod), lambda e: f"mark pod {e.pod.id.name}", lambda e: kube.mark(world, e))
        # A drain without its note would look like nobody's: where the note failed nothing further is done.
        drained = await self._slurm(
            out,
            [d for d in of(Drain) if d.pod.meta.uid not in out.failed],
            lambda e: f"drain {e.node}",
            self.slurm.drain,
        )
        # Nor does a worker go whose claims could not be given to it: they would stay behind.
        await self._kube(
            out, of(OwnClaim), lambda e: f"owner of claim {e.name}", lambda e: own_claim(kube.kube, kube.gate, world, e)
        )
        await self._deletes(world, [d for d in of(DeletePod) if d.pod.meta.uid not in out.failed], out)
        undrained = await self._slurm(out, of(Undrain), lambda e: f"undrain {e.node}", self.slurm.undrain)
        # What these nodes were before is no longer true: the next look tells what they are now, in one write.
        outdated = {e.pod.meta.uid for e in drained} | {e.pod.meta.uid for e in undrained}
        await self._kube(
            out,
            [c for c in of(PodConditions) if c.pod.meta.uid not in outdated],
            lambda e: f"conditions of pod {e.pod.id.name}",
            lambda e: kube.conditions(world, e),
        )
        await self._kube(
            out, of(ForgetRevision), lambda e: f"delete revision {e.name}", lambda e: kube.forget_revision(world, e)
        )
        await self._repairs(decision, out)
        await self._status(world, of(PatchStatus), out)
        return out

    async def _repairs(self, decision: Decision, out: Outcome) -> None:
        """What a Slurm record should say besides. It is in no hurry: some of it at a time, so that it keeps no drain or
        deletion waiting that the next look asks for. What Slurm refuses does not count: the others get their turn."""
        left = [e for e in decision.effects if isinstance(e, UpdateNode | DeleteRecord)]
        acted = [e.node for e in decision.effects if isinstance(e, Drain | Undrain)]
        changed = 0
        while left and changed < _AT_A_TIME and self.slurm.client is not None and not self.slurm.breaker.open:
            some, left = left[: _AT_A_TIME - changed], left[_AT_A_TIME - changed :]
            updates = [e for e in some if isinstance(e, UpdateNode)]
            changed += len(await self._slurm(out, updates, lambda e: f"update {e.node}: {e.what}", self.slurm.update))
            records = [e for e in some if isinstance(e, DeleteRecord)]
            changed += len(await self._slurm(out, records, lambda e: f"forget {e.node}: {e.why}", self.slurm.forget))
            acted += [e.node for e in some]
        touched = list(dict.fromkeys(acted))
        if touched and self.slurm.client is not None and not self.slurm.breaker.open:
            await self.reread(touched)
        out.more = bool(left) and changed > 0

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
                out.broken = True
                out.failed.add(pod.meta.uid)

    async def _slurm(
        self,
        out: Outcome,
        effects: Sequence[E],
        words: Callable[[E], str],
        act: Callable[[E], Coroutine[Any, Any, Any]],
    ) -> list[E]:
        """Those that went well."""
        if self.slurm.client is None:
            return []
        results = await self.slurm.pool.run_all(effects, act)
        for result in results:
            out.note(words(result.item), result.error)
        return [result.item for result in results if result.ok]

    async def _creates(self, world: World, creates: Sequence[CreatePod], out: Outcome) -> None:
        results = await self.kube_pool.run_all(creates, lambda new: self.kube.create(world, new), slow_start=True)
        out.broken |= not all(result.ok for result in results)
        for result in results:
            if result.begun:
                out.note(f"create pod {result.value or result.item.slot}", result.error)

    async def _deletes(self, world: World, deletes: Sequence[DeletePod], out: Outcome) -> None:
        asked = [d for d in deletes if not d.ended and not d.forced and d.pod.node and d.node]
        verdicts = await self.slurm.verdicts(world, asked)
        may: list[DeletePod] = []
        for effect in deletes:
            verdict = verdicts.get(effect.pod.meta.uid, yes(effect.why))
            if verdict.answer is Answer.YES:
                may.append(effect)
            else:
                out.note(f"keep pod {effect.pod.id.name}: {verdict.why}")
                out.retry = out.retry or f"pod {effect.pod.id.name}: {verdict.why}"
        await self._kube(
            out, may, lambda e: f"delete pod {e.pod.id.name}: {e.why}", lambda e: self.kube.delete(world, e)
        )

    async def _status(self, world: World, wanted: Sequence[PatchStatus], out: Outcome) -> None:
        """Last, so that it tells what the servers did not take; that is said once, also as an event."""
        status: dict[str, Any] = dict(wanted[-1].status if wanted else world.status)
        if out.broken:
            status["observedGeneration"] = world.status.get("observedGeneration")
            status = {k: v for k, v in status.items() if v is not None}
        if out.refused:
            held = world.status.get("conditions") or []
            status["conditions"] = with_refusals(
                status.get("conditions") or [], held, out.refused, self.kube.clock.now()
            )
            for told in say_once(world, "Refused", dict.fromkeys(out.refused[:5])):
                self.tell(told)
        if status != dict(world.status):
            await self._one(out, "status", self.kube.status(world, status))


def _applied(effect: Apply) -> str:
    return f"{'patch' if effect.exists else 'create'} {effect.plural} {effect.body['metadata']['name']}"
