"""The composition root: clients, pollers, the join, the verbs. One engine serves any number of readers.

Facts come from the clients into one store; the join makes the picture of them in another, which the readers see.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from slinkytui.backend.actions.registry import Scene, make_plan
from slinkytui.backend.actions.run import run_plan
from slinkytui.backend.clock import Clock, RealClock
from slinkytui.backend.clusters import Clusters
from slinkytui.backend.errors import ConfigError, NotAllowed, NotFound, PlanStale, SlinkyError, UsageError
from slinkytui.backend.feed import TYPES, VERSION, Hello, Pipe
from slinkytui.backend.fleet.facts import Facts, place
from slinkytui.backend.fleet.join import gpu_rows, join
from slinkytui.backend.heap import give_back
from slinkytui.backend.journal import Journal
from slinkytui.backend.kube.access import Access, load
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import BY_TABLE, WATCHED, Resource
from slinkytui.backend.kube.transport import KubeTransport
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import (
    Ask,
    Cluster,
    Decided,
    Explained,
    FleetNode,
    FleetNodeSet,
    JobId,
    Key,
    NodeId,
    NodeSet,
    OperatorView,
    Plan,
    Pod,
    Row,
    RowId,
    Source,
    Table,
)
from slinkytui.backend.options import Options
from slinkytui.backend.rights import Rights
from slinkytui.backend.server import FeedServer
from slinkytui.backend.simprocess import SimProcess, start_sim
from slinkytui.backend.store import Store

if TYPE_CHECKING:
    from slinkytui.backend.controllers.nodeset.observe import Observer
    from slinkytui.backend.onlooker import Onlooker

_SAME: Final = (
    Table.CLUSTERS, Table.SOURCES, Table.JOBS, Table.PARTITIONS, Table.RESERVATIONS, Table.PODS, Table.KUBENODES,
    Table.EVENTS, Table.CONTROLLERS, Table.LOGINSETS, Table.RESTAPIS, Table.ACCOUNTINGS, Table.TOKENS, Table.NAMESPACES,
    Table.OPERATORS,
)  # fmt: skip
"""Tables that the readers see as the clients gave them."""
POLLED: Final = (Table.NODES, Table.JOBS, Table.PARTITIONS, Table.RESERVATIONS)
"""Tables that come from Slurm as they are."""
_PAUSE_S: Final = 0.1
_TRIM_S: Final = 20.0
_DECIDE_S: Final = 5.0
_LARGE: Final = 5_000
"""From so many rows on a join is felt."""

log = logging.getLogger(__name__)


class _Switch(msgspec.Struct):
    context: str | None = None
    namespace: str | None = None


class Engine:
    """`reads` are the tables that somebody may ask for: others are not read at all. Slurm is found through Controllers
    and RestApis, so where it is read, these are too. `lazy`: the joined picture is only made while somebody reads."""

    def __init__(
        self, options: Options, clock: Clock | None = None, reads: Collection[Table] = frozenset(Table), *,
        lazy: bool = False,
    ) -> None:  # fmt: skip
        self.options = options
        self._reads, self._lazy = frozenset(reads), lazy
        self._slurm = tuple(t for t in POLLED if t in reads)
        self.watched: tuple[Resource, ...] = ()
        self.clock: Clock = clock or RealClock()
        self.facts, self.store = Store(), Store()
        self.access: Access | None = None
        self.kube: KubeClient | None = None
        self.clusters = Clusters(options, self.facts, self.clock, None, self._slurm)
        self.journal = Journal(options.journal, self.clock, options.actor)
        self.rights = Rights(self.clusters, None, self.facts, self.clock, read_only=options.read_only)
        self._note = ""
        self._onlooker: Onlooker | None = None
        self._deciding: asyncio.Task[None] | None = None
        self.operating: Callable[[], OperatorView] | None = None
        """What the operator of this engine does now, where there is one."""
        self._sim: SimProcess | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._servers: list[FeedServer] = []
        self._switching, self._joining = asyncio.Lock(), asyncio.Lock()
        self._since: dict[str, float] = {}
        self._trimmed = float("-inf")
        self._wanted: dict[Table, int] = {}
        self._joined = asyncio.Event()
        self._hurried = False
        """Somebody waits for the first whole picture: it is joined once, when all is there."""

    async def start(self) -> None:
        """Begin to look. Raises ConfigError when there is nothing to look at."""
        if self.options.sim:
            self._sim = await start_sim(self.options.sim, self.options.sim_speed)
            self.options = msgspec.structs.replace(
                self.options, kubeconfig=self._sim.kubeconfig, context="", slurm=(), token_file=""
            )
        try:
            self.access = load(self.options.kubeconfig, self.options.context)
        except ConfigError as error:
            if self.options.kubeconfig or self.options.context or not self.options.slurm:
                raise
            self._note = f"Slurm only: {error.title}"
        self._look(self.access)

    def look_through(self, kube: KubeClient) -> None:
        """Begin to look through a client that is there already, in place of `start`."""
        self._look(None, kube)

    def _look(self, access: Access | None, kube: KubeClient | None = None) -> None:
        """Begin to look at what the options name."""
        self.store.borrow(self.facts, _SAME)
        self.access = access
        self.kube = kube or (KubeClient(KubeTransport(access)) if access is not None else None)
        self.clusters = Clusters(self.options, self.facts, self.clock, self.kube, self._slurm)
        self.rights = Rights(self.clusters, self.kube, self.facts, self.clock, read_only=self.options.read_only)
        found = (Table.CONTROLLERS, Table.RESTAPIS) if self._slurm and not self.options.slurm else ()
        self.watched = tuple(r for r in WATCHED if r.table in self._reads.union(found))
        if self.kube is not None:
            note = access.server if access is not None else ""
            for resource in self.watched:
                scope = self.options.namespace if resource.namespaced else ""
                watcher = Watcher(self.kube, resource, self.facts, self.clock, namespace=scope, note=note)
                self._tasks.append(asyncio.create_task(watcher.run(), name=f"watch {resource.plural}"))
        if self._slurm:
            self.clusters.start_given()
        self._tasks.append(asyncio.create_task(self._keep_joined(), name="join"))

    async def _look_away(self) -> None:
        """Stop all that feeds the tables."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._deciding is not None:
            self._deciding.cancel()
            await asyncio.gather(self._deciding, return_exceptions=True)
        if self._onlooker is not None:
            await self._onlooker.close()
            self._onlooker = None
        await self.clusters.close()
        if self.kube is not None:
            await self.kube.close()

    async def close(self) -> None:
        await self._look_away()
        if self._sim is not None:
            await self._sim.close()

    async def serve(self, pipe: Pipe) -> None:
        """Serve one reader until it leaves."""
        server = FeedServer(self.store, pipe, self)
        self._servers.append(server)
        if self._lazy:
            await self._join()
        try:
            await server.run()
        finally:
            self._servers.remove(server)

    async def switch(self, context: str | None, namespace: str | None) -> Hello:
        """Look at another context or namespace (None keeps the present one). When the new one cannot be had, all
        stays as it was: raises ConfigError."""
        async with self._switching:
            options = msgspec.structs.replace(
                self.options,
                context=self.options.context if context is None else context,
                namespace=self.options.namespace if namespace is None else namespace,
            )
            access = self.access
            if context is not None:
                known = self.access.contexts if self.access else ()
                if context not in known:
                    near = get_close_matches(context, known, 1)
                    raise ConfigError(
                        f"no context {context!r}",
                        hint=f"did you mean {near[0]}?" if near else f"contexts: {', '.join(known)}",
                    )
                access = load(options.kubeconfig, options.context)
            # A join that is under way would bring the old picture back after it was cleared.
            async with self._joining:
                await self._look_away()
                self.options, self.facts, self._since = options, Store(), {}
                for table in Table:
                    if table != Table.JOURNAL and table not in _SAME:
                        await self.store.replace(table, "", [])
                self._look(access)
            for server in self._servers:
                await server.greet()
            return self.hello()

    async def settled(self, timeout_s: float = 30.0) -> None:
        """Wait until every source has answered or failed once and the picture shows it; for one-shot commands."""
        self._hurried = True
        try:
            async with asyncio.timeout(timeout_s):
                while not self._is_settled():
                    await self._joined.wait()
                    self._joined.clear()
        finally:
            self._hurried = False
        await self._join()

    def _is_settled(self) -> bool:
        sources = {
            k.name: s for k, s in self.store.rows(Table.SOURCES).items() if isinstance(s, Source) and isinstance(k, Key)
        }
        if self.access is not None:
            names = [f"kubernetes/{r.plural}" for r in self.watched]
            if any(n not in sources or sources[n].state == "starting" for n in names):
                return False
            if self._slurm:
                self.clusters.discover()
        for link in self.clusters.links.values():
            if not link.tried.is_set():
                return False
            if link.name and any(f"slurm/{link.name}/{t}" not in sources for t in self._slurm):
                return False
        return True

    async def _keep_joined(self) -> None:
        changes = self.facts.watch(Table)
        changes.wake.set()
        while True:
            await changes.wake.wait()
            changes.wake.clear()
            began = self.clock.monotonic()
            changes.take()
            if self._slurm:
                self.clusters.discover()
            self.clusters.follow_upgrades()
            if not self._hurried and (self._servers or not self._lazy):
                await self._join()
            self._joined.set()
            # The join may take a fifth of a core, whatever its size.
            await self.clock.sleep(max(_PAUSE_S, 4 * (self.clock.monotonic() - began)))

    def look(self) -> Facts:
        """The facts as they are now."""
        table = self.facts.rows
        names = tuple(c.name for c in table(Table.CLUSTERS).values() if isinstance(c, Cluster))
        return Facts(
            nodes=table(Table.NODES), jobs=table(Table.JOBS), pods=table(Table.PODS),  # type: ignore[arg-type]  # by table
            kubenodes=table(Table.KUBENODES), nodesets=table(Table.NODESETS),  # type: ignore[arg-type]
            controllers=table(Table.CONTROLLERS), sources=table(Table.SOURCES), clusters=names,  # type: ignore[arg-type]
        )  # fmt: skip

    async def _join(self) -> None:
        async with self._joining:
            await self._join_all()

    async def _join_all(self) -> None:
        facts, now = self.look(), self.clock.now()
        if facts.size < _LARGE or not self.store.rows(Table.NODES):
            # The first picture is waited for: beside the loop it would share its core with the first polls.
            picture = join(facts, now, self._since)
        else:
            # A join of 10,000 nodes takes 0.4 s: beside the loop, which answers calls and reads polls meanwhile.
            picture = await asyncio.to_thread(join, facts.held(), now, self._since)
            if self.clock.monotonic() - self._trimmed > _TRIM_S:
                self._trimmed = self.clock.monotonic()
                await asyncio.to_thread(give_back)
        await self.store.replace(Table.NODES, "", picture.nodes)
        await self.store.replace(Table.NODESETS, "", picture.nodesets)
        await self.store.replace(Table.PROBLEMS, "", picture.problems)
        if self._wanted.get(Table.GPUS):
            await self._join_gpus()

    async def _join_gpus(self) -> None:
        nodes = [n for n in self.store.rows(Table.NODES).values() if isinstance(n, FleetNode)]
        await self.store.replace(Table.GPUS, "", gpu_rows(nodes, place(self.look().jobs.values())))

    def wanted(self, table: Table, readers: int) -> None:
        if table == Table.JOURNAL and readers > 0:
            self.store.upsert(Table.JOURNAL, "", self.journal.tail())
        self._wanted[table] = self._wanted.get(table, 0) + readers
        if table == Table.DECISIONS and readers > 0 and (self._deciding is None or self._deciding.done()):
            self._deciding = asyncio.create_task(self._keep_deciding(), name="decisions")
        if table == Table.GPUS and readers > 0:
            nodes = [n for n in self.store.rows(Table.NODES).values() if isinstance(n, FleetNode)]
            self.store.upsert(Table.GPUS, "", gpu_rows(nodes, place(self.look().jobs.values())))

    def hello(self) -> Hello:
        return Hello(
            VERSION, self.access.context if self.access else "", self.options.namespace, "", self.options.sim,
            self.options.sim_speed, self.options.read_only,
            self.access.contexts if self.access else (), self._note,
        )  # fmt: skip

    async def answer(self, method: str, params: bytes, progress: Callable[[Any], Awaitable[None]]) -> Any:
        match method:
            case "plan":
                return await self.plan(msgspec.msgpack.decode(params, type=Ask))
            case "run":
                return await self.run(msgspec.msgpack.decode(params, type=Plan), progress)
            case "raw":
                table, row_id = msgspec.msgpack.decode(params, type=tuple[Table, bytes])
                return await self.raw(table, msgspec.msgpack.decode(row_id, type=TYPES[table][1]))
            case "rights":
                cluster, namespace = msgspec.msgpack.decode(params, type=tuple[str, str])
                return await self.rights.of(cluster, namespace)
            case "switch":
                asked = msgspec.msgpack.decode(params, type=_Switch)
                return await self.switch(asked.context, asked.namespace)
            case "explain":
                table, row_id = msgspec.msgpack.decode(params, type=tuple[Table, bytes])
                return await self.explain(table, msgspec.msgpack.decode(row_id, type=TYPES[table][1]))
            case "operator":
                return self.operating() if self.operating is not None else None
            case "refresh":
                for link in self.clusters.links.values():
                    if link.poller is not None:
                        link.poller.refresh()
                return None
            case _:
                raise UsageError(f"an engine knows no call {method!r}")

    async def explain(self, table: Table, row_id: RowId) -> Explained:
        """What an operator makes of a NodeSet, a worker pod or a Slurm node now. Raises NotFound for anything else."""
        from slinkytui.backend.controllers.nodeset.explain import explained

        key, subject = worker_of(table, row_id, self.store)
        return explained(await self._observer(), key, subject, self.clock.now())

    async def decisions(self) -> list[Decided]:
        """What the operator of this engine last decided; where none runs in it, what one would decide now."""
        if self.operating is not None:
            return [d for d in self.store.rows(Table.DECISIONS).values() if isinstance(d, Decided)]
        from slinkytui.backend.controllers.nodeset.explain import would

        observer = await self._observer()
        ids = [n.id for n in self.facts.rows(Table.NODESETS).values() if isinstance(n, NodeSet)]
        return [d for key in ids if (d := would(observer, key, self.clock.now())) is not None]

    async def _keep_deciding(self) -> None:
        """The decisions while somebody reads them and no operator of ours makes them."""
        while self._wanted.get(Table.DECISIONS) and self.operating is None:
            try:
                await self.store.replace(Table.DECISIONS, "would", await self.decisions())
            except SlinkyError as error:
                log.info("cannot look at what an operator would decide: %s", error.line())
            await self.clock.sleep(_DECIDE_S)

    async def _observer(self) -> Observer:
        from slinkytui.backend.onlooker import Onlooker

        if self.kube is None:
            raise NotFound("NodeSets come from Kubernetes, and there is none", hint="--kubeconfig FILE")
        if self._onlooker is None:
            self._onlooker = Onlooker(self.kube, self.facts, self.clusters, self.clock, self.options.namespace)
        return await self._onlooker.observer()

    async def plan(self, ask: Ask) -> Plan:
        """What a verb would do now, without doing it."""
        await self._join()
        return make_plan(ask, self._scene())

    def _scene(self) -> Scene:
        return Scene(self.store, self.clock.now(), self.options.namespace)

    async def run(self, plan: Plan, progress: Callable[[Any], Awaitable[None]]) -> Any:
        """Run a plan; refuses when its decisive inputs have changed."""
        if self.options.read_only:
            raise NotAllowed("started with --read-only")
        await self._join()
        now = make_plan(plan.ask, self._scene())
        if now.hash != plan.hash:
            raise PlanStale("the cluster has changed since this was planned", detail=now.summary, hint="plan again")
        result = await run_plan(now, self._scene(), self.clusters, self.kube, self.journal, progress)
        self._touch(plan)
        self.store.upsert(Table.JOURNAL, "", self.journal.tail())
        return result

    def _touch(self, plan: Plan) -> None:
        by_text: dict[str, list[RowId]] = {}
        for table in (Table.NODES, Table.JOBS):
            for row_id in self.store.rows(table):
                by_text.setdefault(str(row_id), []).append(row_id)
        for step in plan.todo:
            for row_id in by_text.get(step.target, ()):
                if isinstance(row_id, NodeId | JobId):
                    poller = self.clusters.poller(row_id.cluster)
                    if poller is not None:
                        poller.touch([row_id])

    async def raw(self, table: Table, row_id: RowId) -> str:
        """The object behind a row as YAML, read now."""
        found: Any = None
        resource = BY_TABLE.get(table)
        if resource is not None and self.kube is not None and isinstance(row_id, Key):
            found = await self.kube.get(resource, row_id.namespace, row_id.name)
        elif isinstance(row_id, NodeId | JobId) or table in (Table.PARTITIONS, Table.RESERVATIONS):
            cluster = row_id[0]
            client = self.clusters.client(str(cluster))
            if client is None:
                raise NotFound(f"no client of the cluster {cluster}")
            kind = str(table)[:-1]
            found = await client.raw(
                f"{kind}/{row_id[1] if not isinstance(row_id, JobId) else row_id}", str(table), f"{kind} {row_id}"
            )
        if found is None:
            raise NotFound(f"{table} have no raw object")
        return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120)


def rows_of(engine: Engine, table: Table) -> list[Row]:
    """The rows of a table of the picture, for faces in the engine's own process."""
    return list(engine.store.rows(table).values())


def worker_of(table: Table, row_id: RowId, store: Store) -> tuple[Key, str]:
    """The NodeSet behind a row, and its pod's name ("" for the NodeSet itself)."""
    row = store.get(table, row_id)
    match row:
        case FleetNodeSet():
            return row.id, ""
        case Pod() if row.meta.owner_kind == "NodeSet":
            return Key(row.id.namespace, row.meta.owner_name), row.id.name
        case FleetNode(pod=Key() as pod, nodeset=Key() as nodeset):
            return nodeset, pod.name
    raise NotFound(f"{row_id} is no worker of a NodeSet")
