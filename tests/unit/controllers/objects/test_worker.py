"""The worker pod, whole and by its parts."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from slinkytui.backend.controllers.objects import marks
from slinkytui.backend.controllers.objects.containers import logfile
from slinkytui.backend.controllers.objects.worker import (
    Extras,
    OnNode,
    Unbuildable,
    build_template,
    build_worker,
    placed,
)
from slinkytui.backend.crds.nodeset import NodeSet
from tests.rules import case, holds
from tests.unit.controllers.objects.worlds import controller, nodeset, required_node

SSH = {"enabled": True, "sssdConfRef": {"name": "sssd", "key": "sssd.conf"}}
NOTHING = hashlib.sha256(b"").hexdigest()


def made(found: NodeSet, place: int | OnNode = 0, **extras: Any) -> dict[str, Any]:
    return build_worker(found, controller(), place, "abc", Extras(**extras))


def slurmd(pod: dict[str, Any]) -> dict[str, Any]:
    return dict(pod["spec"]["containers"][0])


def test_the_whole_of_a_plain_worker() -> None:
    alive = {"httpGet": {"path": "/livez", "port": "slurmd"}, "failureThreshold": 6, "periodSeconds": 10}
    down = "scontrol update nodename=$(hostname) state=down reason='slurm-operator: Pod is terminating';"
    assert made(nodeset(template={"spec": {"hostname": "gpu-"}}), 3) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "gpu-3",
            "generateName": "gpu-",
            "namespace": "ns1",
            "labels": {
                "app.kubernetes.io/name": "slurmd",
                "app.kubernetes.io/instance": "gpu",
                "app.kubernetes.io/component": "worker",
                "slinky.slurm.net/cluster": "c1",
                "controller.kubernetes.io/hash": "abc",
                "nodeset.slinky.slurm.net/pod-name": "gpu-3",
                "nodeset.slinky.slurm.net/pod-index": "3",
                "nodeset.slinky.slurm.net/pod-hostname": "gpu-3",
                "nodeset.slinky.slurm.net/scaling-mode": "StatefulSet",
            },
            "annotations": {
                "kubectl.kubernetes.io/default-container": "slurmd",
                "slinky.slurm.net/sshd-conf-hash": NOTHING,
                "slinky.slurm.net/sssd-conf-hash": NOTHING,
            },
            "ownerReferences": [
                {
                    "apiVersion": "slinky.slurm.net/v1beta1",
                    "kind": "NodeSet",
                    "name": "gpu",
                    "uid": "uid-gpu",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "hostname": "gpu-3",
            "subdomain": "slurm-workers-c1",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "dnsConfig": {"searches": ["slurm-workers-c1.ns1.svc.cluster.local"]},
            "tolerations": [{"key": "nodeset.slinky.slurm.net/worker", "operator": "Equal", "effect": "NoExecute"}],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {
                                "matchExpressions": [
                                    {"key": "app.kubernetes.io/name", "operator": "In", "values": ["slurmd"]}
                                ]
                            },
                        }
                    ]
                }
            },
            "initContainers": [{**logfile(), "image": "tail"}],
            "containers": [
                {
                    "name": "slurmd",
                    "image": "slurmd",
                    "args": [
                        "-Z",
                        "--conf-server",
                        "c1-controller.ns1:6817",
                        "--conf",
                        "'Features=gpu Topology='\"$SLINKY_TOPOLOGY\"''",
                    ],
                    "env": [
                        {
                            "name": "SLINKY_TOPOLOGY",
                            "valueFrom": {
                                "fieldRef": {"fieldPath": "metadata.annotations['topology.slinky.slurm.net/spec']"}
                            },
                        },
                        {"name": "POD_CPUS", "value": "0"},
                        {"name": "POD_MEMORY", "value": "0"},
                    ],
                    "ports": [{"name": "slurmd", "containerPort": 6818, "protocol": "TCP"}],
                    "startupProbe": alive,
                    "livenessProbe": alive,
                    "readinessProbe": {"httpGet": {"path": "/readyz", "port": "slurmd"}},
                    "securityContext": {
                        "privileged": True,
                        "capabilities": {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]},
                    },
                    "lifecycle": {"preStop": {"exec": {"command": ["/usr/bin/sh", "-c", down]}}},
                    "volumeMounts": [
                        {"name": "slurm-etc", "readOnly": True, "mountPath": "/etc/slurm"},
                        {"name": "slurm-logfile", "mountPath": "/var/log/slurm"},
                    ],
                }
            ],
            "volumes": [
                {
                    "name": "slurm-etc",
                    "projected": {
                        "defaultMode": 0o600,
                        "sources": [{"secret": {"name": "auth", "items": [{"key": "slurm.key", "path": "slurm.key"}]}}],
                    },
                },
                {"name": "slurm-logfile", "emptyDir": {"medium": "Memory"}},
            ],
        },
    }


def test_ssh_adds_a_port_files_and_hashes() -> None:
    pod = made(nodeset(ssh=SSH), sssd="abc")
    assert [p["name"] for p in slurmd(pod)["ports"]] == ["slurmd", "ssh"]
    assert [v["name"] for v in pod["spec"]["volumes"]] == ["slurm-etc", "slurm-logfile", "ssh-config", "sssd-conf"]
    assert pod["spec"]["volumes"][2]["projected"]["sources"] == [
        {
            "configMap": {
                "name": "gpu-ssh-config",
                "items": [{"key": "sshd_config", "path": "sshd_config", "mode": 0o600}],
            }
        }
    ]
    assert pod["spec"]["volumes"][3]["projected"]["sources"] == [
        {"secret": {"name": "sssd", "items": [{"key": "sssd.conf", "path": "sssd.conf", "mode": 0o600}]}}
    ]
    assert [(m["mountPath"], m["subPath"]) for m in slurmd(pod)["volumeMounts"][2:]] == [
        ("/etc/ssh/sshd_config", "sshd_config"),
        ("/etc/sssd/sssd.conf", "sssd.conf"),
    ]
    notes = pod["metadata"]["annotations"]
    assert notes[marks.SSSD_HASH] == "abc"
    assert notes[marks.SSHD_HASH] not in ("", NOTHING)


@holds("Q6")
def test_a_change_of_sshd_config_shows_in_the_next_pod() -> None:
    one, other = (made(nodeset(ssh={**SSH, "extraSshdConfig": text})) for text in ("A 1\n", "A 2\n"))
    assert one["metadata"]["annotations"][marks.SSHD_HASH] != other["metadata"]["annotations"][marks.SSHD_HASH]
    assert one["metadata"]["annotations"][marks.SSSD_HASH] == NOTHING


def test_metadata_later_words_win() -> None:
    found = nodeset(
        meta={
            "labels": {"a": "set", "b": "set", "slinky.slurm.net/cluster": "forged"},
            "annotations": {"a": "set", "b": "set", "kubectl.kubernetes.io/default-container": "other"},
        },
        template={"metadata": {"labels": {"b": "template"}, "annotations": {"b": "template"}}},
    )
    meta = made(found)["metadata"]
    assert (meta["labels"]["a"], meta["labels"]["b"], meta["labels"]["slinky.slurm.net/cluster"]) == (
        "set",
        "template",
        "c1",
    )
    assert (meta["annotations"]["a"], meta["annotations"]["b"]) == ("set", "template")
    assert meta["annotations"]["kubectl.kubernetes.io/default-container"] == "slurmd"


@holds("Q29")
@pytest.mark.parametrize("key", ["kubectl.kubernetes.io/last-applied-configuration", "meta.helm.sh/release-name"])
def test_the_books_of_other_tools_stay_on_the_resource(key: str) -> None:
    assert key not in made(nodeset(meta={"annotations": {key: "x"}}))["metadata"]["annotations"]


def test_the_users_lists_and_ours() -> None:
    found = nodeset(
        slurmd={
            "image": "x", "args": ["-vv"], "env": [{"name": "A", "value": "1"}, {"name": "POD_CPUS", "value": "7"}],
            "volumeMounts": [{"name": "d", "mountPath": "/d"}],
        },
        template={"spec": {
            "containers": [{"name": "side", "image": "s"}], "initContainers": [{"name": "warm", "image": "w"}],
            "volumes": [{"name": "d", "emptyDir": {}}], "nodeName": "fixed",
        }},
    )  # fmt: skip
    pod = made(found)
    main = slurmd(pod)
    assert main["args"][-1] == "-vv"
    assert [(e["name"], e.get("value")) for e in main["env"]] == [
        ("A", "1"), ("SLINKY_TOPOLOGY", None), ("POD_CPUS", "7"), ("POD_MEMORY", "0"),
    ]  # fmt: skip
    assert [m["mountPath"] for m in main["volumeMounts"]] == ["/d", "/etc/slurm", "/var/log/slurm"]
    assert [c["name"] for c in pod["spec"]["containers"]] == ["slurmd", "side"]
    assert [c["name"] for c in pod["spec"]["initContainers"]] == ["logfile", "warm"]
    assert [v["name"] for v in pod["spec"]["volumes"]] == ["d", "slurm-etc", "slurm-logfile"]
    assert "nodeName" not in pod["spec"]


@holds("Q5")
def test_a_users_tolerations_and_searches_stand_for_ours() -> None:
    mine = [{"key": "gpu", "operator": "Exists"}]
    pod = made(nodeset(template={"spec": {"tolerations": mine, "dnsConfig": {"searches": ["corp.example"]}}}))
    assert pod["spec"]["tolerations"] == mine
    assert pod["spec"]["dnsConfig"] == {"searches": ["corp.example"]}


@holds("I5")
def test_a_daemon_pod() -> None:
    node = OnNode("node1.example", {marks.TOPOLOGY: "topo:s1"})
    pod = made(nodeset(scalingMode="DaemonSet", template={"spec": {"hostname": "ignored-"}}), node)
    meta = pod["metadata"]
    assert meta["generateName"] == "gpu-"
    assert "name" not in meta
    assert pod["spec"]["hostname"] == meta["labels"][marks.POD_HOSTNAME] == "node1"
    assert meta["labels"][marks.SCALING_MODE] == "DaemonSet"
    assert meta["labels"][marks.POD_NAME] == ""
    assert marks.POD_INDEX not in meta["labels"]
    assert meta["annotations"][marks.TOPOLOGY] == "topo:s1"
    assert "nodeName" not in pod["spec"]
    assert pod["spec"]["affinity"]["nodeAffinity"] == required_node("node1.example")["nodeAffinity"]
    assert pod["spec"]["affinity"]["podAntiAffinity"]


@pytest.mark.parametrize(
    ("place", "flat", "conf"),
    [
        case("W63 Q11", "a daemon without", OnNode("n1", {}), False, "'Features=gpu'"),
        case("W63 Q11", "a daemon with one", OnNode("n1", {marks.TOPOLOGY: "t:s1"}), False, "'Features=gpu Topology=t:s1'"),
        case("W63 Q11", "nobody has one", 0, True, "'Features=gpu'"),
        case("W63", "not known yet", 0, False, "'Features=gpu Topology='\"$SLINKY_TOPOLOGY\"''"),
    ],
)  # fmt: skip
def test_nothing_swallows_the_word_behind_a_topology(place: int | OnNode, flat: bool, conf: str) -> None:
    mode = "StatefulSet" if place == 0 else "DaemonSet"
    found = nodeset(scalingMode=mode, slurmd={"image": "x", "args": ["-vv"]})
    assert slurmd(made(found, place, flat=flat))["args"][3:] == ["--conf", conf, "-vv"]


@pytest.mark.parametrize(
    ("more", "host"),
    [
        case("W34", "the prefix of the set", {}, "gpu-n1"),
        case("W35", "not on the host's network", {"template": {"spec": {"hostNetwork": True}}}, "n1"),
    ],
)
def test_a_prefix_keeps_the_daemons_of_two_sets_apart(more: dict[str, Any], host: str) -> None:
    found = nodeset(scalingMode="DaemonSet", meta={"annotations": {marks.HOST_PREFIX: "gpu-"}}, **more)
    pod = made(found, OnNode("n1.example", {}))
    assert pod["spec"]["hostname"] == pod["metadata"]["labels"][marks.POD_HOSTNAME] == host


@holds("I6")
def test_an_override_is_the_host_name() -> None:
    pod = made(nodeset(scalingMode="DaemonSet"), OnNode("n1", {marks.HOSTNAME_OVERRIDE: "rack7-n1"}))
    assert pod["spec"]["hostname"] == "rack7-n1"


USERS = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
    },
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]},
}


@pytest.mark.parametrize(
    ("spec", "place", "pin", "nodes", "keys"),
    [
        ({}, 0, "", None, ["rack", "kubernetes.io/hostname"]),
        ({"oversubscribeNode": True}, 0, "", None, ["rack"]),
        ({"pinToNode": True}, 0, "n1", ["n1"], ["rack", "kubernetes.io/hostname"]),
        ({"pinToNode": True}, 0, "", None, ["rack", "kubernetes.io/hostname"]),
        ({}, 0, "n1", None, ["rack", "kubernetes.io/hostname"]),
        ({"scalingMode": "DaemonSet"}, OnNode("n2", {}), "", ["n2"], ["rack", "kubernetes.io/hostname"]),
    ],
    ids=["plain", "oversubscribed", "pinned", "pin-unknown", "pin-off", "daemon"],
)
def test_affinity(
    spec: dict[str, Any], place: int | OnNode, pin: str, nodes: list[str] | None, keys: list[str]
) -> None:
    found = made(nodeset(**spec, template={"spec": {"affinity": USERS}}), place, pin=pin)["spec"]["affinity"]
    node = found["nodeAffinity"]
    assert node["preferredDuringSchedulingIgnoredDuringExecution"] == [{"weight": 1, "preference": {}}]
    terms = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [t["matchFields"][0]["values"] for t in terms if "matchFields" in t] == ([nodes] if nodes else [])
    assert len(terms) == 1
    anti = found["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [t["topologyKey"] for t in anti] == keys


@pytest.mark.parametrize(("revision", "expected"), [case("I7", "set", "abc", "abc"), case("I7", "not set", "", None)])
def test_the_label_of_the_revision(revision: str, expected: str | None) -> None:
    pod = build_worker(nodeset(), controller(), 0, revision, Extras())
    assert pod["metadata"]["labels"].get(marks.HASH) == expected


@pytest.mark.parametrize(
    ("spec", "place", "claim"),
    [
        case("I8", "ordinal", {"ordinalPadding": 2}, 4, "data-gpu-04"),
        case("I8", "host", {"scalingMode": "DaemonSet"}, OnNode("n1.example", {}), "data-gpu-n1"),
    ],
)
def test_claims_stand_first_and_replace_volumes(spec: dict[str, Any], place: int | OnNode, claim: str) -> None:
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "other", "emptyDir": {}}]
    found = nodeset(
        **spec, volumeClaimTemplates=[{"metadata": {"name": "data"}}], template={"spec": {"volumes": volumes}}
    )
    assert made(found, place)["spec"]["volumes"][:2] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": claim}},
        {"name": "other", "emptyDir": {}},
    ]


def test_a_controller_outside() -> None:
    outside = controller(external=True, externalConfig={"host": "ctld.example", "port": 7000})
    pod = build_worker(nodeset(), outside, 0, "", Extras(domain="k8s.example"))
    assert slurmd(pod)["args"][2] == "ctld.example:7000"
    assert pod["spec"]["dnsConfig"]["searches"] == ["slurm-workers-c1.ns1.svc.k8s.example"]


@holds("Q22")
def test_no_worker_without_the_clusters_key() -> None:
    keyless = controller(external=True, externalConfig={"host": "h", "port": 1}, slurmKeyRef=None)
    with pytest.raises(Unbuildable, match="slurmKeyRef"):
        build_template(nodeset(), keyless, Extras())


@pytest.mark.parametrize(
    ("prefix", "place"),
    [
        case("W34", "too long", "a" * 63, 0),
        case("W34", "dots", "a.b-", 0),
        case("W34", "no node", "", OnNode("", {})),
        case("W34", "override", "", OnNode("n", {marks.HOSTNAME_OVERRIDE: "Not A Host"})),
    ],
)
def test_no_worker_with_a_host_name_that_cannot_be(prefix: str, place: int | OnNode) -> None:
    with pytest.raises(Unbuildable, match="host name"):
        made(nodeset(template={"spec": {"hostname": prefix} if prefix else {}}), place)


def test_pods_of_one_template_do_not_touch_it() -> None:
    found = nodeset(volumeClaimTemplates=[{"metadata": {"name": "data"}}], template={"spec": {"affinity": USERS}})
    template = build_template(found, controller(), Extras())
    first = placed(found, template, 0, "abc")
    second = placed(found, template, 1, "abc")
    assert first == placed(found, build_template(found, controller(), Extras()), 0, "abc")
    assert first["spec"]["volumes"][0] != second["spec"]["volumes"][0]
    assert template == build_template(found, controller(), Extras())


def test_the_log_sidecar_prints_the_pipe_keeps_it_and_ends_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "logs" / "slurmd.log"
    environment = {"SOCKET": str(pipe), "PATH": "/usr/bin:/bin"}
    write = 'until [ -p "$1" ]; do :; done; echo first > "$1"'
    with subprocess.Popen(
        logfile()["command"], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as sh:
        assert sh.stdout is not None
        try:
            subprocess.run(["sh", "-c", write, "sh", str(pipe)], timeout=20, check=True)
            assert sh.stdout.readline() == "first\n"
            assert pipe.is_fifo()
            sh.terminate()
            assert sh.wait(20) == 0
        finally:
            # What it waited for stays behind in its group, as in a container.
            with suppress(ProcessLookupError):
                os.killpg(sh.pid, signal.SIGKILL)
