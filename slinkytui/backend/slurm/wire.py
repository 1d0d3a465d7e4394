"""The lean wire structs of nodes, jobs, partitions and the rest, tolerant of v0.0.42 to v0.0.45, and the rows made of
them. A record that cannot be read in part becomes a row with `flagged`, never a lost list.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Any, Final

import msgspec

from slinkytui.backend.models import (
    Gres,
    Job,
    JobId,
    JobState,
    NodeId,
    Partition,
    Reservation,
    Row,
    SlurmName,
    SlurmNode,
)
from slinkytui.backend.slurm.gres import gpus, parse_gres
from slinkytui.backend.slurm.numbers import Number, moment, number, whole
from slinkytui.backend.slurm.tres import asked_gpus, gpus_of, parse_tres

Text = str | None
Names = list[str] | str | None


class WireNode(msgspec.Struct, gc=False):
    name: str
    state: Names = None
    reason: Text = ""
    reason_set_by_user: Text = ""
    reason_changed_at: Number = None
    hostname: Text = ""
    address: Text = ""
    features: Names = None
    active_features: Names = None
    partitions: Names = None
    cpus: Number = None
    alloc_cpus: Number = None
    cpu_load: Number = None
    real_memory: Number = None
    alloc_memory: Number = None
    free_mem: Number = None
    gres: Text = ""
    gres_used: Text = None
    tres: Text = ""
    tres_used: Text = ""
    comment: Text = ""
    extra: Text = ""
    weight: Number = None
    boot_time: Number = None
    slurmd_start_time: Number = None
    last_busy: Number = None
    version: Text = ""
    architecture: Text = ""
    operating_system: Text = ""
    topology: Text = ""
    reservation: Text = ""
    instance_type: Text = ""


class Signal(msgspec.Struct, gc=False):
    id: Number = None
    name: Text = ""


class ExitCode(msgspec.Struct, gc=False):
    status: Names = None
    return_code: Number = None
    signal: Signal | None = None


_NO_CODE: Final = ExitCode()


class WireJob(msgspec.Struct, gc=False):
    job_id: int
    job_state: Names = None
    array_job_id: Number = None
    array_task_id: Number = None
    array_task_string: Text = ""
    het_job_id: Number = None
    het_job_offset: Number = None
    name: Text = ""
    user_name: Text = ""
    user_id: Number = None
    account: Text = ""
    partition: Text = ""
    qos: Text = ""
    state_reason: Text = ""
    state_description: Text = ""
    hold: bool | None = False
    priority: Number = None
    nodes: Text = ""
    node_count: Number = None
    cpus: Number = None
    tasks: Number = None
    memory_per_node: Number = None
    memory_per_cpu: Number = None
    submit_time: Number = None
    eligible_time: Number = None
    start_time: Number = None
    end_time: Number = None
    time_limit: Number = None
    exit_code: ExitCode | None = None
    dependency: Text = ""
    resv_name: Text = ""
    required_nodes: Text = ""
    features: Text = ""
    gres_detail: Names = None
    tres_req_str: Text = ""
    tres_alloc_str: Text = ""
    tres_per_node: Text = ""
    tres_per_job: Text = ""
    tres_per_task: Text = ""
    comment: Text = ""
    admin_comment: Text = ""
    extra: Text = ""
    command: Text = ""
    current_working_directory: Text = ""
    standard_output: Text = ""
    standard_error: Text = ""
    stdout_expanded: Text = ""
    stderr_expanded: Text = ""
    container: Text = ""
    requeue: bool | None = None
    restart_cnt: Number = None
    nice: Number = None


class PartitionNodes(msgspec.Struct, gc=False):
    configured: Text = ""
    total: Number = None


class PartitionState(msgspec.Struct, gc=False):
    state: Names = None


class Total(msgspec.Struct, gc=False):
    total: Number = None


class Maximums(msgspec.Struct, gc=False):
    time: Number = None
    nodes: Number = None


class Defaults(msgspec.Struct, gc=False):
    time: Number = None


class Tier(msgspec.Struct, gc=False):
    tier: Number = None


class Qos(msgspec.Struct, gc=False):
    allowed: Text = ""
    assigned: Text = ""


class Accounts(msgspec.Struct, gc=False):
    allowed: Text = ""


class ConfiguredTres(msgspec.Struct, gc=False):
    configured: Text = ""


class WirePartition(msgspec.Struct, gc=False):
    name: str
    nodes: PartitionNodes | None = None
    node_sets: Text = ""
    partition: PartitionState | None = None
    cpus: Total | None = None
    maximums: Maximums | None = None
    defaults: Defaults | None = None
    priority: Tier | None = None
    qos: Qos | None = None
    accounts: Accounts | None = None
    tres: ConfiguredTres | None = None
    flags: Names = None


class WireReservation(msgspec.Struct, gc=False):
    name: str
    node_list: Text = ""
    node_count: Number = None
    core_count: Number = None
    start_time: Number = None
    end_time: Number = None
    flags: Names = None
    users: Text = ""
    accounts: Text = ""
    partition: Text = ""
    tres: Text = ""
    features: Text = ""
    licenses: Text = ""


class WireState(msgspec.Struct, gc=False):
    job_id: str | int
    state: Names = None


@lru_cache(1_024)
def _upper(states: tuple[str, ...]) -> tuple[str, ...]:
    """Jobs and nodes share few sets of states: one tuple stands for all that are alike."""
    return tuple(intern(s.upper()) for s in states)


def states(value: Names) -> tuple[str, ...]:
    return _upper(names(value))


def shared(text: str | None) -> str:
    """A text that many rows repeat (users, partitions, reasons): held once."""
    return intern(text) if text else ""


def names(value: Names) -> tuple[str, ...]:
    """A list, a comma text, "" or null."""
    if not value:
        return ()
    return tuple(value.split(",")) if isinstance(value, str) else tuple(value)


_parse_gres = lru_cache(4_096)(parse_gres)
"""Nodes and jobs repeat few texts: parsed once, and the frozen entries are shared."""


@lru_cache(16_384)
def _tres_gpus(text: str) -> int | None:
    return gpus_of(parse_tres(text))


def _gres(text: str | None, flags: list[str]) -> tuple[Gres, ...] | None:
    if text is None:
        return None
    try:
        return _parse_gres(text)
    except ValueError as error:
        flags.append(str(error))
        return None


def node_row(w: WireNode, cluster: str) -> SlurmNode:
    flags: list[str] = []
    load = number(w.cpu_load)
    gres = _gres(w.gres or "", flags)
    used = _gres(w.gres_used, flags)
    return SlurmNode(
        NodeId(cluster, w.name), states(w.state), w.reason or "", w.reason_set_by_user or "",
        moment(w.reason_changed_at), _alike(w.hostname, w.name), _alike(w.address, w.name), _names(w.features),
        _names(w.active_features), _names(w.partitions), whole(w.cpus), whole(w.alloc_cpus), None if load is None else load / 100,
        whole(w.real_memory), whole(w.alloc_memory), whole(w.free_mem), gres or (), used, shared(w.tres),
        shared(w.tres_used), w.comment or "", w.extra or "", whole(w.weight), moment(w.boot_time),
        moment(w.slurmd_start_time), moment(w.last_busy), shared(w.version), shared(w.architecture),
        shared(w.operating_system), shared(w.topology), w.reservation or "", shared(w.instance_type), "; ".join(flags),
    )  # fmt: skip


def _alike(text: str | None, name: str) -> str:
    """Hostname and address are the node's name nearly always."""
    return name if text == name else text or ""


