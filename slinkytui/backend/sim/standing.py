"""Objects that stand in a simulated cluster from the start: nodes and the definitions of the custom resources."""

from __future__ import annotations

import uuid
from typing import Any

from slinkytui.backend.sim.objects import rfc3339
from slinkytui.backend.sim.scenario import Set


def host(one: Set, at: int, name: str, since: str, now: str) -> dict[str, Any]:
    """A node that is Ready since `since`, big enough for one worker of the set."""
    gpus = {"nvidia.com/gpu": str(one.gpus)} if one.gpus else {}
    room = {"cpu": str(one.cpus), "memory": f"{one.memory_mib}Mi", "pods": "110", "ephemeral-storage": "1Ti", **gpus}
    healthy = [
        {"type": t, "status": "False", "reason": r, "message": m, "lastHeartbeatTime": now, "lastTransitionTime": since}
        for t, r, m in (
            ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        )
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
             "lastHeartbeatTime": now, "lastTransitionTime": since}  # fmt: skip
    info = {"kubeletVersion": "v1.36.3", "osImage": "Debian GNU/Linux 13", "kernelVersion": "6.12.48", "operatingSystem": "linux",
            "architecture": "amd64", "containerRuntimeVersion": "sim://1", "machineID": "", "systemUUID": "", "bootID": ""}  # fmt: skip
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    addresses = [
        {"type": "InternalIP", "address": f"10.{at // 250 + 1}.0.{at % 250 + 1}"},
        {"type": "Hostname", "address": name},
    ]
    status = {
        "conditions": [*healthy, ready],
        "nodeInfo": info,
        "capacity": room,
        "allocatable": room,
        "addresses": addresses,
    }
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def established(document: dict[str, Any], now: float) -> dict[str, Any]:
    """A definition that is established."""
    stamp, spec = rfc3339(now - 26 * 3_600.0), document["spec"]
    conditions = [
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found", "lastTransitionTime": stamp},
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted",
         "lastTransitionTime": stamp},
    ]  # fmt: skip
    status = {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": ["v1beta1"]}
    # A UID that is not drawn: what else the scenario draws stays the same with more or fewer definitions.
    meta = {**document["metadata"], "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, document["metadata"]["name"]))}
    return {**document, "metadata": meta, "spec": {**spec, "conversion": {"strategy": "None"}}, "status": status}
