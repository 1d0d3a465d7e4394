"""Rows of a Kubernetes cluster: only what a screen, the fleet or a verb reads. The raw object is fetched on demand.

Times are Unix seconds. `version` is the resourceVersion, the precondition of a patch.
"""

from __future__ import annotations

from slinkytui.backend.models.base import Row
from slinkytui.backend.models.ids import Key

Labels = tuple[tuple[str, str], ...]
"""Labels or annotations as sorted pairs."""


class Meta(Row, frozen=True):
    uid: str = ""
    version: str = ""
    generation: int | None = None
    created: int | None = None
    deleted: int | None = None
    labels: Labels = ()
    annotations: Labels = ()
    owner_kind: str = ""
    owner_name: str = ""
    owner_uid: str = ""
    finalizers: tuple[str, ...] = ()


class Manifest(Row, frozen=True):
    """A whole object, as the server gave it: for resources of which there are few and every field counts."""

    id: Key
    meta: Meta
    body: bytes


class Condition(Row, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: int | None = None


class ContainerState(Row, frozen=True):
    """`state` is running, waiting or terminated; `reason` what kubectl would print (CrashLoopBackOff)."""

    name: str
    ready: bool = False
    restarts: int = 0
    state: str = ""
    reason: str = ""
    exit_code: int | None = None
    since: int | None = None
    image: str = ""
    init: bool = False


class Pod(Row, frozen=True):
    """`pinned` is the one node that a required affinity names."""

    id: Key
    meta: Meta
    phase: str = ""
    reason: str = ""
    node: str = ""
    pod_ip: str = ""
    host_ip: str = ""
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    started: int | None = None
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerState, ...] = ()
    pinned: str = ""
    base: str = ""
    """metadata.generateName."""


class KubeNode(Row, frozen=True):
    """`taints` are kubectl's spelling: key=value:Effect. `gpus` is allocatable nvidia.com/gpu (or amd.com/gpu)."""

    id: Key
    meta: Meta
    unschedulable: bool = False
    taints: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()
    cpu: str = ""
    memory: str = ""
    gpus: int | None = None
    kubelet: str = ""
    os_image: str = ""


class NodeSet(Row, frozen=True):
    """A NodeSet custom resource. `controller` is the Controller it belongs to (namespace defaults to its own)."""

    id: Key
    meta: Meta
    controller: Key
    scaling_mode: str = "StatefulSet"
    replicas: int | None = None
    partition_enabled: bool | None = None
    host_network: bool = False
    ordinal_padding: int | None = None
    update_strategy: str = ""
    image: str = ""
    extra_conf: str = ""
    selector: str = ""
    status_replicas: int | None = None
    status_desired: int | None = None
    status_updated: int | None = None
    status_ready: int | None = None
    status_available: int | None = None
    status_unavailable: int | None = None
    slurm_idle: int | None = None
    slurm_allocated: int | None = None
    slurm_down: int | None = None
    slurm_drain: int | None = None
    conditions: tuple[Condition, ...] = ()


class Controller(Row, frozen=True):
    """`secret`/`secret_key` name the JWT HS256 key: of spec.jwtKeyRef (or the older jwtHs256KeyRef)."""

    id: Key
    meta: Meta
    cluster_name: str = ""
    external: bool = False
    external_host: str = ""
    jwt_secret: str = ""
    jwt_secret_key: str = ""
    image: str = ""
    conditions: tuple[Condition, ...] = ()


class LoginSet(Row, frozen=True):
    id: Key
    meta: Meta
    controller: Key
    replicas: int | None = None
    status_replicas: int | None = None
    conditions: tuple[Condition, ...] = ()


class RestApi(Row, frozen=True):
    id: Key
    meta: Meta
    controller: Key
    replicas: int | None = None
    service: str = ""
    port: int | None = None
    conditions: tuple[Condition, ...] = ()


class Accounting(Row, frozen=True):
    """`external_host` is set when slurmdbd runs elsewhere; `storage` is the database it uses."""

    id: Key
    meta: Meta
    external_host: str = ""
    storage: str = ""
    image: str = ""
    conditions: tuple[Condition, ...] = ()


class Token(Row, frozen=True):
    """A Slurm token that an operator keeps: for `user`, in `secret`; `lifetime` as written (like 24h)."""

    id: Key
    meta: Meta
    user: str = ""
    lifetime: str = ""
    refresh: bool | None = None
    secret: str = ""
    issued: int | None = None
    conditions: tuple[Condition, ...] = ()


class Namespace(Row, frozen=True):
    id: Key
    meta: Meta
    phase: str = ""


class Operator(Row, frozen=True):
    """Who holds the operator's lease: `renewed` and `duration_s` tell whether it is alive (Unix seconds, seconds)."""

    id: Key
    holder: str = ""
    renewed: int | None = None
    duration_s: int | None = None

    def words(self, now: float) -> str:
        """Who operates, in a word or two."""
        if not self.holder:
            return "nobody"
        name = "slinkytui" if self.holder.startswith("slinkytui") else "upstream"
        pod = self.holder.partition("_")[0]
        if self.renewed is None or self.duration_s is None:
            return f"{name} {pod}, since when unknown"
        return f"{name} {pod}" if now < self.renewed + self.duration_s else f"nobody, {pod} has gone"


class Event(Row, frozen=True):
    """`about` is Kind/name of the object that the event regards."""

    id: Key
    about_kind: str
    about_namespace: str
    about_name: str
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 1
    first: int | None = None
    last: int | None = None
    reporter: str = ""


class Budget(Row, frozen=True):
    """A PodDisruptionBudget, as far as an eviction plan needs it."""

    id: Key
    selector: str = ""
    allowed: int | None = None
    current_healthy: int | None = None
    desired_healthy: int | None = None
