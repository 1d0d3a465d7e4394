"""Record what a real API server says of the kinds that the simulator serves: schemas, resources, printer columns.

`python scripts/record_openapi.py` starts the lab's control plane (tests/lab/kube) and writes
`slinkytui/backend/sim/openapi/kubernetes.json.gz`. Descriptions are left out. The numbers of the protobuf fields, which no
server tells, come from the .proto files of the modules that the lab was built from.
"""

from __future__ import annotations

import gzip
import json
import re
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.lab.kube.binaries import _MODULES, _go  # noqa: E402
from tests.lab.kube.lab import KubeLab  # noqa: E402  (the lab is no installed package)

OUT: Final = ROOT / "slinkytui" / "backend" / "sim" / "openapi" / "kubernetes.json.gz"
RECORDED: Final = {
    "v1": "pods nodes namespaces events secrets services configmaps serviceaccounts persistentvolumeclaims",
    "apps/v1": "deployments statefulsets daemonsets replicasets controllerrevisions",
    "policy/v1": "poddisruptionbudgets",
    "coordination.k8s.io/v1": "leases",
    "events.k8s.io/v1": "events",
    "apiextensions.k8s.io/v1": "customresourcedefinitions",
    "rbac.authorization.k8s.io/v1": "roles rolebindings clusterroles clusterrolebindings",
    "authentication.k8s.io/v1": "selfsubjectreviews",
    "authorization.k8s.io/v1": "selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews",
}
_ALSO: Final = (
    "meta.v1.Status",
    "meta.v1.DeleteOptions",
    "policy.v1.Eviction",
    "autoscaling.v1.Scale",
    "core.v1.Binding",
)


def bare(found: Any) -> Any:
    """Without descriptions. A property that is itself named so stays."""
    if isinstance(found, list):
        return [bare(v) for v in found]
    if not isinstance(found, dict):
        return found
    return {
        k: {name: bare(s) for name, s in v.items()} if k == "properties" else bare(v)
        for k, v in found.items()
        if not (k == "description" and isinstance(v, str))
    }


def references(found: Any) -> set[str]:
    """The names of the schemas that this one speaks of."""
    if isinstance(found, list):
        return set().union(*map(references, found)) if found else set()
    if not isinstance(found, dict):
        return set()
    own = {str(found["$ref"]).rsplit("/", 1)[1]} if isinstance(found.get("$ref"), str) else set()
    return own.union(*map(references, found.values()))


def reachable(schemas: dict[str, Any], start: set[str]) -> dict[str, Any]:
    """The schemas that `start` needs, themselves included."""
    done: dict[str, Any] = {}
    todo = sorted(start)
    while todo:
        name = todo.pop()
        if name not in done:
            done[name] = schemas[name]
            todo += sorted(references(schemas[name]))
    return {name: done[name] for name in sorted(done)}


_FIELD: Final = re.compile(r"^\s*(?:(optional|repeated)\s+([\w.]+)|map<string, ([\w.]+)>)\s+(\w+) = (\d+);")


