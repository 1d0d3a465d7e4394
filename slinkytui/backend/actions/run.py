"""Runs a plan: bounded concurrency, on past single failures, each step in the journal before and after."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from slinkytui.backend.actions.registry import Scene
from slinkytui.backend.clusters import Clusters
from slinkytui.backend.errors import NotFound, SlinkyError
from slinkytui.backend.journal import Journal
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import NODESETS, PODS
from slinkytui.backend.models import Ask, Job, Plan, RunResult, Step, StepResult
from slinkytui.backend.slurm.client import SlurmClient, Written
from slinkytui.backend.slurm.states import is_pending

_AT_ONCE = 8

Do = Callable[[], Awaitable[str]]


async def run_plan(
    plan: Plan, scene: Scene, clusters: Clusters, kube: KubeClient | None, journal: Journal,
    progress: Callable[[StepResult], Awaitable[None]],
) -> RunResult:  # fmt: skip
    """The result of each step, in the plan's order."""
    actions = _actions(plan, scene, clusters, kube)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(at: int, step: Step) -> StepResult:
        if step.skip or step.refused:
            return StepResult(step.target, not step.refused, step.skip or step.refused, skipped=True)
        async with gate:
            result = await _do(plan, step, actions[at], journal)
        await progress(result)
        return result

    together = plan.steps[:-1] if plan.last_waits else plan.steps
    results = list(await asyncio.gather(*(one(at, step) for at, step in enumerate(together))))
    if plan.last_waits:
        failed = [r for r in results if not r.ok]
        last = plan.steps[-1]
        results.append(
            StepResult(last.target, False, f"not done: {failed[0].target} failed", skipped=True)
            if failed
            else await one(len(together), last)
        )
    return RunResult(plan.hash, plan.ask.verb, tuple(results))


async def _do(plan: Plan, step: Step, action: Do, journal: Journal) -> StepResult:
    entry = {
        "verb": plan.ask.verb,
        "target": step.target,
        "call": step.call,
        "plan": plan.hash,
        "inverse": plan.inverse,
    }
    journal.write({**entry, "phase": "begin", "reason": plan.ask.reason})
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        text, ok = await action(), True
    except SlinkyError as error:
        text, ok = error.line(), False
    took = int((loop.time() - began) * 1000)
    journal.write({**entry, "phase": "end", "ok": ok, "answer": text, "took_ms": took})
    return StepResult(step.target, ok, text, took)


def _actions(plan: Plan, scene: Scene, clusters: Clusters, kube: KubeClient | None) -> list[Do]:
    ask = plan.ask

    def nodes(body: dict[str, Any]) -> list[Do]:
        return [_slurm(clusters, n.id.cluster, partial(_node, n.id.name, body)) for n in scene.nodes(ask)]

    def jobs(call: Callable[[Job, SlurmClient], Awaitable[Written]]) -> list[Do]:
        return [_slurm(clusters, j.id.cluster, partial(call, j)) for j in scene.jobs(ask)]

    match ask.verb:
        case "node.drain":
            return nodes({"state": ["DRAIN"], "reason": ask.reason.strip()})
        case "node.undrain":
            return nodes({"state": ["UNDRAIN"]})
        case "job.cancel":
            return jobs(_cancel)
        case "job.hold":
            return jobs(lambda job, client: client.job_hold(job.raw_id))
        case "job.release":
            return jobs(lambda job, client: client.job_release(job.raw_id))
        case "nodeset.scale":
            return [*(_note(step, kube) for step in plan.steps[:-1]), _scale(ask, scene, kube)]
    raise NotFound(f"no verb {ask.verb}")


def _cancel(job: Job, client: SlurmClient) -> Awaitable[Written]:
    """What the plan called pending is cancelled only while it is: what has started since is spared by slurmctld."""
    text = str(job.id)
    return client.job_cancel_pending(text) if is_pending(job.states) else client.job_cancel(text)


def _node(name: str, body: dict[str, Any], client: SlurmClient) -> Awaitable[Written]:
    return client.node_update(name, body)


def _slurm(clusters: Clusters, cluster: str, write: Callable[[SlurmClient], Awaitable[Written]]) -> Do:
    async def do() -> str:
        client = clusters.client(cluster)
        if client is None:
            raise NotFound(f"Slurm cluster {cluster} is not connected")
        written = await write(client)
        return "; ".join(written.warnings) or "done"

    return do


def _note(step: Step, kube: KubeClient | None) -> Do:
    """The patch of a pod that a step says."""

    async def do() -> str:
        if kube is None:
            raise NotFound("no Kubernetes API server is connected")
        namespace, name = step.target.removeprefix("pod/").split("/")
        await kube.patch(PODS, namespace, name, json.loads(step.body))
        return "done"

    return do


def _scale(ask: Ask, scene: Scene, kube: KubeClient | None) -> Do:
    found = scene.nodeset(ask)

    async def do() -> str:
        if kube is None:
            raise NotFound("no Kubernetes API server is connected")
        replicas = int(ask.settings["replicas"])
        await kube.scale(NODESETS, found.id.namespace, found.id.name, replicas, found.nodeset.meta.version)
        return "done"

    return do
