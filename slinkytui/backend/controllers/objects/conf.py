"""What slurmd is started with: its arguments and the part of the machine that it may count as its own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

from slinkytui.backend.controllers.objects.names import ssh_config
from slinkytui.backend.crds.nodeset import NodeSet, malformed_conf
from slinkytui.backend.crds.quantity import parse_quantity

TOPOLOGY_FRAGMENT: Final = "'\"$SLINKY_TOPOLOGY\"'"
"""Ends the quotes that stand around all of it, lets the image's shell put the topology in, and opens them again."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:,/@+-]+", re.ASCII)
_MIB: Final = 2**20


def conf_words(name: str, extra: str) -> list[str]:
    """The Key=Value words of --conf, sorted. `name` is the NodeSet's name in Slurm; an `extra` with a malformed word is
    ignored as a whole.

    The topology comes last, and words without a value are left out: slurmd takes what follows an empty value for the value.
    """
    given: dict[str, list[str]] = defaultdict(list)
    for word in "" if malformed_conf(extra) else extra.split():
        key, _, value = word.partition("=")
        given[key.capitalize()] += value.split(",")
    features = {f.strip() for f in (name, *given.pop("Feature", ()), *given.pop("Features", ()))} - {""}
    words = {k: ",".join(v) for k, v in given.items()}
    topology = words.pop("Topology", TOPOLOGY_FRAGMENT)
    found = sorted({**words, "Features": ",".join(sorted(features))}.items())
    return [f"{k}={v}" for k, v in (*found, ("Topology", topology)) if v]


def with_topology(args: Sequence[str], topology: str) -> list[str]:
    """The arguments of a worker whose machine is known: its topology as it stands, or no word of one. Images that rewrite
    --conf cut the fragment off and put their own words behind the rest."""
    if topology and not _PLAIN.fullmatch(topology):
        return list(args)  # the shell would read it; the fragment hands it over unread
    word = f" Topology={topology}" if topology else ""
    return [a.replace(f" Topology={TOPOLOGY_FRAGMENT}", word) for a in args]


def slurmd_args(nodeset: NodeSet, conf_server: str) -> list[str]:
    words = " ".join(conf_words(nodeset.slurm_name, nodeset.spec.extra_conf))
    return ["-Z", "--conf-server", conf_server, "--conf", f"'{words}'"]


def own_share(nodeset: NodeSet) -> tuple[int, int]:
    """(cores, MiB) by the limits of the container, else of the pod: cores rounded up, memory down; 0 without a limit."""
    pod = (nodeset.spec.template["spec"].get("resources") or {}).get("limits") or {}
    own = nodeset.spec.slurmd["resources"].get("limits") or {}
    return ceil(_limit(own, pod, "cpu")), int(_limit(own, pod, "memory") // _MIB)


def _limit(own: Mapping[str, Any], pod: Mapping[str, Any], name: str) -> Any:
    return parse_quantity(own.get(name, "0")).value or parse_quantity(pod.get(name, "0")).value


def sshd_config(nodeset: NodeSet) -> str:
    """The text of sshd_config, "" without ssh."""
    if nodeset.spec.ssh is None or not nodeset.spec.ssh.enabled:
        return ""
    lines = [
        "#", "### GENERAL ###", "Include /etc/ssh/sshd_config.d/*.conf", "UsePAM yes", "Subsystem sftp internal-sftp",
        "AuthenticationMethods publickey password", "#", "### EXTRA CONFIG ###", nodeset.spec.ssh.extra_sshd_config,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def ssh_volumes(nodeset: NodeSet) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(volumes, mounts) of sshd's and sssd's files; none without ssh."""
    ssh = nodeset.spec.ssh
    if ssh is None or not ssh.enabled:
        return [], []
    items = [{"key": "sshd_config", "path": "sshd_config", "mode": 0o600}]
    secret = [{"key": ssh.sssd_conf_ref.key, "path": "sssd.conf", "mode": 0o600}]
    volumes = [
        projected("ssh-config", {"configMap": {"name": ssh_config(nodeset.meta.name), "items": items}}),
        projected("sssd-conf", {"secret": {"name": ssh.sssd_conf_ref.name, "items": secret}}),
    ]
    mounts = [
        {"name": "ssh-config", "readOnly": True, "mountPath": "/etc/ssh/sshd_config", "subPath": "sshd_config"},
        {"name": "sssd-conf", "readOnly": True, "mountPath": "/etc/sssd/sssd.conf", "subPath": "sssd.conf"},
    ]
    return volumes, mounts


def projected(name: str, source: dict[str, Any]) -> dict[str, Any]:
    """A volume of files that only their owner reads."""
    return {"name": name, "projected": {"sources": [source], "defaultMode": 0o600}}
