"""The cells of a kind's rows as the API server prints them, one function for each kind that has more than name and age."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

Object = dict[str, Any]
NONE: Final = "<none>"


def _since(stamp: Any) -> float | None:
    if not stamp:
        return None
    return datetime.fromisoformat(str(stamp)).astimezone(UTC).timestamp()


def age(stamp: Any, now: float) -> str:
    """How long ago, as kubectl and the server write it; `<unknown>` for no time."""
    at = _since(stamp)
    return "<unknown>" if at is None else duration(now - at)


def duration(seconds: float) -> str:
    if seconds < -1:
        return "<invalid>"
    s = max(0, int(seconds))
    minutes, hours, days = s // 60, s // 3600, s // 86_400

    def two(big: int, unit: str, small: int, small_unit: str) -> str:
        return f"{big}{unit}{small}{small_unit}" if small else f"{big}{unit}"

    if s < 120:
        return f"{s}s"
    if minutes < 10:
        return two(minutes, "m", s % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    return two(days // 365, "y", days % 365 if hours < 24 * 365 * 8 else 0, "d")


def _born(found: Object, now: float) -> str:
    return age(found["metadata"].get("creationTimestamp"), now)


def _part(found: Object, name: str) -> Object:
    return found.get(name) or {}


def selector(found: Any) -> str:
    """A label selector, or a plain map of labels."""
    if not found:
        return NONE
    if not found.keys() & {"matchLabels", "matchExpressions"}:
        return ",".join(f"{k}={v}" for k, v in sorted(found.items()))
    terms = [f"{k}={v}" for k, v in sorted((found.get("matchLabels") or {}).items())]
    for e in found.get("matchExpressions") or ():
        values = f" ({','.join(e.get('values') or ())})"
        match e["operator"]:
            case "Exists":
                terms.append(e["key"])
            case "DoesNotExist":
                terms.append(f"!{e['key']}")
            case other:
                terms.append(f"{e['key']} {other.lower()}{values}")
    return ",".join(terms) or NONE


def _containers(found: Object) -> tuple[str, str]:
    inner = _part(_part(_part(found, "spec"), "template"), "spec").get("containers") or ()
    return ",".join(c.get("name", "") for c in inner), ",".join(c.get("image", "") for c in inner)


def pod_status(found: Object) -> str:
    """The word in STATUS: the phase, or what a container says that is worse."""
    status, meta = _part(found, "status"), found["metadata"]
    word = status.get("reason") or status.get("phase") or "Unknown"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    running = False
    for c in reversed(status.get("containerStatuses") or []):
        state = c.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended is not None:
            signal = ended.get("signal")
            word = ended.get("reason") or (f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}")
        elif c.get("ready") and state.get("running") is not None:
            running = True
    if word == "Completed" and running:
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
        word = "Running" if ready else "NotReady"
    if meta.get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(word)


def _pod(found: Object, now: float) -> Sequence[Any]:
    spec, status = _part(found, "spec"), _part(found, "status")
    states = status.get("containerStatuses") or ()
    ready = sum(bool(c.get("ready") and (c.get("state") or {}).get("running") is not None) for c in states)
    restarts = sum(int(c.get("restartCount", 0)) for c in states)
    ends = [((c.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for c in states]
    last = max(filter(None, ends), default=None)
    again = f"{restarts} ({age(last, now)} ago)" if restarts and last else str(restarts)
    gates = spec.get("readinessGates") or ()
    true = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    passed = f"{sum(g['conditionType'] in true for g in gates)}/{len(gates)}" if gates else NONE
    addresses = status.get("podIPs") or [{"ip": status.get("podIP")}]
    return (f"{ready}/{len(spec.get('containers') or ())}", pod_status(found), again, _born(found, now),
            addresses[0].get("ip") or NONE, spec.get("nodeName") or NONE, status.get("nominatedNodeName") or NONE, passed)  # fmt: skip


def _node(found: Object, now: float) -> Sequence[Any]:
    status, info = _part(found, "status"), _part(_part(found, "status"), "nodeInfo")
    ready = next((c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"), None)
    word = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    if _part(found, "spec").get("unschedulable"):
        word += ",SchedulingDisabled"
    labels = found["metadata"].get("labels") or {}
    roles = {k.partition("/")[2] for k in labels if k.startswith("node-role.kubernetes.io/")}
    roles |= {v for k, v in labels.items() if k == "kubernetes.io/role" and v}
    address = {a.get("type"): a.get("address") for a in reversed(status.get("addresses") or [])}
    return (word, ",".join(sorted(roles)) or NONE, _born(found, now), info.get("kubeletVersion", ""), address.get("InternalIP") or NONE,
            address.get("ExternalIP") or NONE, info.get("osImage") or "<unknown>", info.get("kernelVersion") or "<unknown>",
            info.get("containerRuntimeVersion") or "<unknown>")  # fmt: skip


def _service(found: Object, now: float) -> Sequence[Any]:
    spec = _part(found, "spec")
    ports = [
        f"{p.get('port')}{':' + str(p['nodePort']) if p.get('nodePort') else ''}/{p.get('protocol', 'TCP')}"
        for p in spec.get("ports") or ()
    ]
    outside = ",".join(spec.get("externalIPs") or ())
    if spec.get("type") == "LoadBalancer":
        outside = outside or "<pending>"
    if spec.get("type") == "ExternalName":
        outside = spec.get("externalName", "")
    return (spec.get("type", "ClusterIP"), spec.get("clusterIP") or NONE, outside or NONE, ",".join(ports) or NONE,
            _born(found, now), selector(spec.get("selector")))  # fmt: skip


def _deployment(found: Object, now: float) -> Sequence[Any]:
    spec, status = _part(found, "spec"), _part(found, "status")
    return (f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}", status.get("updatedReplicas", 0),
            status.get("availableReplicas", 0), _born(found, now), *_containers(found), selector(spec.get("selector")))  # fmt: skip


def _stateful_set(found: Object, now: float) -> Sequence[Any]:
    ready, want = _part(found, "status").get("readyReplicas", 0), _part(found, "spec").get("replicas", 0)
    return f"{ready}/{want}", _born(found, now), *_containers(found)


def _replica_set(found: Object, now: float) -> Sequence[Any]:
    spec, status = _part(found, "spec"), _part(found, "status")
    return (spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0), _born(found, now),
            *_containers(found), selector(spec.get("selector")))  # fmt: skip


def _daemon_set(found: Object, now: float) -> Sequence[Any]:
    spec, status = _part(found, "spec"), _part(found, "status")
    counts = [status.get(k, 0) for k in ("desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                                         "updatedNumberScheduled", "numberAvailable")]  # fmt: skip
    on = _part(_part(spec, "template"), "spec").get("nodeSelector")
    return (*counts, selector(on), _born(found, now), *_containers(found), selector(spec.get("selector")))


def _revision(found: Object, now: float) -> Sequence[Any]:
    owner = next((o for o in found["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    by = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        by = f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return by, found.get("revision", 0), _born(found, now)


def _budget(found: Object, now: float) -> Sequence[Any]:
    spec = _part(found, "spec")
    return (str(spec.get("minAvailable", "N/A")), str(spec.get("maxUnavailable", "N/A")),
            _part(found, "status").get("disruptionsAllowed", 0), _born(found, now))  # fmt: skip


def _claim(found: Object, now: float) -> Sequence[Any]:
    spec, status = _part(found, "spec"), _part(found, "status")
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    bound = bool(spec.get("volumeName"))
    return (status.get("phase", ""), spec.get("volumeName", ""), _part(status, "capacity").get("storage", "") if bound else "",
            ",".join(short.get(m, m) for m in status.get("accessModes") or ()) if bound else "", spec.get("storageClassName", ""),
            spec.get("volumeAttributesClassName") or "<unset>", _born(found, now), spec.get("volumeMode") or "<unset>")  # fmt: skip


def _event(found: Object, now: float) -> Sequence[Any]:
    """Without a name in front: the name is the last, wide column."""
    about, source = _part(found, "involvedObject"), _part(found, "source")
    first = age(found.get("firstTimestamp") or found.get("eventTime"), now)
    series = _part(found, "series")
    last = (
        age(series.get("lastObservedTime") or found.get("lastTimestamp"), now)
        if series or found.get("lastTimestamp")
        else first
    )
    who = source.get("component") or found.get("reportingComponent", "")
    where = source.get("host") or found.get("reportingInstance", "")
    return (last, found.get("type", ""), found.get("reason", ""), f"{about.get('kind', '').lower()}/{about.get('name', '')}",
            about.get("fieldPath", ""), f"{who}, {where}" if who and where else who or where, (found.get("message") or "").strip(), first,
            series.get("count") or found.get("count") or 1, found["metadata"]["name"])  # fmt: skip


def _bound(found: Object, now: float) -> Sequence[Any]:
    subjects = found.get("subjects") or ()
    role = _part(found, "roleRef")

    def names(kind: str) -> str:
        return ", ".join(
            f"{s['namespace']}/{s['name']}" if s.get("namespace") else s["name"]
            for s in subjects
            if s.get("kind") == kind
        )

    return (
        f"{role.get('kind')}/{role.get('name')}",
        _born(found, now),
        names("User"),
        names("Group"),
        names("ServiceAccount"),
    )


def _count(found: Object) -> int:
    return len(found.get("data") or ()) + len(found.get("binaryData") or ())


def _created(found: Object, now: float) -> Sequence[Any]:
    return (found["metadata"].get("creationTimestamp", ""),)


CELLS: Final[dict[str, Callable[[Object, float], Sequence[Any]]]] = {
    "pods": _pod, "nodes": _node, "services": _service, "events": _event, "deployments": _deployment, "statefulsets": _stateful_set,
    "replicasets": _replica_set, "daemonsets": _daemon_set, "controllerrevisions": _revision, "poddisruptionbudgets": _budget,
    "persistentvolumeclaims": _claim, "rolebindings": _bound, "clusterrolebindings": _bound, "roles": _created, "clusterroles": _created,
    "customresourcedefinitions": _created,
    "namespaces": lambda o, now: (_part(o, "status").get("phase", ""), _born(o, now)),
    "secrets": lambda o, now: (o.get("type", "Opaque"), _count(o), _born(o, now)),
    "configmaps": lambda o, now: (_count(o), _born(o, now)),
    "leases": lambda o, now: (_part(o, "spec").get("holderIdentity", ""), _born(o, now)),
}  # fmt: skip


def _aged(found: Object, now: float) -> Sequence[Any]:
    return (_born(found, now),)


def cells(plural: str, found: Object, now: float) -> list[Any]:
    """A row of one of Kubernetes' own kinds, in the order of its columns."""
    made = CELLS.get(plural, _aged)(found, now)
    return list(made) if plural == "events" else [found["metadata"]["name"], *made]
