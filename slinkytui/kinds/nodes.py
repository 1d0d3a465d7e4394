"""Slurm nodes with their Kubernetes side: what each world believes of a worker."""

from __future__ import annotations

from slinkytui.backend import FleetNode, Key, RowId, Table
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, Section, Token
from slinkytui.kinds.states import node_state
from slinkytui.kinds.text import age, memory, moment


def _gpu_text(row: FleetNode, ctx: Context) -> str:
    if row.gpus_total is None:
        return "–"
    if row.gpus_total == 0:
        return "·"
    return f"{'–' if row.gpus_used is None else row.gpus_used}/{row.gpus_total}"


def _reason(row: FleetNode, ctx: Context) -> str:
    reason = row.slurm.reason if row.slurm is not None else row.unmatched
    who = row.slurm.reason_user if row.slurm is not None else ""
    since = age(row.slurm.reason_time, ctx.now) if row.slurm is not None and row.slurm.reason_time else ""
    tail = ", ".join(p for p in (who, since) if p)
    text = f"{reason} ({tail})" if reason and tail else reason
    return row.disagreement if row.disagreement and not reason else text


def _says(row: FleetNode, ctx: Context) -> str:
    differs = f"≠ {row.disagreement}" if row.disagreement else ""
    reason = _reason(row, ctx)
    return " · ".join(p for p in (differs, reason if reason != row.disagreement else "") if p)


def _k8s(row: FleetNode, ctx: Context) -> str:
    if not row.k8s:
        return "–"
    return f"{row.k8s} {age(row.k8s_since, ctx.now)}" if row.k8s_since and row.k8s != "Ready" else row.k8s


def _state_text(row: FleetNode, ctx: Context) -> str:
    state = node_state(row)
    return f"{state.glyph} {state.word}"


def _detail(row: FleetNode, ctx: Context) -> tuple[Section, ...]:
    slurm = row.slurm
    kube = (
        Line("pod", str(row.pod or row.unmatched or "–")),
        Line("found by", row.match or "–"),
        Line("kubernetes node", row.kubenode or "–"),
        Line("state", _k8s(row, ctx), "warning" if row.cordoned or row.pod_ready is False else "text"),
        Line("NodeSet", str(row.nodeset or "–")),
    )
    if slurm is None:
        return (
            Section("Slurm", (Line("state", "Slurm does not know this node", "warning"),)),
            Section("Kubernetes", kube),
        )
    state = node_state(row)
    return (
        Section(
            "Slurm",
            (
                Line("state", f"{state.word}  ({' '.join(slurm.states)})", state.token),
                Line("reason", slurm.reason or "–"),
                Line("set by", f"{slurm.reason_user or '–'} at {moment(slurm.reason_time)}"),
                Line("partitions", ",".join(slurm.partitions) or "–"),
                Line("features", ",".join(slurm.features) or "–"),
                Line("comment", slurm.comment or "–"),
                Line("version", slurm.version or "–"),
                Line("boot", moment(slurm.boot_time)),
                Line("slurmd start", moment(slurm.slurmd_start_time)),
                *((Line("read in part", slurm.flagged, "warning"),) if slurm.flagged else ()),
            ),
        ),
        Section(
            "Resources",
            (
                Line("CPUs", f"{slurm.alloc_cpus if slurm.alloc_cpus is not None else '–'} of {slurm.cpus or '–'}"),
                Line("load", "–" if slurm.cpu_load is None else f"{slurm.cpu_load:.2f}"),
                Line("memory", f"{memory(slurm.alloc_memory_mib)} allocated of {memory(slurm.memory_mib)}"),
                Line("free (OS)", memory(slurm.free_memory_mib)),
                Line("GPUs", f"{_gpu_text(row, ctx)} {row.gpu_type}"),
                Line("jobs", " ".join(map(str, row.jobs)) if row.jobs else "–" if row.jobs is None else "none"),
            ),
        ),
        Section("Kubernetes", kube),
    )


def _one(key: Key | None) -> tuple[RowId, ...]:
    return () if key is None else (key,)


def _severity(row: FleetNode, ctx: Context) -> Token:
    return node_state(row).token


