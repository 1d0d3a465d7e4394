"""The operator: an engine's eyes, the controllers, and the lease without which nothing is written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.gated import GatedTransport, put_off
from slinkytui.backend.controllers.leases import KubeLease, identity
from slinkytui.backend.controllers.nodeset.controller import Clients, NodeSetController
from slinkytui.backend.controllers.nodeset.observe import Settings
from slinkytui.backend.controllers.recorder import KubeEvents
from slinkytui.backend.controllers.references import References
from slinkytui.backend.controllers.runtime.controller import Controller
from slinkytui.backend.controllers.runtime.events import Recorder
from slinkytui.backend.controllers.runtime.gate import Alone, Gate
from slinkytui.backend.controllers.runtime.lease import Elector, Timings
from slinkytui.backend.controllers.runtime.manager import Manager
from slinkytui.backend.controllers.runtime.outcome import Outcome
from slinkytui.backend.controllers.runtime.pool import Bounds, Limiter, Pool
from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import ConfigError, Conflict, Unreachable
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import LEASES, OPERATED
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import Key, Operator, OperatorView, QueueLine, RowId, Table
from slinkytui.backend.onlooker import Rows, Whole
from slinkytui.backend.store import Changes, Store

_LEASES_S: Final = 30.0
QUICK_S: Final = 1.5
"""How often nodes are asked for while a worker drains: conditional, so that it costs nothing while nothing changes."""
_FACTS: Final = (Table.PODS, Table.KUBENODES, Table.NODES, Table.JOBS, Table.SOURCES, Table.CLUSTERS)
_NEEDED: Final = ("pods", "nodes", "controllers", "restapis")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OperatorOptions:
    """What the daemon's flags say. `namespace` is where the lease is kept; `workers` NodeSets are worked on at a time."""

    namespace: str = "slinky"
    leader_elect: bool = True
    take_over: bool = False
    workers: int = 4
    settings: Settings = field(default_factory=Settings)
    timings: Timings = field(default_factory=Timings)


class _Wakes:
    """Turns changes of the stores into keys of the queue, leading or not."""

    name = "wakes"

    def __init__(self, stores: Iterable[tuple[Store, tuple[Table, ...]]], operator: Operate) -> None:
        self._stores, self._operator = tuple(stores), operator
        self._tasks: list[asyncio.Task[None]] = []
        self._changes: list[tuple[Store, Changes]] = []

    async def start(self) -> None:
        for store, tables in self._stores:
            changes = store.watch(tables)
            self._changes.append((store, changes))
            self._tasks.append(asyncio.create_task(self._run(changes), name="wakes"))

    async def synced(self) -> None:
        """It has nothing of its own to wait for."""

    def unsynced(self) -> str:
        return next((f"ended: {t.exception()!r}" for t in self._tasks if t.done() and not t.cancelled()), "")

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for store, changes in self._changes:
            store.unwatch(changes)

    async def _run(self, changes: Changes) -> None:
        while True:
            await changes.wake.wait()
            changes.wake.clear()
            self._operator.changed(changes.take())
            # Changes come in bursts: a pass over one of a hundred pods that are being made tells little.
            await self._operator.clock.sleep(0.02)


class _Anew:
    """With each term of leadership nothing is expected any more: another process wrote meanwhile."""

    def __init__(self, nodesets: NodeSetController) -> None:
        self._nodesets = nodesets

    def start(self) -> None:
        self._nodesets.expected.clear()

    async def stop(self, grace_s: float) -> bool:
        return True


async def leases_known(engine: Engine) -> None:
    """Wait until the operators' leases have been read, or cannot be. Raises Unreachable without any answer."""
    leases = Rows(engine.facts, LEASES.plural)
    try:
        await asyncio.wait_for(leases.answered(), _LEASES_S)
    except TimeoutError:
        raise Unreachable(f"no answer about the operators' leases within {_LEASES_S:.0f} s") from None


