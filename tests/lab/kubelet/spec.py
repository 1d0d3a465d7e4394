"""What a pod's spec asks for, as plain values: environment, files of volumes, names, the image's entry point."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

Object = dict[str, Any]
Lookup = Callable[[str, str], Object]
"""(plural, name) → the object of the pod's namespace; raises KeyError where there is none."""

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DAEMONS: Final = ("slurmd",)


@dataclass(frozen=True)
class File:
    path: str
    data: bytes
    mode: int


def hostname(pod: Object) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])


def is_sidecar(container: Object) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def containers(pod: Object) -> list[Object]:
    """Init containers first: sidecars among them are there before the others start."""
    return [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]


# ── environment ──


def field(pod: Object, path: str, facts: Mapping[str, str]) -> str:
    """A fieldRef; `facts` are those of the running pod (status.podIP …). Nothing there is the empty string."""
    found = re.fullmatch(r"metadata\.(annotations|labels)\['(.*)'\]", path)
    if found:
        return str((pod["metadata"].get(found[1]) or {}).get(found[2], ""))
    if path in facts:
        return facts[path]
    at: Any = pod
    for part in path.split("."):
        at = at.get(part, "") if isinstance(at, dict) else ""
    return str(at)


def expand(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` as Kubernetes does it: what is unknown stays, `$$` is one dollar."""
    return re.sub(
        r"\$(\$|\(([A-Za-z_][\w.-]*)\))", lambda m: "$" if m[1] == "$" else env.get(m[2], m[0]), text
    )  # fmt: skip


def environment(pod: Object, container: Object, lookup: Lookup, facts: Mapping[str, str]) -> dict[str, str]:
    """The container's environment. Raises KeyError for a Secret or ConfigMap (or a key) that is needed and absent."""
    env = {"PATH": PATH, "HOSTNAME": hostname(pod), "HOME": "/root", "LANG": "C.UTF-8"}
    for source in container.get("envFrom") or []:
        for plural, ref in (("secrets", source.get("secretRef")), ("configmaps", source.get("configMapRef"))):
            if ref:
                data = _data(plural, ref, lookup)
                env |= {source.get("prefix", "") + k: v.decode() for k, v in data.items()}
    for entry in container.get("env") or []:
        value = entry.get("valueFrom")
        if not value:
            env[entry["name"]] = expand(entry.get("value", ""), env)
            continue
        (kind, ref), *_ = value.items()
        if kind == "fieldRef":
            env[entry["name"]] = field(pod, ref["fieldPath"], facts)
        elif kind in ("secretKeyRef", "configMapKeyRef"):
            data = _data("secrets" if kind == "secretKeyRef" else "configmaps", ref, lookup)
            if ref["key"] in data:
                env[entry["name"]] = data[ref["key"]].decode()
            elif not ref.get("optional"):
                raise KeyError(f"{kind} {ref['name']}: no key {ref['key']}")
        elif kind == "resourceFieldRef":
            group, name = ref["resource"].split(".", 1)
            env[entry["name"]] = str((container.get("resources", {}).get(group) or {}).get(name, "0"))
    return env


def _data(plural: str, ref: Object, lookup: Lookup) -> dict[str, bytes]:
    try:
        found = lookup(plural, ref.get("name") or ref["secretName"])
    except KeyError:
        if ref.get("optional"):
            return {}
        raise
    if plural == "secrets":
        return {k: base64.b64decode(v) for k, v in (found.get("data") or {}).items()}
    plain = {k: v.encode() for k, v in (found.get("data") or {}).items()}
    return plain | {k: base64.b64decode(v) for k, v in (found.get("binaryData") or {}).items()}


# ── volumes ──


def files(pod: Object, volume: Object, lookup: Lookup, facts: Mapping[str, str]) -> list[File] | None:
    """The files of a volume, None for one that starts empty. Raises KeyError for what is needed and absent."""
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    if "projected" in volume:
        sources, default = volume["projected"]["sources"], volume["projected"].get("defaultMode", 0o644)
    else:
        kind = next((k for k in ("secret", "configMap", "downwardAPI") if k in volume), None)
        if kind is None:
            return None
        sources, default = [{kind: volume[kind]}], volume[kind].get("defaultMode", 0o644)
    # A group that should read them gets at least that.
    more = 0o440 if group is not None else 0
    return [f for s in sources for f in _source(pod, s, default, more, lookup, facts)]


def _source(
    pod: Object, source: Object, default: int, more: int, lookup: Lookup, facts: Mapping[str, str]
) -> Iterable[File]:
    (kind, ref), *_ = source.items()
    if kind == "downwardAPI":
        for item in ref.get("items") or []:
            text = field(pod, item["fieldRef"]["fieldPath"], facts)
            yield File(item["path"], text.encode(), item.get("mode", default) | more)
        return
    if kind not in ("secret", "configMap"):
        raise KeyError(f"a volume source {kind} is not served")
    data = _data("secrets" if kind == "secret" else "configmaps", ref, lookup)
    for item in ref.get("items") or [{"key": k, "path": k} for k in data]:
        if item["key"] in data:
            yield File(item["path"], data[item["key"]], item.get("mode", default) | more)
        elif not ref.get("optional"):
            raise KeyError(f"{kind} {ref.get('name') or ref.get('secretName')}: no key {item['key']}")


# ── the image's entry point ──


def conf_server(args: Sequence[str]) -> tuple[str, int] | None:
    """Host and port of `--conf-server HOST:PORT`."""
    for flag, value in pairwise(args):
        if flag == "--conf-server":
            host, _, port = value.partition(":")
            return host, int(port or 6817)
    return None


def slurmd_arguments(words: Sequence[str], env: Mapping[str, str], cores: int, megabytes: int) -> list[str]:
    """slurmd's words as the image makes them: what the pod may not use is added to `--conf`, in front of the rest.

    An empty `Topology=` is left out: slurmd takes the next word for its value.
    """
    out = list(words)
    if "--conf" not in out[:-1]:
        return out
    at = out.index("--conf") + 1
    kept = [w for w in out[at].split() if w != "Topology="]
    spare_cores, spare_mb = cores - int(env.get("POD_CPUS") or 0), megabytes - int(env.get("POD_MEMORY") or 0)
    added = [
        f"{name}={spare}"
        for name, spare, asked in (
            ("CoreSpecCount", spare_cores, env.get("POD_CPUS")),
            ("MemSpecLimit", spare_mb, env.get("POD_MEMORY")),
        )
        if asked not in (None, "", "0") and spare > 0
    ]
    out[at] = " ".join([*added, *kept])
    return out


# ── names ──


def host_lines(pods: Iterable[tuple[Object, str]], services: Mapping[str, str]) -> str:
    """/etc/hosts of every pod: `pods` with their addresses, `services` are names and where they lead."""
    lines = ["127.0.0.1 localhost"]
    for pod, address in pods:
        names = [hostname(pod)]
        if pod["spec"].get("subdomain"):
            full = f"{names[0]}.{pod['spec']['subdomain']}.{pod['metadata']['namespace']}"
            names = [f"{full}.svc.cluster.local", f"{full}.svc", full, *names]
        lines.append(f"{address} {' '.join(names)}")
    lines += [f"{address} {name}" for name, address in sorted(services.items())]
    return "\n".join(lines) + "\n"