def messages(schemas: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """By schema and field number: the JSON name ("" for what JSON writes inline), the type, and "repeated", "map" or ""."""
    found: dict[str, dict[str, list[str]]] = {}
    for module in ("k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver"):
        at = subprocess.run([_go(), "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module], cwd=_MODULES / "kubernetes",
                            capture_output=True, text=True, check=True)  # fmt: skip
        for path in sorted(Path(at.stdout.strip()).rglob("generated.proto")):
            found |= _proto(path.read_text(encoding="utf-8"))
    special = ("Time", "MicroTime", "IntOrString", "Quantity", "FieldsV1", "Duration", "JSON", "RawExtension")
    out: dict[str, dict[str, list[str]]] = {}
    todo = sorted(schemas)
    while todo:
        name = todo.pop()
        if name in out or name not in found or name.rpartition(".")[2] in special:
            continue
        known = schemas.get(name, {}).get("properties")
        out[name] = {
            n: ["" if known is not None and f not in known and t in found else f, t, mode]
            for n, (f, t, mode) in found[name].items()
        }
        todo += [t for _, t, _ in out[name].values()]
    return {name: out[name] for name in sorted(out)}


def _proto(text: str) -> dict[str, dict[str, list[str]]]:
    package = re.search(r"^package ([\w.]+);", text, re.M)
    assert package is not None

    def schema(name: str) -> str:
        full = name.lstrip(".") if "." in name else f"{package[1]}.{name}"
        return full.replace("k8s.io.", "io.k8s.", 1).replace("apiextensions_apiserver", "apiextensions-apiserver")

    out: dict[str, dict[str, list[str]]] = {}
    current: dict[str, list[str]] = {}
    for line in text.splitlines():
        if opened := re.match(r"message (\w+) \{", line):
            current = out.setdefault(schema(opened[1]), {})
        elif field := _FIELD.match(line):
            kind = field[2] or field[3]
            typed = kind if kind[0].islower() and "." not in kind else schema(kind)
            current[field[5]] = [field[4], typed, "map" if field[3] else "repeated" if field[1] == "repeated" else ""]
    return out


def record(lab: KubeLab) -> dict[str, Any]:
    def ask(path: str, accept: str = "application/json") -> dict[str, Any]:
        request = urllib.request.Request(
            lab.url + path, headers={"Authorization": f"Bearer {lab.token}", "Accept": accept}
        )
        context = ssl.create_default_context(cafile=str(lab.ca))
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return dict(json.loads(answer.read()))

    schemas: dict[str, Any] = {}
    resources: dict[str, list[dict[str, Any]]] = {}
    columns: dict[str, list[dict[str, Any]]] = {}
    for version, plurals in RECORDED.items():
        at = f"api/{version}" if version == "v1" else f"apis/{version}"
        schemas |= bare(ask(f"/openapi/v3/{at}")["components"]["schemas"])
        wanted = set(plurals.split())
        resources[version] = [r for r in ask(f"/{at}")["resources"] if r["name"].partition("/")[0] in wanted]
        for r in resources[version]:
            if "list" in r["verbs"]:
                table = ask(f"/{at}/{r['name']}?limit=1", "application/json;as=Table;v=v1;g=meta.k8s.io")
                columns[f"{version}/{r['name']}"] = bare(table["columnDefinitions"])
    kinds = {(v.rpartition("/")[0], v.rpartition("/")[2], r["kind"]) for v, rs in resources.items() for r in rs}
    kinds |= {(g, v, f"{k}List") for g, v, k in kinds}
    start = {
        name
        for name, s in schemas.items()
        if name.endswith(_ALSO)
        or any((k["group"], k["version"], k["kind"]) in kinds for k in s.get("x-kubernetes-group-version-kind", ()))
    }
    for s in schemas.values():
        # DeleteOptions and the like list every group of the server.
        if len(s.get("x-kubernetes-group-version-kind", ())) > 1:
            s["x-kubernetes-group-version-kind"] = [k for k in s["x-kubernetes-group-version-kind"] if not k["group"]]
    told = ask("/version")
    kept = reachable(schemas, start)
    return {
        "version": {k: told[k] for k in ("major", "minor", "gitVersion")},
        "schemas": kept, "messages": messages(kept), "resources": resources, "columns": columns,
    }  # fmt: skip


def main() -> None:
    lab = KubeLab.start()
    try:
        found = record(lab)
    finally:
        lab.stop()
    # mtime 0: the same server gives the same bytes.
    packed = gzip.compress(json.dumps(found, separators=(",", ":"), sort_keys=True).encode(), 9, mtime=0)
    OUT.write_bytes(packed)
    print(f"{OUT.relative_to(ROOT)}: {len(found['schemas'])} schemas, {len(packed)} bytes")


if __name__ == "__main__":
    main()
