"""Finds the Slurm clusters of an engine, keeps a poller on each, and says how each was reached and why.

A cluster whose REST is away holds up nobody else's.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import os
from collections.abc import Collection
from dataclasses import dataclass, field

from slinkytui.backend.clock import Clock
from slinkytui.backend.errors import ConfigError, NotAllowed, NotFound, SlinkyError
from slinkytui.backend.http import Transport
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import SECRETS
from slinkytui.backend.models import Cluster, Controller, Key, RestApi, Source, Table
from slinkytui.backend.options import Options
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.poller import SlurmPoller
from slinkytui.backend.slurm.tokens import FileToken, MintedToken, StaticToken, Tokens
from slinkytui.backend.slurm.transport import HttpxTransport
from slinkytui.backend.store import Store

RETRY_S = (1.0, 2.0, 5.0, 10.0, 20.0)

log = logging.getLogger(__name__)


@dataclass
class Link:
    """One cluster being looked at. `client` is usable once `name` is known."""

    label: str
    url: str
    found: str
    task: asyncio.Task[None] | None = None
    client: SlurmClient | None = None
    poller: SlurmPoller | None = None
    name: str = ""
    controller: Key | None = None
    tried: asyncio.Event = field(default_factory=asyncio.Event)


class Clusters:
    def __init__(
        self,
        options: Options,
        facts: Store,
        clock: Clock,
        kube: KubeClient | None,
        tables: Collection[Table] = tuple(Table),
    ) -> None:
        self._tables = tables
        self._options, self._facts, self._clock, self._kube = options, facts, clock, kube
        self.links: dict[str, Link] = {}

    def start_given(self) -> None:
        """Those that were named with --slurm."""
        for text in self._options.slurm:
            owner, sep, url = text.partition("=")
            if not sep or "://" in owner:
                owner, url = "", text
            controller = Key(*owner.split("/", 1)) if "/" in owner else None
            self._start(
                Link(f"given/{url}", url, "given with --slurm", controller=controller),
                HttpxTransport(url, ca_file=self._options.ca_file),
            )

    def discover(self) -> None:
        """Follow the Controller and RestApi resources: the oldest RestApi of a Controller is its way in."""
        if self._options.slurm or self._kube is None:
            return
        apis = [r for r in self._facts.rows(Table.RESTAPIS).values() if isinstance(r, RestApi)]
        controllers = [c for c in self._facts.rows(Table.CONTROLLERS).values() if isinstance(c, Controller)]
        wanted: dict[str, tuple[RestApi, Controller]] = {}
        for controller in controllers:
            mine = sorted((r for r in apis if r.controller == controller.id), key=lambda r: (r.meta.created or 0, r.id))
            if mine:
                wanted[f"restapi/{mine[0].id}"] = (mine[0], controller)
        for label in [label for label in self.links if label not in wanted]:
            self._end(label)
        for label, (api, controller) in wanted.items():
            if label not in self.links:
                link = Link(label, f"{api.service}.{api.id.namespace}:{api.port}", "", controller=controller.id)
                self._start(link, self._way(link, api))

    def _way(self, link: Link, api: RestApi) -> Transport:
        assert self._kube is not None  # discover() runs with Kubernetes only
        port = api.port or 6820
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            link.found = f"RestApi {api.id}, in the cluster"
            return HttpxTransport(f"http://{api.service}.{api.id.namespace}:{port}")
        link.found = f"RestApi {api.id}, through the API server's service proxy"
        return self._kube.service(api.id.namespace, api.service, port)

    def _start(self, link: Link, transport: Transport) -> None:
        self.links[link.label] = link
        link.task = asyncio.create_task(self._run(link, transport), name=f"cluster {link.label}")

    def _end(self, label: str) -> None:
        link = self.links.pop(label)
        if link.task is not None:
            link.task.cancel()
        if link.name:
            self._facts.drop(link.name)
            self._facts.remove(Table.CLUSTERS, "", [Key("", link.name)])

    async def close(self) -> None:
        tasks = [link.task for link in self.links.values() if link.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, link: Link, transport: Transport) -> None:
        try:
            client = await self._connect(link, transport)
            link.poller = SlurmPoller(client, self._facts, self._clock, note=link.found, tables=self._tables)
            await link.poller.run()
        finally:
            with contextlib.suppress(OSError):
                await transport.close()

    async def _connect(self, link: Link, transport: Transport) -> SlurmClient:
        failures = 0
        while True:
            try:
                client = SlurmClient(transport, await self._tokens(link), self._clock)
                await client.probe()
            except SlinkyError as error:
                log.info("%s: %s", link.label, error.line())
                name = f"slurm/{self._label(link)}"
                state = "refused" if isinstance(error, NotAllowed) else "stale"
                self._facts.source(Source(name, state, None, self._clock.now(), error.line(), note=link.found))
                link.tried.set()
                await self._clock.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1
                continue
            self._facts.remove(Table.SOURCES, "", [Key("", f"slurm/{self._label(link)}")])
            link.client, link.name = client, client.cluster
            self._tell(link)
            link.tried.set()
            return client

    def _label(self, link: Link) -> str:
        return str(link.controller) if link.controller else link.url

    async def _tokens(self, link: Link) -> Tokens:
        if self._options.token_file:
            return FileToken(self._options.token_file)
        if os.environ.get("SLURM_JWT"):
            return StaticToken(os.environ["SLURM_JWT"])
        controller = self._facts.get(Table.CONTROLLERS, link.controller) if link.controller else None
        if isinstance(controller, Controller) and self._kube is not None and controller.jwt_secret:
            secret = await self._kube.get(SECRETS, controller.id.namespace, controller.jwt_secret)
            data = (secret.get("data") or {}).get(controller.jwt_secret_key)
            if not data:
                raise NotFound(f"secret {controller.jwt_secret} has no key {controller.jwt_secret_key!r}")
            return MintedToken(base64.b64decode(data), "slurm", self._clock)
        raise ConfigError("no Slurm token", hint="--token-file FILE, or SLURM_JWT=$(scontrol token)")

    def follow_upgrades(self) -> None:
        """Bring the clusters' rows up to date: a server may have been upgraded under a client."""
        for link in self.links.values():
            if link.name:
                self._tell(link)

    def _tell(self, link: Link) -> None:
        client = link.client
        if client is not None:
            self._facts.upsert(Table.CLUSTERS, "", [Cluster(
                client.cluster, link.url, link.found, client.release, client.version, client.user, link.controller,
                missing=tuple(sorted(client.missing().items())),
            )])  # fmt: skip

    def client(self, cluster: str) -> SlurmClient | None:
        return next((link.client for link in self.links.values() if link.name == cluster), None)

    def poller(self, cluster: str) -> SlurmPoller | None:
        return next((link.poller for link in self.links.values() if link.name == cluster), None)
