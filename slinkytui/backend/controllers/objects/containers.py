"""The operator's own containers of a worker pod, before the user's are merged over them."""

from __future__ import annotations

from typing import Any, Final

from slinkytui.backend.controllers.objects import marks
from slinkytui.backend.controllers.objects.conf import own_share, slurmd_args, ssh_volumes
from slinkytui.backend.crds.nodeset import NodeSet

SLURMD_PORT: Final = 6818
SSH_PORT: Final = 22
_LOGS: Final = "/var/log/slurm"
_LOG: Final = f"{_LOGS}/slurmd.log"
_STOP: Final = "scontrol update nodename=$(hostname) state=down reason='slurm-operator: Pod is terminating';"
_TAIL: Final = """set -eu
fifo="${SOCKET:-/tmp/logfile.log}"
trap 'exit 0' TERM
trap 'exit 1' INT HUP
mkdir -p "$(dirname "$fifo")"
if [ ! -p "$fifo" ]; then
    rm -f "$fifo"
    mkfifo -m 777 "$fifo"
fi
while true; do
    cat "$fifo" &
    wait "$!" || true
    sleep 1 &
    wait "$!" || true
done
"""
"""Prints what is written into the FIFO. It waits in the background, where a signal is heard at once, and never removes a
FIFO that is there: its writer would block on what nobody reads."""


def slurmd(nodeset: NodeSet, conf_server: str) -> dict[str, Any]:
    """The main container; `conf_server` is host:port of slurmctld."""
    alive = {"httpGet": {"path": "/livez", "port": marks.SLURMD}, "failureThreshold": 6, "periodSeconds": 10}
    cores, mib = own_share(nodeset)
    ports = [{"name": marks.SLURMD, "containerPort": SLURMD_PORT, "protocol": "TCP"}]
    if nodeset.spec.has_ssh:
        ports.append({"name": "ssh", "containerPort": SSH_PORT, "protocol": "TCP"})
    _, mounts = ssh_volumes(nodeset)
    return {
        "name": marks.SLURMD,
        "args": slurmd_args(nodeset, conf_server),
        "env": [
            {"name": "SLINKY_TOPOLOGY", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{marks.TOPOLOGY}']"}}},
            {"name": "POD_CPUS", "value": str(cores)},
            {"name": "POD_MEMORY", "value": str(mib)},
        ],
        "ports": ports,
        "startupProbe": alive,
        "livenessProbe": alive,
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": marks.SLURMD}},
        "securityContext": {"privileged": True, "capabilities": {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]}},
        "lifecycle": {"preStop": {"exec": {"command": ["/usr/bin/sh", "-c", _STOP]}}},
        "volumeMounts": [
            {"name": "slurm-etc", "readOnly": True, "mountPath": "/etc/slurm"},
            {"name": "slurm-logfile", "mountPath": _LOGS},
            *mounts,
        ],
    }  # fmt: skip


def logfile() -> dict[str, Any]:
    """A sidecar: an init container that goes on."""
    return {
        "name": "logfile",
        "command": ["sh", "-c", _TAIL],
        "env": [{"name": "SOCKET", "value": _LOG}],
        "restartPolicy": "Always",
        "volumeMounts": [{"name": "slurm-logfile", "mountPath": _LOGS}],
    }
