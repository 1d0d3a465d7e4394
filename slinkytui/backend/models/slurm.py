"""Rows of a Slurm cluster, one canonical shape for all REST versions.

Units: memory in MiB, times as Unix seconds, durations as said in the name. `flagged` holds the reason
when a record could only be read in part (the row is then shown with that warning).
"""

from __future__ import annotations

from slinkytui.backend.models.base import Row
from slinkytui.backend.models.ids import JobId, NodeId, SlurmName


class Gres(Row, frozen=True):
    """One GRES entry of a node or job: `gpu:h100:8(IDX:0-3)`.

    `indices` is None where Slurm gives none; `per_device` is (used, total) of each device of a shared GRES
    (`shard:8(3/8,0/8)`), a used of -1 where an exclusive job holds the whole device.
    """

    name: str
    type: str = ""
    count: int = 0
    indices: tuple[int, ...] | None = None
    sockets: str = ""
    per_device: tuple[tuple[int, int], ...] = ()
    no_consume: bool = False


class SlurmNode(Row, frozen=True):
    """A node as slurmctld sees it. `states` is the raw set in upper case, base state included."""

    id: NodeId
    states: tuple[str, ...]
    reason: str = ""
    reason_user: str = ""
    reason_time: int | None = None
    hostname: str = ""
    address: str = ""
    features: tuple[str, ...] = ()
    active_features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    cpus: int | None = None
    alloc_cpus: int | None = None
    cpu_load: float | None = None
    memory_mib: int | None = None
    alloc_memory_mib: int | None = None
    free_memory_mib: int | None = None
    gres: tuple[Gres, ...] = ()
    gres_used: tuple[Gres, ...] | None = None
    tres: str = ""
    tres_used: str = ""
    comment: str = ""
    extra: str = ""
    weight: int | None = None
    boot_time: int | None = None
    slurmd_start_time: int | None = None
    last_busy: int | None = None
    version: str = ""
    architecture: str = ""
    operating_system: str = ""
    topology: str = ""
    reservation: str = ""
    instance_type: str = ""
    flagged: str = ""


class Job(Row, frozen=True):
    """A job record as slurmctld gives it: a job, an array task, the pending rest of an array, a het component.

    `raw_id` is the number that POST job/{id} takes. `tasks` is the text of the pending tasks of an array
    ("3-9%2"), `task_count` how many those are. `gpus` counts devices: allocated when the job runs, else asked
    for in total (None: not said). `gres_detail` is one text a node, in the order of `nodes`.
    """

    id: JobId
    raw_id: int
    states: tuple[str, ...]
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    state_reason: str = ""
    state_description: str = ""
    hold: bool = False
    priority: int | None = None
    tasks: str = ""
    task_count: int | None = None
    nodes: str = ""
    node_count: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    memory_mib: int | None = None
    submit_time: int | None = None
    eligible_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    time_limit_min: float | None = None
    exit_status: str = ""
    exit_code: int | None = None
    exit_signal: int | None = None
    dependency: str = ""
    reservation: str = ""
    required_nodes: str = ""
    features: str = ""
    gres_detail: tuple[str, ...] = ()
    tres_req: str = ""
    tres_alloc: str = ""
    tres_per_node: str = ""
    comment: str = ""
    admin_comment: str = ""
    extra: str = ""
    command: str = ""
    directory: str = ""
    stdout: str = ""
    stderr: str = ""
    container: str = ""
    requeue: bool | None = None
    restarts: int | None = None
    nice: int | None = None
    flagged: str = ""


class JobState(Row, frozen=True):
    """What jobs/state tells of a job: id as Slurm spells it and its raw states."""

    text: str
    states: tuple[str, ...]


class Partition(Row, frozen=True):
    id: SlurmName
    states: tuple[str, ...]
    nodes: str = ""
    node_sets: str = ""
    total_nodes: int | None = None
    total_cpus: int | None = None
    max_time_min: float | None = None
    default_time_min: float | None = None
    max_nodes: float | None = None
    priority_tier: int | None = None
    qos: str = ""
    allow_accounts: str = ""
    allow_qos: str = ""
    default: bool | None = None
    tres: str = ""
    flagged: str = ""


class Reservation(Row, frozen=True):
    id: SlurmName
    node_list: str = ""
    node_count: int | None = None
    core_count: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    flags: tuple[str, ...] = ()
    users: str = ""
    accounts: str = ""
    partition: str = ""
    tres: str = ""
    features: str = ""
    licenses: str = ""
    flagged: str = ""


class License(Row, frozen=True):
    id: SlurmName
    total: int | None = None
    used: int | None = None
    free: int | None = None
    reserved: int | None = None
    remote: bool = False


class Share(Row, frozen=True):
    """One line of sshare: an account (`user` empty) or a user in it."""

    cluster: str
    account: str
    user: str = ""
    parent: str = ""
    shares: float | None = None
    shares_normalized: float | None = None
    usage: int | None = None
    effective_usage: float | None = None
    factor: float | None = None


class Ping(Row, frozen=True):
    hostname: str
    responding: bool
    primary: bool | None = None
    latency_us: int | None = None
    mode: str = ""


class Diag(Row, frozen=True):
    """The part of sdiag that we read: counters since `since`, times in microseconds."""

    taken: int | None = None
    since: int | None = None
    server_threads: int | None = None
    agent_queue: int | None = None
    dbd_queue: int | None = None
    jobs_pending: int | None = None
    jobs_running: int | None = None
    jobs_submitted: int | None = None
    jobs_started: int | None = None
    jobs_completed: int | None = None
    jobs_canceled: int | None = None
    jobs_failed: int | None = None
    cycle_last_us: int | None = None
    cycle_mean_us: int | None = None
    bf_cycle_last_us: int | None = None
    bf_active: bool | None = None
