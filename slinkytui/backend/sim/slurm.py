"""A model of slurmctld: nodes with devices, jobs by priority, drains, failures. Time moves by `step`."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import replace

from slinkytui.backend.sim.arrays import parse_ids
from slinkytui.backend.sim.dependencies import Fate, Met, Term, judge, parse_dependency, weigh
from slinkytui.backend.sim.jobs import TERMINAL, Refusal, SimJob
from slinkytui.backend.sim.reservations import SimReservation
from slinkytui.backend.sim.slurmnode import SimNode as SimNode

MIN_JOB_AGE_S = 300.0
RESPOND_S = 20.0
COMPLETING_S = 2.0
REQUEUE_S = 120.0


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
        self.arrays: dict[int, set[int]] = {}
        """The records of each job array."""
        self.gated: set[int] = set()
        """Jobs that wait for a time or for other jobs: the scheduler passes them over."""
        self.reservations: dict[str, SimReservation] = {}
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
        """Queue a job, or all tasks of an array as one record. Raises Refusal for what it waits on."""
        if job.dependency:
            try:
                terms = parse_dependency(job.dependency).terms
            except ValueError:
                raise Refusal(2038, "Job dependency problem") from None
            if any(t.job and self.fate(t.job) is None for t in terms):
                raise Refusal(2038, "Job dependency problem")
        if job.reservation and job.reservation not in self.reservations:
            raise Refusal(2053, "Requested reservation is invalid")
        job.id = self._take_id()
        self.jobs[job.id] = job
        if job.tasks:
            job.array_id = job.id
            self.arrays[job.id] = {job.id}
        if job.held:
            job.reason = "JobHeldUser"
        if job.dependency or job.begin > self.now:
            self.gated.add(job.id)
            self._gate(job)
        self._dirty = True
        self.touch_job(job.id)
        return job

    def _take_id(self) -> int:
        self._next += 1
        return self._next - 1

    def reserve(self, found: SimReservation) -> None:
        self.reservations[found.name] = found
        for name in found.nodes:
            self.touch_node(name)
        self._dirty = True

    def reserved_flags(self, name: str) -> tuple[str, list[str]]:
        """The reservation that is on at a node, and its words in the node's state."""
        for found in self.reservations.values():
            if flags := found.node_flags(name, self.now):
                return found.name, flags
        return "", []

    # What jobs wait for.

    def fate(self, text: str) -> Fate | None:
        """How "13" (all of an array) or "13_4" stands; None when it is not known, or no longer."""
        found = self.family(text)
        if not found:
            return None
        starts = [j.start for j in found if j.start and (j.state != "PENDING")]
        ended = all(j.state in TERMINAL for j in found)
        return Fate(
            max(starts) if len(starts) == len(found) else None,
            "" if not ended else "ok" if all(j.state == "COMPLETED" for j in found) else "bad",
        )

    def family(self, text: str) -> list[SimJob]:
        """The records that "13" or "13_4" names: the newest task first, what waits of an array last."""
        parsed = parse_ids(text)
        if parsed is None:
            return []
        number, tasks = parsed
        if number not in self.arrays:
            return [self.jobs[number]] if number in self.jobs and tasks is None else []
        found = [self.jobs[i] for i in sorted(self.arrays[number], reverse=True)]
        if tasks is None:
            return found
        return [j for j in found if j.task in tasks or (j.task is None and not set(tasks).isdisjoint(j.tasks))]

    def _gate(self, job: SimJob) -> None:
        """Say what the job waits for; let it go when that is over."""
        reason = ""
        if job.dependency:
            whole, text = weigh(parse_dependency(job.dependency), lambda term: self._met(job, term))
            if text != job.dependency:
                job.dependency = text
                self.touch_job(job.id)
            reason = {"open": "Dependency", "never": "DependencyNeverSatisfied"}.get(whole, "")
        if not reason and job.begin > self.now:
            reason = "BeginTime"
        if not reason:
            self.gated.discard(job.id)
            self._dirty = True
            reason = "None"
        if not job.held and job.reason != reason:
            job.reason = reason
            self.touch_job(job.id)

    def _met(self, job: SimJob, term: Term) -> Met:
        if term.kind != "singleton":
            return judge(term, self.fate(term.job), self.now)
        before = (
            o for o in self.jobs.values()
            if o.id < job.id and (o.user, o.name) == (job.user, job.name) and o.array_id != (job.array_id or -1)
        )  # fmt: skip
        return "open" if any(o.state not in TERMINAL for o in before) else "met"

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
            if not node.down:
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

    def cancel_tasks(self, job_id: int, tasks: Sequence[int]) -> None:
        """Take tasks that wait out of an array's record; the record itself ends with its last ones, and keeps them."""
        job = self.job(job_id)
        rest = [t for t in job.tasks if t not in set(tasks)]
        if not rest or job.state != "PENDING":
            self.cancel(job_id)
            return
        job.tasks = rest
        self.touch_job(job_id)

    def requeue(self, job_id: int) -> None:
        """Back to the queue; it may start again two minutes after its nodes are free."""
        job = self.job(job_id)
        if job.state == "PENDING":
            raise Refusal(2024, "Job is pending execution")
        if not job.requeue:
            raise Refusal(2020, "Job can not be altered now, try again later")
        job.restarts += 1
        job.state, job.end, job.exit_code, job.reason = "PENDING", 0.0, 0, "None"
        if any(job_id in self.nodes[n].jobs for n in job.nodes if n in self.nodes):
            job.completing_until = self.now + COMPLETING_S
            self.active.add(job_id)
            for name in job.nodes:
                self.touch_node(name)
        else:
            self._back(job)
        self.touch_job(job_id)

    def _back(self, job: SimJob) -> None:
        job.nodes, job.start, job.begin = {}, 0.0, self.now + REQUEUE_S
        self.active.discard(job.id)
        self.gated.add(job.id)
        self._gate(job)

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
        self.gated.discard(job.id)
        self._dirty = self._dirty or bool(job.array_limit)
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
        before, self.now = self.now, now
        for found in self.reservations.values():
            if before < found.start <= now or before < found.end <= now:
                self._dirty = True
                for name in found.nodes:
                    self.touch_node(name)
        for node in self.nodes.values():
            if node.silent_since is not None and not node.down and now - node.silent_since > RESPOND_S:
                if not node.reason:  # what somebody has said stays
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
                if job.state == "PENDING":
                    self._back(job)
            elif not job.completing_until and now - job.end > MIN_JOB_AGE_S:
                gone.append(job.id)
        for job_id in gone:
            self._forget(self.jobs[job_id])
        for job_id in sorted(self.gated):
            self._gate(self.jobs[job_id])
        if self._dirty:
            self._dirty = False
            self.schedule()

    def _forget(self, job: SimJob) -> None:
        del self.jobs[job.id]
        self.active.discard(job.id)
        family = self.arrays.get(job.array_id)
        if family is not None:
            family.discard(job.id)
            if not family:
                del self.arrays[job.array_id]
        self.touch_job(job.id)

    def schedule(self, most: int = 500) -> None:
        """Start what fits, by priority; smaller jobs may pass one that does not fit, as backfill does."""
        queue = [
            j
            for j in self.jobs.values()
            if j.state == "PENDING" and not j.held and j.id not in self.gated and not j.completing_until
        ]
        waiting = heapq.nsmallest(most, queue, key=lambda j: (-j.priority, j.id))
        by_part: dict[str, list[SimNode]] = {}
        for node in self.nodes.values():
            if node.usable():
                for part in node.partitions:
                    by_part.setdefault(part, []).append(node)
        blocked: set[tuple[object, ...]] = set()
        for job in waiting:
            shape = (job.partition, job.gpus // job.node_count, job.node_count, job.reservation, job.wanted_nodes,
                     job.limit_min if self.reservations else 0)  # fmt: skip
            nodes = by_part.get(job.partition, [])
            while shape not in blocked:
                if self._array_full(job):
                    self._say(job, "JobArrayTaskLimit")
                    break
                if not self._start(job, nodes):
                    blocked.add(shape)
                    self._say(job, self._why(job, first=len(blocked) == 1))
                elif job.state == "PENDING":
                    continue
                break
            else:
                self._say(job, self._why(job, first=False))

    def _say(self, job: SimJob, reason: str) -> None:
        if job.reason != reason:
            job.reason = reason
            self.touch_job(job.id)

    def _why(self, job: SimJob, *, first: bool) -> str:
        if job.reservation and not self._open(job.reservation):
            return "Reservation"
        if any(not self._free_to(job, name) for name in job.wanted_nodes):
            return "ReqNodeNotAvail"
        return "Resources" if first else "Priority"

    def _open(self, reservation: str) -> bool:
        found = self.reservations.get(reservation)
        return found is not None and found.active(self.now)

    def _free_to(self, job: SimJob, name: str) -> bool:
        """Whether the node answers and no reservation keeps it from the job."""
        node = self.nodes.get(name)
        length = job.limit_min * 60.0
        return (
            node is not None
            and node.usable()
            and (not job.reservation or self._open(job.reservation))
            and all(r.admits(name, self.now, length, job.reservation) for r in self.reservations.values())
        )

    def _array_full(self, job: SimJob) -> bool:
        if not job.array_limit or not job.tasks:
            return False
        running = sum(self.jobs[i].state == "RUNNING" for i in self.arrays[job.array_id])
        return running >= job.array_limit

    def _start(self, job: SimJob, nodes: list[SimNode]) -> bool:
        each_gpu, each_cpu, each_mem = (
            job.gpus // job.node_count,
            job.cpus // job.node_count,
            job.memory_mib // job.node_count,
        )
        choosy = bool(self.reservations or job.wanted_nodes)
        fit: list[SimNode] = []
        for node in nodes:
            room = node.cpus - node.cpus_used >= each_cpu and node.memory_mib - node.memory_used >= each_mem
            if room and node.devices.count(0) >= each_gpu and (not choosy or self._allowed(job, node.name)):
                fit.append(node)
                if len(fit) == job.node_count:
                    break
        if len(fit) < job.node_count:
            return False
        job = self._next_task(job)
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

    def _allowed(self, job: SimJob, name: str) -> bool:
        return (not job.wanted_nodes or name in job.wanted_nodes) and self._free_to(job, name)

    def _next_task(self, job: SimJob) -> SimJob:
        """The record that starts: of an array a new one, or the array's own for its last task."""
        if not job.tasks:
            return job
        task, rest = job.tasks[0], job.tasks[1:]
        if not rest:
            job.task, job.tasks = task, []
            return job
        job.tasks = rest
        self.touch_job(job.id)
        made = replace(job, id=self._take_id(), task=task, tasks=[], nodes={})
        self.jobs[made.id] = made
        self.arrays[job.array_id].add(made.id)
        return made
