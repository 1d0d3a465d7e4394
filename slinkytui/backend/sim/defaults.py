"""The defaults that the API server writes into Kubernetes' own kinds, as far as clients look at them."""

from __future__ import annotations

import base64
from typing import Any

from slinkytui.backend.sim.objects import Served

Object = dict[str, Any]


def filled(served: Served, found: Object) -> Object:
    """The object with the defaults of its kind; changes it."""
    match served.plural:
        case "pods":
            _pod(found.setdefault("spec", {}))
        case "deployments" | "statefulsets" | "daemonsets" | "replicasets":
            _workload(served.plural, found.setdefault("spec", {}))
        case "services":
            _service(found.setdefault("spec", {}))
        case "secrets":
            _secret(found)
        case "namespaces":
            labels = found["metadata"].get("labels") or {}
            found["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": found["metadata"]["name"]}
            found.setdefault("spec", {"finalizers": ["kubernetes"]})
            found["status"] = {"phase": "Active"}
        case "persistentvolumeclaims":
            found.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        case "customresourcedefinitions":
            found["spec"].setdefault("conversion", {"strategy": "None"})
    return found


def _into(found: Object, **values: Any) -> None:
    for key, value in values.items():
        found.setdefault(key, value)


def _pod(spec: Object) -> None:
    _into(spec, restartPolicy="Always", dnsPolicy="ClusterFirst", schedulerName="default-scheduler", securityContext={},
          terminationGracePeriodSeconds=30, enableServiceLinks=True)  # fmt: skip
    for c in [*spec.get("containers", ()), *(spec.get("initContainers") or ())]:
        image = str(c.get("image", ""))
        tag = image.rpartition("/")[2].partition(":")[2]
        _into(c, imagePullPolicy="Always" if tag in ("", "latest") and "@" not in image else "IfNotPresent", resources={},
              terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")  # fmt: skip
        for p in c.get("ports") or ():
            _into(p, protocol="TCP")


def _workload(plural: str, spec: Object) -> None:
    _pod(spec.setdefault("template", {}).setdefault("spec", {}))
    if plural != "daemonsets":
        _into(spec, replicas=1)
    if plural == "deployments":
        _into(spec, revisionHistoryLimit=10, progressDeadlineSeconds=600, strategy={"type": "RollingUpdate"})
        if spec["strategy"].get("type") == "RollingUpdate":
            spec["strategy"].setdefault("rollingUpdate", {"maxUnavailable": "25%", "maxSurge": "25%"})
    elif plural != "replicasets":
        _into(spec, revisionHistoryLimit=10, updateStrategy={"type": "RollingUpdate"})


def _service(spec: Object) -> None:
    _into(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
    for p in spec.get("ports") or ():
        _into(p, protocol="TCP", targetPort=p.get("port"))


def _secret(found: Object) -> None:
    found.setdefault("type", "Opaque")
    for key, value in (found.pop("stringData", None) or {}).items():
        found.setdefault("data", {})[key] = base64.b64encode(str(value).encode()).decode()
