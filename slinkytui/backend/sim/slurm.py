"""A model of slurmctld: nodes with devices, jobs by priority, drains, failures. Time moves by `step`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

MIN_JOB_AGE_S = 300.0
RESPOND_S = 20.0
COMPLETING_S = 2.0


@dataclass
class SimNode:
    """`devices` holds the job id on each GPU, 0 for a free one."""

    name: str
    cpus: int
    memory_mib: int
    gpu_type: str
    devices: list[int]
    features: tuple[str, ...]
    boot: float
    partitions: tuple[str, ...] = ()
    comment: str = ""
    extra: str = ""
    down: bool = False
    drain: bool = False
    responding: bool = True
    silent_since: float | None = None
    reason: str = ""
    reason_user: str = ""
    reason_time: float = 0.0
    jobs: set[int] = field(default_factory=set)
    cpus_used: int = 0
    memory_used: int = 0

    def states(self, jobs: dict[int, SimJob]) -> list[str]:
        running = [j for j in self.jobs if jobs[j].state == "RUNNING"]
        full = (self.devices and all(self.devices)) or self.cpus_used >= self.cpus
        base = "DOWN" if self.down else "ALLOCATED" if running and full else "MIXED" if running else "IDLE"
        flags = [
            "DRAIN" if self.drain else "", "NOT_RESPONDING" if not self.responding else "",
            "COMPLETING" if any(jobs[j].state != "RUNNING" for j in self.jobs) else "", "DYNAMIC_NORM",
        ]  # fmt: skip
        return [base, *(f for f in flags if f)]

    def usable(self) -> bool:
        return not (self.down or self.drain) and self.responding


@dataclass
class SimJob:
    """`nodes` maps a node to the devices taken there. `ends` is when it will end by itself, `state` Slurm's base state."""

    id: int
    user: str
    name: str
    partition: str
    gpus: int
    node_count: int
    cpus: int
    memory_mib: int
    limit_min: int
    duration_s: float
    priority: int
    submit: float
    state: str = "PENDING"
    reason: str = "None"
    held: bool = False
    hold_user: str = ""
    start: float = 0.0
    end: float = 0.0
    nodes: dict[str, list[int]] = field(default_factory=dict)
    completing_until: float = 0.0
    exit_code: int = 0
    fails: bool = False
    comment: str = ""
    account: str = "research"
    script: str = ""
    array: str = ""