@lru_cache(4_096)
def _tuple(found: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(intern(f) for f in found)


def _names(value: Names) -> tuple[str, ...]:
    return _tuple(names(value)) if value else ()


def job_id(w: WireJob, cluster: str) -> JobId:
    """The id as squeue spells it: array and heterogeneous jobs by their leading id."""
    array, task = whole(w.array_job_id), whole(w.array_task_id)
    het = whole(w.het_job_id)
    if array and (task is not None or w.array_task_string):
        return JobId(cluster, array, task)
    return JobId(cluster, het, None, whole(w.het_job_offset) or 0) if het else JobId(cluster, w.job_id)


def _job_gpus(w: WireJob, node_count: int | None, flags: list[str]) -> int | None:
    """Devices by the placement, else by the accounted TRES (absent where GPUs are not accounted), else as asked for."""
    try:
        if isinstance(w.gres_detail, list) and w.gres_detail:
            return sum(gpus(_parse_gres(text)) or 0 for text in w.gres_detail)
        for text in (w.tres_alloc_str, w.tres_req_str):
            found = _tres_gpus(text) if text else None
            if found is not None:
                return found
    except ValueError as error:
        flags.append(str(error))
    if w.tres_per_job:
        return asked_gpus(w.tres_per_job)
    if w.tres_per_node:
        return None if node_count is None else asked_gpus(w.tres_per_node) * node_count
    if w.tres_per_task:
        tasks = whole(w.tasks)
        return None if tasks is None else asked_gpus(w.tres_per_task) * tasks
    return 0 if w.tres_req_str or w.tres_alloc_str else None


def job_row(w: WireJob, cluster: str) -> Job:
    flags: list[str] = []
    nodes, cpus = whole(w.node_count), whole(w.cpus)
    memory, per_cpu = whole(w.memory_per_node), whole(w.memory_per_cpu)
    code = w.exit_code or _NO_CODE
    tasks = w.array_task_string or ""
    user = w.user_name or ("" if whole(w.user_id) is None else str(whole(w.user_id)))
    tres_req, tres_alloc = shared(w.tres_req_str), shared(w.tres_alloc_str)
    # By position, in the order of Job's fields: this runs 100,000 times a poll.
    return Job(
        job_id(w, cluster), w.job_id, states(w.job_state), shared(w.name), intern(user), shared(w.account),
        shared(w.partition), shared(w.qos), shared(w.state_reason), shared(w.state_description), bool(w.hold),
        whole(w.priority), tasks, _task_count(tasks) if tasks else None, w.nodes or "", nodes, cpus,
        _job_gpus(w, nodes, flags), memory * (nodes or 1) if memory else per_cpu * cpus if per_cpu and cpus else None,
        moment(w.submit_time), moment(w.eligible_time), moment(w.start_time), moment(w.end_time), number(w.time_limit),
        _status(code.status), whole(code.return_code), whole(code.signal.id) if code.signal else None,
        w.dependency or "", w.resv_name or "", w.required_nodes or "", shared(w.features),
        _names(w.gres_detail) if isinstance(w.gres_detail, list) else (), tres_req, tres_alloc, shared(w.tres_per_node),
        w.comment or "", w.admin_comment or "", w.extra or "", w.command or "", shared(w.current_working_directory),
        w.stdout_expanded or w.standard_output or "", w.stderr_expanded or w.standard_error or "", shared(w.container),
        w.requeue, whole(w.restart_cnt), whole(w.nice), "; ".join(flags) if flags else "",
    )  # fmt: skip


def _status(found: Names) -> str:
    return intern(" ".join(names(found))) if found else ""


def _task_count(tasks: str) -> int | None:
    """How many tasks "0-4,7,10-20:5%2" names; None when it was cut or cannot be read."""
    body = tasks.partition("%")[0]
    if not body or body.endswith("..."):
        return None
    total = 0
    for part in body.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        try:
            total += (int(last or first) - int(first)) // int(step or 1) + 1
        except (ValueError, ZeroDivisionError):
            return None
    return total


def partition_row(w: WirePartition, cluster: str) -> Partition:
    flags = names(w.flags)
    return Partition(
        SlurmName(cluster, w.name), names(w.partition.state) if w.partition else (),
        (w.nodes.configured or "") if w.nodes else "", w.node_sets or "", whole(w.nodes.total) if w.nodes else None,
        whole(w.cpus.total) if w.cpus else None, number(w.maximums.time) if w.maximums else None,
        number(w.defaults.time) if w.defaults else None, number(w.maximums.nodes) if w.maximums else None,
        whole(w.priority.tier) if w.priority else None, (w.qos.assigned or "") if w.qos else "",
        (w.accounts.allowed or "") if w.accounts else "", (w.qos.allowed or "") if w.qos else "",
        ("DEFAULT" in flags) if w.flags is not None else None, (w.tres.configured or "") if w.tres else "",
    )  # fmt: skip


def reservation_row(w: WireReservation, cluster: str) -> Reservation:
    return Reservation(
        SlurmName(cluster, w.name), w.node_list or "", whole(w.node_count), whole(w.core_count), moment(w.start_time),
        moment(w.end_time), names(w.flags), w.users or "", w.accounts or "", w.partition or "", w.tres or "",
        w.features or "", w.licenses or "",
    )  # fmt: skip


def state_row(w: WireState, cluster: str) -> JobState:
    return JobState(str(w.job_id), states(w.state))


@dataclass(frozen=True)
class Shape:
    """How a list is asked for and read: `path`, the data key, the identifying field, struct and row."""

    path: str
    key: str
    name: str
    wire: type[Any]
    row: Callable[[Any, str], Row]
    query: tuple[tuple[str, str], ...] = ()


NODES: Final = Shape("nodes/", "nodes", "name", WireNode, node_row)
JOBS: Final = Shape("jobs/", "jobs", "job_id", WireJob, job_row)
PARTITIONS: Final = Shape("partitions/", "partitions", "name", WirePartition, partition_row, (("flags", "ALL"),))
RESERVATIONS: Final = Shape("reservations/", "reservations", "name", WireReservation, reservation_row)
STATES: Final = Shape("jobs/state/", "jobs", "job_id", WireState, state_row)
_DECODERS: Final = {s.path: msgspec.json.Decoder(s.wire) for s in (NODES, JOBS, PARTITIONS, RESERVATIONS, STATES)}


def read_row(shape: Shape, raw: bytes | memoryview, cluster: str) -> Row | None:
    """One record; None when not even its name can be read."""
    try:
        return shape.row(_DECODERS[shape.path].decode(raw), cluster)
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        return _salvage(shape, bytes(raw), cluster, str(error))


def _salvage(shape: Shape, raw: bytes, cluster: str, why: str) -> Row | None:
    """Read what can be read: drop the fields that do not fit, and say which."""
    try:
        record = json.loads(raw.decode("utf-8", "replace"))
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get(shape.name) is None:
        return None
    kinds = {f.encode_name: f.type for f in msgspec.structs.fields(shape.wire)}
    good, bad = {}, []
    for key, kind in kinds.items():
        if key in record:
            try:
                good[key] = msgspec.convert(record[key], kind, strict=False)
            except (msgspec.ValidationError, OverflowError):
                bad.append(key)
    if shape.name in bad:
        return None
    row = shape.row(shape.wire(**good), cluster)
    return msgspec.structs.replace(row, flagged=f"could not read {', '.join(bad)}" if bad else why)