class Operate:
    """`engine` has been started and looks at Kubernetes. `run` works until `stop`."""

    def __init__(self, engine: Engine, options: OperatorOptions, *, name: str = "") -> None:
        if engine.kube is None:
            raise ConfigError("an operator needs a Kubernetes API server", hint="--kubeconfig FILE, or run it in a pod")
        self.engine, self.options, self.clock = engine, options, engine.clock
        self.identity = name or f"slinkytui-{identity()}"
        clock: Clock = engine.clock
        self.held = Store()
        io = KubeLease(engine.kube, options.namespace)
        self.elector = Elector(io, self.identity, clock, timings=options.timings) if options.leader_elect else None
        gate = Gate(self.elector or Alone(), clock)
        kube = KubeClient(GatedTransport(engine.kube.transport, gate))
        self.recorder = Recorder(KubeEvents(kube, "nodeset-controller", self.identity), clock)
        self._pools: dict[str, Pool] = {}
        engine.operating = self.view
        clients = Clients(kube, gate, Pool(Limiter(clock), clock, put_off), self._slurm_pool)
        references = References(engine.kube, clock, self._referred)
        self.nodesets = NodeSetController(
            engine.facts, self.held, engine.clusters, clients, self.recorder, clock, engine.store, options.settings, references
        )  # fmt: skip
        self.controller: Controller[Key] = Controller(
            "nodeset-controller", self._reconcile, clock, workers=options.workers, keys=self.nodesets.keys
        )
        self.manager = Manager(
            clock, sources=(*self._sources(), references, self._wakes()), elector=self.elector, controllers=(self.controller,),
            helpers=(_Anew(self.nodesets), self.recorder),
        )  # fmt: skip

    def _sources(self) -> list[Rows]:
        engine, out = self.engine, [Rows(self.engine.facts, p) for p in _NEEDED]
        assert engine.kube is not None
        for resource in OPERATED:
            watcher = Watcher(engine.kube, resource, self.held, self.clock, namespace=engine.options.namespace)
            out.append(Whole(watcher, self.held, resource.plural))
        return out

    def _wakes(self) -> _Wakes:
        whole = tuple(r.table for r in OPERATED if r.table is not None)
        return _Wakes(((self.engine.facts, _FACTS), (self.held, whole)), self)

    def view(self) -> OperatorView:
        """What it does now."""
        held = self.elector.view() if self.elector is not None else None
        queue = tuple(
            QueueLine(str(q.key), str(q.state), q.since, q.due_in, q.retries, q.error)
            for q in self.controller.queue.table()
        )
        return OperatorView(
            self.identity, str(self.manager.phase), held.holder if held else "no lease is asked for", held.error if held else "",
            self.manager.terms, self.controller.workers, queue,
            tuple((str(k), i) for k, i in self.controller.active.items()), tuple(self.controller.stats.results.items()),
            tuple(f"{name}: {why}" for name, why in self.manager.unready().items()),
        )  # fmt: skip

    def _slurm_pool(self, cluster: str) -> Pool:
        """One a cluster: a slurmrestd that is slow holds up nobody else's NodeSets."""
        if cluster not in self._pools:
            self._pools[cluster] = Pool(Limiter(self.clock, Bounds(start=16, least=2, most=32)), self.clock)
        return self._pools[cluster]

    def changed(self, changed: Mapping[Table, set[RowId]]) -> None:
        """Wake whom a change concerns."""
        for key in self.nodesets.woken(changed):
            self.controller.queue.add(key)

    def _referred(self, ref: Key) -> None:
        """A Secret that somebody of its namespace refers to has changed."""
        for key in filter(lambda k: k.namespace == ref.namespace, self.nodesets.keys()):
            self.controller.queue.add(key)

    async def _reconcile(self, key: Key) -> Outcome:
        try:
            return await self.nodesets.reconcile(key)
        finally:
            self._hasten()

    def _hasten(self) -> None:
        """While a worker drains or is to register, its cluster's nodes are asked for more often."""
        waiting = set(self.nodesets.hurried.values())
        for link in self.engine.clusters.links.values():
            if link.poller is not None:
                link.poller.hasten(Table.NODES, QUICK_S if link.name in waiting else None)

    def check_alone(self) -> None:
        """Raise Conflict beside another operator that is alive, unless told to take over."""
        if self.options.take_over:
            return
        now = self.clock.now()
        for row_id, row in self.engine.facts.rows(Table.OPERATORS).items():
            if not isinstance(row, Operator) or not isinstance(row_id, Key) or not row.holder:
                continue
            alive = row.renewed is not None and row.duration_s is not None and now < row.renewed + row.duration_s
            if alive and row_id.namespace != self.options.namespace:
                raise Conflict(
                    f"another operator is alive: lease {row_id} is held by {row.holder}",
                    hint=f"--lease-namespace {row_id.namespace} waits for its end; --take-over starts beside it",
                )

    async def run(self) -> None:
        """Until `stop`; the lease is given up at the end."""
        await self.manager.run()

    def stop(self) -> None:
        self.manager.stop()