class Refusal(Exception):
    """Slurm's own error: number and text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class SlurmSim:
    """`changed` holds the names and ids whose record is new since they were last asked for; `stamp_*` are last_update."""

    def __init__(self, cluster: str, rng: random.Random, now: float) -> None:
        self.cluster, self.rng, self.now = cluster, rng, now
        self.nodes: dict[str, SimNode] = {}
        self.jobs: dict[int, SimJob] = {}
        self.active: set[int] = set()
        """Jobs that have started or ended: the only ones that time changes."""
        self.changed_nodes: set[str] = set()
        self.changed_jobs: set[int] = set()
        self.stamp_nodes = self.stamp_jobs = now
        self._next = 1
        self._dirty = True

    def touch_node(self, name: str) -> None:
        self.changed_nodes.add(name)
        self.stamp_nodes = self.now

    def touch_job(self, job_id: int) -> None:
        self.changed_jobs.add(job_id)
        self.stamp_jobs = self.now

    def register(self, node: SimNode) -> None:
        """A slurmd reports: new, or back again (DOWN stays until RESUME, as with ReturnToService unset)."""
        old = self.nodes.get(node.name)
        if old is None:
            self.nodes[node.name] = node
        else:
            old.responding, old.silent_since = True, None
        self._dirty = True
        self.touch_node(node.name)

    def vanish(self, name: str) -> None:
        """A slurmd is heard of no more."""
        node = self.nodes.get(name)
        if node is not None and node.responding:
            node.responding, node.silent_since = False, self.now
            self.touch_node(name)

    def submit(self, job: SimJob) -> SimJob:
        job.id = self._next
        self._next += 1
        self.jobs[job.id] = job
        if job.held:
            job.reason = "JobHeldUser"
        self._dirty = True
        self.touch_job(job.id)
        return job

    def update_node(self, name: str, state: str, reason: str, user: str) -> None:
        """DRAIN, UNDRAIN, RESUME, DOWN, or only a reason."""
        node = self.nodes.get(name)
        if node is None:
            raise Refusal(2018, "Invalid node name specified")
        if state == "RESUME" and not (node.down or node.drain):
            raise Refusal(2180, "Invalid node state transition requested")
        if state in ("DRAIN", "DOWN"):
            node.drain = node.drain or state == "DRAIN"
            node.reason, node.reason_user, node.reason_time = reason or node.reason, user, self.now
            if state == "DOWN":
                self._fail_node(node)
        elif state in ("UNDRAIN", "RESUME"):
            node.drain = False
            if state == "RESUME":
                node.down = False
            node.reason, node.reason_user, node.reason_time = "", "", 0.0
        elif state:
            raise Refusal(2028, "Invalid node state specified")
        self._dirty = True
        self.touch_node(name)

    def hold(self, job_id: int, on: bool, user: str) -> None:
        job = self.job(job_id)
        if job.state != "PENDING":
            raise Refusal(2073, "Job is no longer pending execution")
        job.held = on
        job.reason = ("JobHeldAdmin" if user in ("root", "slurm") else "JobHeldUser") if on else "None"
        self._dirty = True
        self.touch_job(job_id)

    def cancel(self, job_id: int) -> None:
        job = self.job(job_id)
        if job.state not in ("PENDING", "RUNNING"):
            raise Refusal(2021, "Job/step already completing or completed")
        self._finish(job, "CANCELLED")

    def job(self, job_id: int) -> SimJob:
        job = self.jobs.get(job_id)
        if job is None:
            raise Refusal(2017, "Invalid job id specified")
        return job

    def _finish(self, job: SimJob, state: str) -> None:
        job.state, job.end = state, self.now
        self.active.add(job.id)
        job.completing_until = self.now + COMPLETING_S if job.nodes else 0.0
        if not job.start:
            job.start = self.now
        for name in job.nodes:
            self.touch_node(name)
        self.touch_job(job.id)

    def _release(self, job: SimJob) -> None:
        for name in job.nodes:
            node = self.nodes.get(name)
            if node is not None and job.id in node.jobs:
                node.jobs.discard(job.id)
                node.devices = [0 if d == job.id else d for d in node.devices]
                node.cpus_used -= job.cpus // job.node_count
                node.memory_used -= job.memory_mib // job.node_count
                self.touch_node(name)
        job.completing_until = 0.0
        self._dirty = True
        self.touch_job(job.id)

    def _fail_node(self, node: SimNode) -> None:
        node.down = True
        for job_id in list(node.jobs):
            job = self.jobs[job_id]
            if job.state == "RUNNING":
                self._finish(job, "NODE_FAIL")
            self._release(job)
        self.touch_node(node.name)

    def step(self, now: float) -> None:
        """Move time: ends, failures, starts."""
        self.now = now
        for node in self.nodes.values():
            if node.silent_since is not None and not node.down and now - node.silent_since > RESPOND_S:
                node.reason, node.reason_user, node.reason_time = "Not responding", "slurm", now
                self._fail_node(node)
        gone = []
        for job_id in list(self.active):
            job = self.jobs[job_id]
            if job.state == "RUNNING":
                if now >= job.start + job.limit_min * 60:
                    self._finish(job, "TIMEOUT")
                elif now >= job.start + job.duration_s:
                    job.exit_code = 1 if job.fails else 0
                    self._finish(job, "FAILED" if job.fails else "COMPLETED")
            elif job.completing_until and now >= job.completing_until:
                self._release(job)
            elif not job.completing_until and now - job.end > MIN_JOB_AGE_S:
                gone.append(job.id)
        for job_id in gone:
            del self.jobs[job_id]
            self.active.discard(job_id)
            self.touch_job(job_id)
        if self._dirty:
            self._dirty = False
            self.schedule()

    def schedule(self, most: int = 500) -> None:
        """Start what fits, by priority; smaller jobs may pass one that does not fit, as backfill does."""
        waiting = sorted(
            (j for j in self.jobs.values() if j.state == "PENDING" and not j.held), key=lambda j: (-j.priority, j.id)
        )
        by_part: dict[str, list[SimNode]] = {}
        for node in self.nodes.values():
            if node.usable():
                for part in node.partitions:
                    by_part.setdefault(part, []).append(node)
        blocked: set[tuple[str, int, int]] = set()
        for job in waiting[:most]:
            shape = (job.partition, job.gpus // job.node_count, job.node_count)
            if shape in blocked or not self._start(job, by_part.get(job.partition, [])):
                blocked.add(shape)
                reason = "Resources" if len(blocked) == 1 else "Priority"
                if job.reason != reason:
                    job.reason = reason
                    self.touch_job(job.id)

    def _start(self, job: SimJob, nodes: list[SimNode]) -> bool:
        each_gpu, each_cpu, each_mem = (
            job.gpus // job.node_count,
            job.cpus // job.node_count,
            job.memory_mib // job.node_count,
        )
        fit: list[SimNode] = []
        for node in nodes:
            room = node.cpus - node.cpus_used >= each_cpu and node.memory_mib - node.memory_used >= each_mem
            if room and node.devices.count(0) >= each_gpu:
                fit.append(node)
                if len(fit) == job.node_count:
                    break
        if len(fit) < job.node_count:
            return False
        for node in fit:
            free = [i for i, d in enumerate(node.devices) if d == 0][:each_gpu]
            for i in free:
                node.devices[i] = job.id
            node.jobs.add(job.id)
            node.cpus_used += each_cpu
            node.memory_used += each_mem
            job.nodes[node.name] = free
            self.touch_node(node.name)
            if node.devices and 0 not in node.devices:
                nodes.remove(node)
        job.state, job.reason, job.start = "RUNNING", "None", self.now
        self.active.add(job.id)
        self.touch_job(job.id)
        return True
