"""What an engine is told at its start. Travels to the engine's process as JSON."""

from __future__ import annotations

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`slurm` holds URLs, or NAMESPACE/CONTROLLER=URL; `namespace` "" is all namespaces."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    slurm: tuple[str, ...] = ()
    token_file: str = ""
    ca_file: str = ""
    read_only: bool = False
    journal: str = ""
    actor: str = ""
