"""What a worker pod says of itself, as the API server gives it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from slinkytui.backend.controllers.objects import marks
from slinkytui.backend.controllers.objects.names import split_name
from slinkytui.backend.controllers.objects.placement import node_of
from slinkytui.backend.crds.nodeset import NodeSet

Raw = Mapping[str, Any]
Mode = Literal["StatefulSet", "DaemonSet"]


def label(pod: Raw, name: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(name, ""))


def controller_of(pod: Raw) -> Raw:
    """The reference to who controls it; empty for an orphan."""
    refs = pod["metadata"].get("ownerReferences") or ()
    return next((r for r in refs if r.get("controller")), {})


def revision_of(pod: Raw) -> str:
    """The hash of its revision, "" if it has none."""
    return label(pod, marks.HASH)


def ordinal_of(pod: Raw) -> int:
    """The number at the end of its name, -1 without one."""
    return split_name(pod["metadata"].get("name", ""))[1]


def target_of(pod: Raw) -> str:
    """The Kubernetes node that it runs on or is meant for, "" while that is open."""
    spec = pod.get("spec") or {}
    return spec.get("nodeName") or node_of(spec.get("affinity") or {})


def scaling_mode_of(pod: Raw, nodeset: str) -> Mode:
    """By its label; without one by what it was made like: an ordinal behind the NodeSet's name, or a node of its own."""
    found = label(pod, marks.SCALING_MODE)
    if found in ("StatefulSet", "DaemonSet"):
        return "StatefulSet" if found == "StatefulSet" else "DaemonSet"
    parent, ordinal = split_name(pod["metadata"].get("name", ""))
    is_ordinal = parent == nodeset and ordinal >= 0
    if is_ordinal and (label(pod, marks.POD_INDEX) or not node_of((pod.get("spec") or {}).get("affinity") or {})):
        return "StatefulSet"
    return "DaemonSet"


def slurm_node_of(pod: Raw, nodeset: str) -> str:
    """The Slurm node that it registers as, "" while that is not known."""
    spec = pod.get("spec") or {}
    host = str(spec.get("hostname", ""))
    if scaling_mode_of(pod, nodeset) == "DaemonSet":
        return host
    if spec.get("hostNetwork"):
        return str(spec.get("nodeName", ""))
    return host or str(pod["metadata"].get("name", ""))


def identity_of(pod: Raw, nodeset: str) -> str:
    """What its claims are named by: the ordinal as this pod was made with, whatever the padding is now; in DaemonSet mode
    its host name."""
    if scaling_mode_of(pod, nodeset) == "DaemonSet":
        return label(pod, marks.POD_HOSTNAME)
    return label(pod, marks.POD_INDEX) or str(pod["metadata"].get("name", "")).rpartition("-")[2]


def padding_in_use(pods: Iterable[Raw], nodeset: str) -> int | None:
    """The padding that pods of StatefulSet mode were made with, None without such a pod. Another one would give new
    names to pods and claims, and leave the data behind."""
    known = [identity_of(p, nodeset) for p in pods if scaling_mode_of(p, nodeset) == "StatefulSet"]
    return max((len(i) for i in known if len(i) > 1 and i[0] == "0"), default=0) if known else None


def is_made_by_us(pod: Raw, nodeset: str) -> bool:
    """Whether an orphan may be adopted: a revision's hash, and a name that this NodeSet gives."""
    meta = pod["metadata"]
    parent, ordinal = split_name(meta.get("name", ""))
    by_name = (parent == nodeset and ordinal >= 0) or meta.get("generateName") == f"{nodeset}-"
    return bool(revision_of(pod)) and by_name and label(pod, marks.INSTANCE) == nodeset


def label_repairs(pod: Raw, nodeset: NodeSet) -> dict[str, str]:
    """The identity labels that it lacks or has wrong. The padding of a name is not looked at."""
    name = pod["metadata"]["name"]
    wanted = {marks.POD_NAME: name}
    mode = scaling_mode_of(pod, nodeset.meta.name)
    if not label(pod, marks.SCALING_MODE):
        wanted[marks.SCALING_MODE] = mode
    if mode == "StatefulSet" and not label(pod, marks.POD_INDEX):
        wanted[marks.POD_INDEX] = name.rpartition("-")[2]
    host = (pod.get("spec") or {}).get("hostname", "")
    if host and not label(pod, marks.POD_HOSTNAME):
        wanted[marks.POD_HOSTNAME] = host
    return {k: v for k, v in wanted.items() if label(pod, k) != v}


def pod_info_comment(pod: Raw, nodeset: NodeSet | None) -> str:
    """The comment of its Slurm node: which pod it is, on which Kubernetes node, of which NodeSet."""
    found = {
        "namespace": pod["metadata"].get("namespace", ""),
        "podName": pod["metadata"].get("name", ""),
        "node": (pod.get("spec") or {}).get("nodeName", ""),
        "nodeSetName": nodeset.meta.name if nodeset else "",
        "nodeSetUID": nodeset.meta.uid if nodeset else "",
    }
    needed = ("namespace", "podName", "node")
    return json.dumps({k: v for k, v in found.items() if v or k in needed}, separators=(",", ":"), ensure_ascii=False)


def read_comment(comment: str) -> dict[str, str]:
    """The same read back; {} for any other text."""
    try:
        found = json.loads(comment)
    except ValueError:
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("podName"), str):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)}
