"""Which verbs may be done where, before anybody tries: what is not known to be allowed has a reason, not a yes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinkytui.backend.clock import Clock
from slinkytui.backend.clusters import Clusters
from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import NODESETS, Resource
from slinkytui.backend.models import Source, Table
from slinkytui.backend.store import Store

_HOLDS_S: Final = 60.0


@dataclass(frozen=True)
class Need:
    """What a verb asks of Kubernetes: `verb` on `resource`, or its subresource."""

    verb: str
    resource: Resource
    sub: str = ""


KUBERNETES: Final = {"nodeset.scale": Need("patch", NODESETS, "scale")}
SLURM: Final = ("node.drain", "node.undrain", "job.cancel", "job.hold", "job.release")


class Rights:
    """Asks the API server once a minute; Slurm tells what its release lacks, and refuses the rest itself."""

    def __init__(
        self, clusters: Clusters, kube: KubeClient | None, facts: Store, clock: Clock, *, read_only: bool
    ) -> None:
        self._clusters, self._kube, self._facts, self._clock = clusters, kube, facts, clock
        self._read_only = read_only
        self._held: dict[tuple[str, str], tuple[float, str]] = {}

    async def of(self, cluster: str, namespace: str) -> dict[str, str]:
        """Verb → why it is refused; "" for those that may be done. Without a cluster or namespace those verbs are left out."""
        if self._read_only:
            return dict.fromkeys((*KUBERNETES, *SLURM), "started with --read-only")
        out: dict[str, str] = {}
        if cluster:
            reason = self._slurm(cluster)
            client = self._clusters.client(cluster)
            lacks = client.missing() if client is not None else {}
            out.update({verb: reason or lacks.get(verb, "") for verb in SLURM})
        if namespace:
            for verb, need in KUBERNETES.items():
                out[verb] = await self._kubernetes(verb, need, namespace)
        return out

    def _slurm(self, cluster: str) -> str:
        if self._clusters.client(cluster) is None:
            return f"slurmrestd of {cluster} is not reached"
        quiet = [
            s
            for s in self._facts.rows(Table.SOURCES).values()
            if isinstance(s, Source) and s.name.startswith(f"slurm/{cluster}/") and s.state in ("stale", "refused")
        ]
        return f"slurmrestd of {cluster} does not answer: {quiet[0].error}" if quiet else ""

    async def _kubernetes(self, verb: str, need: Need, namespace: str) -> str:
        if self._kube is None:
            return "no Kubernetes API server is connected"
        now = self._clock.monotonic()
        at, held = self._held.get((verb, namespace), (float("-inf"), ""))
        if now - at < _HOLDS_S:
            return held
        what = f"{need.verb} {need.resource.plural}{'/' + need.sub if need.sub else ''} in {namespace}"
        try:
            allowed, why = await self._kube.may(need.verb, need.resource, namespace, need.sub)
        except SlinkyError as error:
            return f"not known whether you may {what}: {error.line()}"
        reason = "" if allowed else f"no right to {what}{f' ({why})' if why else ''}"
        self._held[verb, namespace] = (now, reason)
        return reason
