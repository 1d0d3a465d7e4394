"""Rows of the joined picture: what both worlds say of one thing. Made by `backend.fleet`, read by every face."""

from __future__ import annotations

from enum import StrEnum

from slinkytui.backend.models.base import Row
from slinkytui.backend.models.ids import GpuId, JobId, Key, NodeId
from slinkytui.backend.models.kube import NodeSet
from slinkytui.backend.models.slurm import SlurmNode


class Source(Row, frozen=True):
    """How fresh a stream of data is. `name` is "kubernetes/pods" or "slurm/CLUSTER/jobs"; times are Unix seconds.

    `state` is one of starting, live, stale, refused, absent; `period_s` how often an answer is due at most;
    `note` tells how the server was reached and why. `error` is the last failure, empty when the last try worked.
    """

    name: str
    state: str
    last_success: float | None = None
    last_error: float | None = None
    error: str = ""
    period_s: float | None = None
    rows: int | None = None
    took_s: float | None = None
    note: str = ""

    @property
    def id(self) -> Key:
        return Key("", self.name)


class Cluster(Row, frozen=True):
    """A Slurm cluster: where it was found and how it is reached. `missing` maps a verb to why this release lacks it."""

    name: str
    url: str = ""
    found: str = ""
    release: str = ""
    api_version: str = ""
    user: str = ""
    controller: Key | None = None
    error: str = ""
    missing: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> Key:
        return Key("", self.name)


class JournalEntry(Row, frozen=True):
    """A step that was done, or only begun (`ok` None: the answer was never written). `number` is where
    its line begins in the journal."""

    number: int
    at: float
    who: str = ""
    verb: str = ""
    target: str = ""
    ok: bool | None = None
    answer: str = ""
    reason: str = ""
    plan: str = ""
    call: str = ""
    took_ms: int | None = None

    @property
    def id(self) -> Key:
        return Key("", str(self.number))


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Problem(Row, frozen=True):
    """Something that needs a person: a disagreement of the two worlds or a fault of one. `since` is when it was first
    seen (Unix seconds), never later than the data that shows it."""

    key: str
    severity: Severity
    kind: str
    text: str
    since: float | None = None
    node: NodeId | None = None
    pod: Key | None = None
    nodeset: Key | None = None
    job: JobId | None = None
    source: str = ""

    @property
    def id(self) -> Key:
        return Key("", self.key)


class FleetNode(Row, frozen=True):
    """A Slurm node with its relatives.

    `slurm` is None for a pod of a NodeSet whose node Slurm does not know; `k8s` is the Kubernetes side in a
    word or two ("Ready", "cordoned", "NotReady 3m", "" when there is none). `gpu_cells` has one letter a device:
    u used, f free, s shared (partly taken by shards), ? unknown. `jobs` are the jobs on it (running or completing).
    `match` tells how the pod was found (label, comment, name); `unmatched` why none was.
    """

    id: NodeId
    slurm: SlurmNode | None
    pod: Key | None = None
    nodeset: Key | None = None
    kubenode: str = ""
    k8s: str = ""
    k8s_since: int | None = None
    pod_ready: bool | None = None
    cordoned: bool | None = None
    deleting: bool = False
    gpu_type: str = ""
    gpus_total: int | None = None
    gpus_used: int | None = None
    gpu_cells: str = ""
    jobs: tuple[JobId, ...] | None = None
    users: tuple[str, ...] = ()
    disagreement: str = ""
    disagrees_since: float | None = None
    match: str = ""
    unmatched: str = ""


class FleetNodeSet(Row, frozen=True):
    """A NodeSet with the figures of its nodes. Counts are None where the source behind them does not answer."""

    id: Key
    nodeset: NodeSet
    cluster: str = ""
    want: int | None = None
    have: int | None = None
    ready: int | None = None
    nodes: int | None = None
    idle: int | None = None
    mixed: int | None = None
    allocated: int | None = None
    draining: int | None = None
    drained: int | None = None
    down: int | None = None
    jobs: int | None = None
    gpus_total: int | None = None
    gpus_used: int | None = None
    gpus_free: int | None = None
    whole_free_nodes: int | None = None
    note: str = ""
    disagreement: str = ""


class Gpu(Row, frozen=True):
    """One device. `counted` is true where Slurm gives no index and the device was assigned by count.

    `state` is used, free, shared, drained, down or unknown.
    """

    id: GpuId
    type: str = ""
    state: str = "unknown"
    job: JobId | None = None
    user: str = ""
    counted: bool = False
    nodeset: Key | None = None
    node_state: str = ""
