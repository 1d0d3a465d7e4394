"""What an engine is told at its start. Travels to the engine's process as JSON."""

from __future__ import annotations

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`slurm` holds URLs, or NAMESPACE/CONTROLLER=URL; `namespace` "" is all namespaces. `sim` names a scenario: the
    engine then starts a simulator and looks at nothing else."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    slurm: tuple[str, ...] = ()
    token_file: str = ""
    ca_file: str = ""
    read_only: bool = False
    sim: str = ""
    sim_speed: float = 1.0
    journal: str = ""
    actor: str = ""
    operate: bool = False
    """Also run the cluster's operator; its lease is in `lease_namespace`."""
    lease_namespace: str = "slinky"
    take_over: bool = False