NODES = Kind(
    id="nodes",
    title="Slurm nodes",
    singular="node",
    table=Table.NODES,
    aliases=("no", "slurmnodes", "sn"),
    columns=(
        Column("NODE", "name", lambda r, c: r.id.name, width=10),
        Column("STATE", "state", lambda r, c: node_state(r).word, _state_text, token=_severity, width=10),
        Column(
            "K8S",
            "k8s",
            lambda r, c: r.k8s or None,
            _k8s,
            drop=2,
            width=9,
            token=lambda r, c: "warning" if r.cordoned or r.pod_ready is False else "text",
        ),
        Column("GPU", "gpus_used", lambda r, c: r.gpus_used, _gpu_text, align="right", width=4),
        Column(
            "JOBS",
            "jobs",
            lambda r, c: None if r.jobs is None else len(r.jobs),
            align="right",
            drop=3,
            needs=(Table.JOBS,),
        ),
        Column("NODESET", "nodeset", lambda r, c: r.nodeset.name if r.nodeset else None, wide=True, drop=5),
        Column("PARTITIONS", "partitions", lambda r, c: r.slurm.partitions if r.slurm else None, wide=True, drop=6),
        Column("CPU", "cpus", lambda r, c: r.slurm.cpus if r.slurm else None, align="right", wide=True, drop=7),
        Column(
            "MEM",
            "memory_mib",
            lambda r, c: r.slurm.memory_mib if r.slurm else None,
            lambda r, c: memory(r.slurm.memory_mib if r.slurm else None),
            align="right",
            wide=True,
            drop=7,
        ),
        Column("POD", "pod", lambda r, c: str(r.pod) if r.pod else None, wide=True, drop=8),
        Column("REASON", "reason", lambda r, c: r.slurm.reason if r.slurm else r.unmatched, _reason, grow=True, drop=1),
    ),
    extra=(
        Column("CLUSTER", "cluster", lambda r, c: r.id.cluster),
        Column("STATES", "states", lambda r, c: r.slurm.states if r.slurm else None),
        Column("GPUS", "gpus", lambda r, c: r.gpus_total),
        Column("TYPE", "gpu_type", lambda r, c: r.gpu_type or None),
        Column("KUBENODE", "kubenode", lambda r, c: r.kubenode or None),
        Column("CORDONED", "cordoned", lambda r, c: r.cordoned),
        Column("REASON USER", "reason_user", lambda r, c: (r.slurm.reason_user or None) if r.slurm else None),
        Column("ALLOC", "alloc_cpus", lambda r, c: r.slurm.alloc_cpus if r.slurm else None),
        Column("LOAD", "cpu_load", lambda r, c: r.slurm.cpu_load if r.slurm else None),
        Column("USERS", "users", lambda r, c: r.users, needs=(Table.JOBS,)),
        Column(
            "JOB IDS",
            "job_ids",
            lambda r, c: None if r.jobs is None else tuple(map(str, r.jobs)),
            needs=(Table.JOBS,),
        ),
        Column("DISAGREEMENT", "disagreement", lambda r, c: r.disagreement or None),
    ),
    links=(
        Link("NodeSet", "nodesets", lambda r, c: _one(r.nodeset)),
        Link("pod", "pods", lambda r, c: _one(r.pod)),
        Link("Kubernetes node", "kubenodes", lambda r, c: (Key("", r.kubenode),) if r.kubenode else ()),
        Link("jobs", "jobs", lambda r, c: r.jobs or ()),
    ),
    verbs=("node.drain", "node.undrain"),
    detail=_detail,
    summary=lambda r, c: " ▸ ".join(
        p
        for p in (
            str(r.nodeset.name) if r.nodeset else "",
            f"pod {r.pod.name}" if r.pod else "",
            r.id.name,
            *(f"job {j}" for j in (r.jobs or ())[:3]),
        )
        if p
    ),
    says=_says,
    severity=_severity,
    marked=lambda r, c: bool(r.disagreement),
    about=lambda r: (("Pod", r.pod.namespace, r.pod.name),) if r.pod else (),
    owner="nodesets",
    other="pods",
)
