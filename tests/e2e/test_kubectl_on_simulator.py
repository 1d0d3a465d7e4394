"""The stock kubectl works at the simulator as at a real server: every command that people use at a Slinky cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Kubectl

pytestmark = pytest.mark.kube


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def nodeset(name: str, replicas: int, **spec: object) -> dict[str, Any]:
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": name},
            "spec": {"controllerRef": {"name": "slurm"}, "replicas": replicas, "slurmd": {"image": "slurmd:26.05"}, **spec}}  # fmt: skip


def pod(name: str, *containers: str) -> dict[str, Any]:
    inner = [{"name": c, "image": "busybox:1", "ports": [{"containerPort": 80}]} for c in containers or ("main",)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": inner},
    }


# Looking.


def test_version_and_resources(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36.3+sim" in kubectl("version")
    rows = kubectl.rows("api-resources")
    assert ["nodesets", "nodesets,nss,slurmd", "slinky.slurm.net/v1beta1", "true", "NodeSet"] in rows
    assert ["pods", "po", "v1", "true", "Pod"] in rows
    verbs = next(r for r in kubectl.rows("api-resources", "-o", "wide") if r[0] == "leases")
    assert verbs[4] == "create,delete,deletecollection,get,list,patch,update,watch"
    assert "slinky.slurm.net/v1beta1" in kubectl("api-versions").split()
    assert "ok" in kubectl("get", "--raw", "/readyz")


def test_get_prints_the_servers_columns(kubectl: Kubectl) -> None:
    assert kubectl.rows("get", "nodesets", "h100")[0] == ["NAME", "DESIRED", "REPLICAS", "UPDATED", "READY", "AGE"]
    assert kubectl.rows("get", "nss", "h100")[1][:5] == ["h100", "8", "8", "8", "8"]
    head, row = kubectl.rows("get", "nodesets", "h100", "-o", "wide")
    assert head[5:9] == ["IDLE", "ALLOCATED", "DOWN", "DRAIN"] and all(c.isdigit() for c in row[5:9])
    head, *rows = kubectl.rows("get", "pods", "-o", "wide")
    assert head[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert next(r for r in rows if r[0] == "h100-0")[1:4] == ["1/1", "Running", "0"]
    assert next(r for r in kubectl.rows("get", "nodes") if r[0] == "node-a100-2")[1] == "Ready,SchedulingDisabled"
    assert kubectl.rows("get", "crd")[0] == ["NAME", "CREATED", "AT"]


def test_get_in_every_form(kubectl: Kubectl) -> None:
    assert kubectl("get", "nodeset", "h100", "-o", "name") == "nodeset.slinky.slurm.net/h100\n"
    assert kubectl("get", "nodeset", "h100", "-o", "jsonpath={.spec.replicas} {.kind}") == "8 NodeSet"
    assert json.loads(kubectl("get", "nodeset", "h100", "-o", "json"))["spec"]["scalingMode"] == "StatefulSet"
    assert "  workloadDisruptionProtection: true\n" in kubectl("get", "nodeset", "h100", "-o", "yaml")
    assert kubectl.rows("get", "pods", "-o", "custom-columns=N:.metadata.name,ON:.spec.nodeName")[0] == ["N", "ON"]
    assert json.loads(kubectl("get", "pods", "-o", "json"))["kind"] == "List"


def test_get_chooses(kubectl: Kubectl) -> None:
    a100 = ["a100-0", "a100-1", "a100-2", "a100-3"]
    named = kubectl.rows("get", "pods", "--no-headers", "-l", "app.kubernetes.io/instance in (a100)")
    assert [r[0] for r in named] == a100
    assert [
        r[1] for r in kubectl.rows("get", "po", "-A", "--no-headers", "-l", "app.kubernetes.io/instance=a100")
    ] == a100
    on = kubectl.rows("get", "pods", "--field-selector", "spec.nodeName=node-a100-1", "--no-headers")
    assert [r[0] for r in on] == ["a100-1"]
    two = kubectl("get", "nodes/node-a100-0", "nodesets/a100", "-o", "name").split()
    assert two == ["node/node-a100-0", "nodeset.slinky.slurm.net/a100"]
    assert "pod/a100-0" in kubectl("get", "all") and "service/slurm-restapi" in kubectl("get", "all")
    pages = kubectl.rows("get", "nodes", "--chunk-size", "3", "--no-headers")
    assert len(pages) >= 16 and pages == sorted(pages)
    assert "field label not supported: spec.what" in kubectl("get", "pods", "--field-selector", "spec.what=1", code=1)


def test_what_is_not_there(either: Kubectl) -> None:
    said = either("get", "nodeset", "nope", code=1)
    assert said == 'Error from server (NotFound): nodesets.slinky.slurm.net "nope" not found\n'
    assert 'the server doesn\'t have a resource type "things"' in either("get", "things", code=1)
    assert either("get", "configmaps", "-l", "a=never") == "No resources found in slurm namespace.\n"


def test_describe_shows_state_and_events(kubectl: Kubectl) -> None:
    node = kubectl("describe", "node", "node-h100-1")
    assert re.search(r"nvidia.com/gpu: +8", node) and "KubeletReady" in node and re.search(r"slurm +h100-1 ", node)
    assert "Scaling Mode:" in kubectl("describe", "nodeset", "h100")
    kubectl("apply", "-f", kubectl.put(nodeset("told", 1)))
    kubectl("wait", "nodeset/told", "--for=jsonpath={.status.readyReplicas}=1", "--timeout=20s")
    assert "SuccessfulCreate" in kubectl("describe", "nodeset", "told")
    events = re.findall(r"^  Normal +(\w+)", kubectl("describe", "pod", "told-0"), re.M)
    assert sorted(events) == ["Created", "Pulled", "Scheduled", "Started"]
    assert "Controlled By:  NodeSet/told" in kubectl("describe", "pod", "told-0")
    kubectl("delete", "nodeset", "told")


def test_events_in_both_groups(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", kubectl.put(pod("seen")))
    kubectl("wait", "pod/seen", "--for=condition=Ready", "--timeout=20s")
    assert "Successfully assigned slurm/seen to node-" in kubectl("events", "--for", "pod/seen")
    sorted_ = kubectl.rows("get", "events", "--sort-by=.lastTimestamp", "--field-selector", "involvedObject.name=seen")
    assert sorted_[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"] and sorted_[1][2] == "Scheduled"
    both = [json.loads(kubectl("get", kind, "-o", "json"))["items"] for kind in ("events", "events.v1.events.k8s.io")]
    first = {e["metadata"]["uid"]: e["message"] for e in both[0]}
    assert first.items() <= {e["metadata"]["uid"]: e["note"] for e in both[1]}.items()
    kubectl("delete", "pod", "seen")


def test_logs_are_honest(kubectl: Kubectl) -> None:
    assert "there is no process behind this container" in kubectl("logs", "h100-1")
    assert len(kubectl("logs", "h100-1", "--tail=1").splitlines()) == 1
    assert re.match(r"\d{4}-\d\d-\d\dT", kubectl("logs", "h100-1", "--timestamps"))
    assert "container what is not valid for pod h100-1" in kubectl("logs", "h100-1", "-c", "what", code=1)
    assert "the simulator runs no containers" in kubectl("exec", "h100-1", "--", "true", code=1)


def test_rights(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "delete", "nodesets") == "yes\n"
    assert kubectl("--context", "sim-reader", "auth", "can-i", "delete", "nodesets", code=1).startswith("no")
    assert kubectl("--context", "sim-reader", "auth", "can-i", "list", "nodesets") == "yes\n"
    assert ["*.*", "[]", "[]", "[get", "list", "watch]"] in kubectl.rows(
        "--context", "sim-reader", "auth", "can-i", "--list"
    )
    assert ["Username", "reader"] in kubectl.rows("--context", "sim-reader", "auth", "whoami")
    said = kubectl("--context", "sim-reader", "delete", "pod", "h100-1", code=1)
    assert 'pods "h100-1" is forbidden: User "reader" cannot delete resource "pods"' in said


def test_acting_as_somebody_else(either: Kubectl) -> None:
    assert either("auth", "can-i", "--as", "reader", "delete", "nodesets", code=1).startswith("no")
    assert either("auth", "can-i", "--as", "reader", "list", "nodesets") == "yes\n"
    said = either("--as", "nobody", "get", "pods", code=1)
    assert (
        'pods is forbidden: User "nobody" cannot list resource "pods" in API group "" in the namespace "slurm"' in said
    )


def test_explain(either: Kubectl) -> None:
    said = either("explain", "nodeset.spec.updateStrategy.type")
    assert "KIND:       NodeSet" in said and "ENUM:\n    RollingUpdate\n    OnDelete\n" in said
    assert re.search(r"controllerRef\t<Object> -required-", either("explain", "nss.spec"))
    assert re.search(r"containerPort\t<integer> -required-", either("explain", "pod.spec.containers.ports"))
    assert re.search(r"^ +maxUnavailable\t<", either("explain", "nodeset", "--recursive"), re.M)


# Writing.


def test_client_side_apply(either: Kubectl) -> None:
    assert either("apply", "-f", either.put(config("csa", a="1", b="2"))) == "configmap/csa created\n"
    assert either("apply", "-f", either.put(config("csa", a="1", b="2"))) == "configmap/csa unchanged\n"
    at = either.put(config("csa", a="9"))
    assert '-  b: "2"' in either("diff", "-f", at, code=1)
    assert either("apply", "-f", at) == "configmap/csa configured\n"
    assert either("get", "cm", "csa", "-o", "jsonpath={.data}") == '{"a":"9"}'
    assert either("diff", "-f", at) == ""
    either("delete", "-f", at)


def test_client_side_apply_merges_containers_by_name(either: Kubectl) -> None:
    either("apply", "-f", either.put(pod("merged", "one", "two")))
    changed = pod("merged", "one", "two")
    changed["spec"]["containers"][1]["image"] = "busybox:2"
    either("apply", "-f", either.put(changed))
    assert either("get", "pod", "merged", "-o", "jsonpath={.spec.containers[*].image}") == "busybox:1 busybox:2"
    assert either("get", "pod", "merged", "-o", "jsonpath={.spec.containers[0].imagePullPolicy}") == "IfNotPresent"
    either("delete", "pod", "merged", "--now")


def test_server_side_apply_and_its_conflicts(either: Kubectl) -> None:
    side = ("apply", "--server-side", "-f")
    assert either(*side, either.put(config("ssa", a="1", b="2"))) == "configmap/ssa serverside-applied\n"
    either(*side, either.put(config("ssa", a="1")))
    assert either("get", "cm", "ssa", "-o", "jsonpath={.data}") == '{"a":"1"}'
    other = either.put(config("ssa", a="2"))
    said = either(*side, other, "--field-manager=other", code=1)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in said
    either(*side, other, "--field-manager=other", "--force-conflicts")
    managers = json.loads(either("get", "cm", "ssa", "-o", "json", "--show-managed-fields"))["metadata"][
        "managedFields"
    ]
    assert [(m["manager"], m["operation"], m["fieldsV1"]) for m in managers] == [
        ("other", "Apply", {"f:data": {"f:a": {}}})
    ]
    either("patch", "cm", "ssa", "--type=merge", "-p", '{"data":{"a":"3"}}')
    assert 'conflict with "kubectl-patch" using v1: .data.a' in either(*side, other, "--field-manager=other", code=1)
    either("delete", "cm", "ssa")


def test_from_client_side_to_server_side(either: Kubectl) -> None:
    either("apply", "-f", either.put(config("moved", a="1", b="2")))
    at = either.put(config("moved", a="2"))
    # What kubectl itself has written is no conflict; the second time it owns what it does not say any more.
    either("apply", "--server-side", "-f", at)
    either("apply", "--server-side", "-f", at)
    assert either("get", "cm", "moved", "-o", "jsonpath={.data}") == '{"a":"2"}'
    either("delete", "cm", "moved")


def test_dry_runs(either: Kubectl) -> None:
    at = either.put(config("dry", a="1"))
    assert either("apply", "-f", at, "--dry-run=server") == "configmap/dry created (server dry run)\n"
    assert either("apply", "-f", at, "--dry-run=client") == "configmap/dry created (dry run)\n"
    assert either("apply", "--server-side", "-f", at, "--dry-run=server").endswith("(server dry run)\n")
    assert "scaled (server dry run)" in either("scale", "nodeset/a100", "--replicas=9", "--dry-run=server")
    assert "deleted (server dry run)" in either("delete", "nodeset/a100", "--dry-run=server").replace(
        " from slurm namespace", ""
    )
    assert "NotFound" in either("get", "cm", "dry", code=1)
    assert either("get", "nodeset", "a100", "-o", "jsonpath={.spec.replicas}") == "4"


def test_fields_that_nobody_knows(either: Kubectl) -> None:
    at = either.put(nodeset("typo", 1, replica=3))
    said = either("apply", "-f", at, code=1)
    assert (
        'NodeSet in version "v1beta1" cannot be handled as a NodeSet: strict decoding error: unknown field "spec.replica"'
        in said
    )
    said = either("apply", "-f", at, "--validate=warn", "--dry-run=server")
    assert 'Warning: unknown field "spec.replica"' in said
    wrong = pod("typo")
    wrong["spec"]["contaners"] = []
    assert 'unknown field "spec.contaners"' in either("create", "-f", either.put(wrong), code=1)


def test_the_schema_is_kept(either: Kubectl) -> None:
    said = either("apply", "-f", either.put(nodeset("bad", 1, scalingMode="Both")), code=1)
    assert 'spec.scalingMode: Unsupported value: "Both": supported values: "DaemonSet", "StatefulSet"' in said
    lacking = nodeset("bad", 1)
    del lacking["spec"]["controllerRef"]
    assert "spec.controllerRef: Required value" in either("create", "-f", either.put(lacking), code=1)


def test_create_replace_and_the_typed_kinds(either: Kubectl) -> None:
    assert either("create", "configmap", "made", "--from-literal=a=1") == "configmap/made created\n"
    assert either("create", "configmap", "made", code=1).endswith('configmaps "made" already exists\n')
    either("create", "secret", "generic", "made", "--from-literal=password=s3cret")
    assert either("get", "secret", "made", "-o", "jsonpath={.data.password} {.type}") == "czNjcmV0 Opaque"
    either("create", "serviceaccount", "made")
    either("create", "deployment", "made", "--image=busybox:1", "--replicas=0")
    assert either.rows("get", "deployment", "made", "--no-headers")[0][:2] == ["made", "0/0"]
    either("create", "role", "made", "--verb=get", "--resource=pods")
    either("create", "poddisruptionbudget", "made", "--selector=app=made", "--min-available=1")
    assert either.rows("get", "pdb", "made", "--no-headers")[0][:3] == ["made", "1", "N/A"]
    whole = json.loads(either("get", "cm", "made", "-o", "json"))
    whole["data"] = {"b": "2"}
    assert either("replace", "-f", either.put(whole)) == "configmap/made replaced\n"
    whole["metadata"]["resourceVersion"] = "1"
    assert "the object has been modified" in either("replace", "-f", either.put(whole), code=1)
    gone = either("delete", "cm/made", "secret/made", "sa/made", "deploy/made", "role/made", "pdb/made")
    assert gone.count("deleted") == 6


def test_the_patch_kinds(either: Kubectl) -> None:
    either("create", "cm", "patched", "--from-literal=a=1")
    either("patch", "cm", "patched", "--type=json", "-p", '[{"op":"replace","path":"/data/a","value":"2"}]')
    either("patch", "cm", "patched", "--type=merge", "-p", '{"data":{"b":"3"}}')
    either("patch", "cm", "patched", "-p", '{"data":{"c":"4"}}')
    assert either("get", "cm", "patched", "-o", "jsonpath={.data}") == '{"a":"2","b":"3","c":"4"}'
    assert "strategic-merge-patch+json is not supported" in either(
        "patch", "nodeset", "a100", "-p", '{"spec":{}}', code=1
    )
    either("patch", "nodeset", "a100", "--subresource=status", "--type=merge", "-p", '{"status":{"collisionCount":1}}')
    assert either("get", "nodeset", "a100", "-o", "jsonpath={.status.collisionCount} {.metadata.generation}") == "1 1"
    either("delete", "cm", "patched")


def test_label_and_annotate(kubectl: Kubectl) -> None:
    assert kubectl("label", "nodeset", "a100", "team=ml") == "nodeset.slinky.slurm.net/a100 labeled\n"
    said = kubectl("label", "nodeset", "a100", "team=hpc", code=1)
    assert "'team' already has a value (ml), and --overwrite is false" in said
    kubectl("label", "nodeset", "a100", "team=hpc", "--overwrite")
    assert kubectl.rows("get", "nodesets", "-L", "team", "-l", "team=hpc", "--no-headers")[0][-1] == "hpc"
    kubectl("label", "nodeset", "a100", "team-")
    kubectl("annotate", "pod", "a100-1", "nodeset.slinky.slurm.net/pod-deletion-cost=5")
    path = r"jsonpath={.metadata.annotations.nodeset\.slinky\.slurm\.net/pod-deletion-cost}"
    assert kubectl("get", "pod", "a100-1", "-o", path) == "5"


def test_scale_with_a_precondition(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", kubectl.put(nodeset("sized", 1)))
    kubectl("wait", "nodeset/sized", "--for=jsonpath={.status.readyReplicas}=1", "--timeout=20s")
    said = kubectl("scale", "nodeset/sized", "--replicas=3", "--current-replicas=2", code=1)
    assert "Expected replicas to be 2, was 1" in said
    assert kubectl("scale", "nodeset/sized", "--replicas=2", "--current-replicas=1").endswith("scaled\n")
    kubectl("wait", "pod/sized-1", "--for=create", "--timeout=20s")
    kubectl("wait", "pod/sized-1", "--for=condition=Ready", "--timeout=20s")
    scale = json.loads(kubectl("get", "nodeset", "sized", "--subresource=scale", "-o", "json"))
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 2)
    kubectl("scale", "nodeset/sized", "--replicas=0")
    kubectl("wait", "pod/sized-0", "pod/sized-1", "--for=delete", "--timeout=20s")
    kubectl("delete", "nodeset", "sized")


def test_a_watch_tells_of_changes(either: Kubectl) -> None:
    with either.start("get", "cm", "-l", "watched=yes", "--watch", "--output-watch-events", "--no-headers") as watch:
        either(
            "create", "-f", either.put({**config("w", a="1"), "metadata": {"name": "w", "labels": {"watched": "yes"}}})
        )
        assert watch.stdout is not None
        assert watch.stdout.readline().split()[:3] == ["ADDED", "w", "1"]
        either("patch", "cm", "w", "--type=merge", "-p", '{"data":{"b":"2"}}')
        assert watch.stdout.readline().split()[:3] == ["MODIFIED", "w", "2"]
        either("delete", "cm", "w")
        assert watch.stdout.readline().split()[:3] == ["DELETED", "w", "2"]
        watch.terminate()


# Ending.


def test_a_finalizer_holds_what_is_deleted(either: Kubectl) -> None:
    held = nodeset("held", 0)
    held["metadata"]["finalizers"] = ["example.org/hold"]
    either("apply", "-f", either.put(held))
    assert "deleted" in either("delete", "nodeset", "held", "--wait=false")
    assert "timed out waiting" in either("wait", "nodeset/held", "--for=delete", "--timeout=1s", code=1)
    either("patch", "nodeset", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    either("wait", "nodeset/held", "--for=delete", "--timeout=10s")


@pytest.mark.parametrize(("policy", "left"), [("background", 0), ("foreground", 0), ("orphan", 1)])
def test_what_goes_with_its_owner(either: Kubectl, policy: str, left: int) -> None:
    either("create", "cm", "owner")
    uid = either("get", "cm", "owner", "-o", "jsonpath={.metadata.uid}")
    owned = config("owned")
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]
    either("create", "-f", either.put(owned))
    either("delete", "cm", "owner", f"--cascade={policy}")
    assert len(either("get", "cm", "owned", "-o", "name", "--ignore-not-found").split()) == left
    either("delete", "cm", "owned", "--ignore-not-found")


def test_pods_have_time_to_end(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", kubectl.put(pod("short")))
    kubectl("wait", "pod/short", "--for=condition=Ready", "--timeout=20s")
    kubectl("delete", "pod", "short", "--grace-period=5", "--timeout=20s")
    assert "NotFound" in kubectl("get", "pod", "short", code=1)
    kubectl("apply", "-f", kubectl.put(pod("short")))
    assert "force deleted" in kubectl("delete", "pod", "short", "--grace-period=0", "--force")


def test_namespaces(either: Kubectl) -> None:
    either("create", "namespace", "other")
    either("-n", "other", "create", "cm", "inside")
    assert either.rows("get", "ns", "other", "--no-headers")[0][:2] == ["other", "Active"]
    either("delete", "namespace", "other")
    assert "NotFound" in either("-n", "other", "get", "cm", "inside", code=1)


def test_cordon_drain_and_uncordon(kubectl: Kubectl) -> None:
    node = "node-h100-6"
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    said = kubectl("drain", node, "--timeout=20s")
    assert "evicting pod slurm/h100-6" in said and f"node/{node} drained" in said
    kubectl("wait", "pod/h100-6", "--for=create", "--timeout=20s")
    kubectl("wait", "pod/h100-6", "--for=jsonpath={.status.conditions[0].reason}=Unschedulable", "--timeout=20s")
    assert kubectl("uncordon", node) == f"node/{node} uncordoned\n"
    kubectl("wait", "pod/h100-6", "--for=condition=Ready", "--timeout=20s")


def test_a_budget_stops_a_drain(kubectl: Kubectl) -> None:
    node = "node-h100-7"
    kubectl("create", "pdb", "all", "--selector=nodeset.slinky.slurm.net/pod-name=h100-7", "--min-available=1")
    said = kubectl("drain", node, "--timeout=2s", code=1)
    assert "Cannot evict pod as it would violate the pod's disruption budget." in said
    kubectl("delete", "pdb", "all")
    kubectl("uncordon", node)


def test_our_own_definitions_apply(either: Kubectl, tmp_path: Path) -> None:
    from slinkytui.backend.crds import documents

    (tmp_path / "crds.yaml").write_text(documents(), encoding="utf-8")
    said = either("apply", "--server-side", "--force-conflicts", "-f", str(tmp_path / "crds.yaml"))
    assert said.count("serverside-applied") == 6
    either("wait", "crd/nodesets.slinky.slurm.net", "--for=condition=Established", "--timeout=5s")
