"""Ids are types. A Slurm id carries its cluster; a Kubernetes id carries namespace and name.

Each id prints as people write it (`gpu-041`, `4822_7`, `slurm/h100-41`), without the cluster.
"""

from __future__ import annotations

from typing import NamedTuple


class NodeId(NamedTuple):
    """A Slurm node. `cluster` is Slurm's ClusterName."""

    cluster: str
    name: str

    def __str__(self) -> str:
        return self.name


class JobId(NamedTuple):
    """A Slurm job: `id` is the array's or the heterogeneous job's leading id where there is one.

    `task` is the array task of a record that has one (the record of all pending tasks has none),
    `het` the offset in a heterogeneous job. `13`, `13_4` and `10+1` are the spellings of squeue.
    """

    cluster: str
    id: int
    task: int | None = None
    het: int | None = None

    def __str__(self) -> str:
        if self.task is not None:
            return f"{self.id}_{self.task}"
        return f"{self.id}+{self.het}" if self.het is not None else str(self.id)


class SlurmName(NamedTuple):
    """A partition, a reservation or another named thing of a Slurm cluster."""

    cluster: str
    name: str

    def __str__(self) -> str:
        return self.name


class GpuId(NamedTuple):
    """One device: `device` is Slurm's GRES index, or a running number where Slurm gives none."""

    cluster: str
    node: str
    device: int

    def __str__(self) -> str:
        return f"{self.node}:{self.device}"


class Key(NamedTuple):
    """A Kubernetes object of a known kind; `namespace` is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


RowId = NodeId | JobId | SlurmName | GpuId | Key
