"""Pods for the process kubelet, and what the API server and Slurm say of them."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.lab.kube import KubeLab
from tests.lab.slurm import SlurmLab, wait_for

Object = dict[str, Any]

PIPE = """
set -eu
trap 'exit 0' TERM
[ -p "$SOCKET" ] || { rm -f "$SOCKET"; mkfifo -m 777 "$SOCKET"; }
while :; do cat "$SOCKET"; sleep 1; done
"""
LEAVE = "scontrol update nodename=$(hostname) state=down reason='slurm-operator: Pod is terminating';"
NODES = ("kind-1", "kind-2")


def worker(name: str, namespace: str = "slurm") -> Object:
    """A worker pod as the operator makes it."""

    def probe(path: str, failures: int) -> Object:
        return {
            "httpGet": {"path": path, "port": "slurmd", "scheme": "HTTP"},
            "failureThreshold": failures,
            "periodSeconds": 10,
        }

    source = {"secret": {"name": "slurm-auth-slurm", "items": [{"key": "slurm.key", "path": "slurm.key"}]}}
    topology = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['topology.slinky.slurm.net/spec']"}}
    anti = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "slurmd"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": "slurmd"},
            "annotations": {"topology.slinky.slurm.net/spec": ""},
        },
        "spec": {
            "automountServiceAccountToken": False, "enableServiceLinks": False, "hostname": name,
            "subdomain": "slurm-workers-slurm", "terminationGracePeriodSeconds": 30,
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [anti]}},
            "initContainers": [{
                "name": "logfile", "image": "tail:1", "restartPolicy": "Always", "command": ["sh", "-c", PIPE],
                "env": [{"name": "SOCKET", "value": "/var/log/slurm/slurmd.log"}],
                "volumeMounts": [{"name": "slurm-logfile", "mountPath": "/var/log/slurm"}],
            }],
            "containers": [{
                "name": "slurmd", "image": "slurmd:26.05",
                "args": ["-Z", "--conf-server", f"slurm-controller.{namespace}:6817", "--conf",
                         "'Features=worker Topology='\"$SLINKY_TOPOLOGY\"''"],
                "env": [{"name": "SLINKY_TOPOLOGY", "valueFrom": topology}, {"name": "POD_CPUS", "value": "2"},
                        {"name": "POD_MEMORY", "value": "2048"}],
                "lifecycle": {"preStop": {"exec": {"command": ["/usr/bin/sh", "-c", LEAVE]}}},
                "startupProbe": probe("/livez", 6), "livenessProbe": probe("/livez", 6), "readinessProbe": probe("/readyz", 3),
                "ports": [{"containerPort": 6818, "name": "slurmd", "protocol": "TCP"}],
                "securityContext": {"privileged": True},
                "volumeMounts": [{"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True},
                                 {"name": "slurm-logfile", "mountPath": "/var/log/slurm"}],
            }],
            "volumes": [{"name": "slurm-etc", "projected": {"defaultMode": 0o600, "sources": [source]}},
                        {"name": "slurm-logfile", "emptyDir": {"medium": "Memory"}}],
        },
    }  # fmt: skip


def plain(name: str, script: str, **more: Any) -> Object:
    """A pod of one shell script, bound to a node."""
    container = {"name": "main", "image": "sh:1", "command": ["sh", "-c", script]}
    spec = {"nodeName": NODES[0], "automountServiceAccountToken": False, "containers": [container], **more}
    return {"metadata": {"name": name, "namespace": "slurm"}, "spec": spec}


class World:
    """The API server's and Slurm's answers, in the words of the tests."""

    def __init__(self, kube: KubeLab, slurm: SlurmLab) -> None:
        self.kube, self.slurm = kube, slurm

    def url(self, name: str) -> str:
        return f"/api/v1/namespaces/slurm/pods/{name}"

    def create(self, pod: Object) -> str:
        status, answer = self.kube.request("POST", "/api/v1/namespaces/slurm/pods", pod)
        assert status == 201, answer
        return str(pod["metadata"]["name"])

    def pod(self, name: str) -> Object:
        """The pod, {} where it is no more."""
        status, answer = self.kube.request("GET", self.url(name))
        return {} if status == 404 else dict(json.loads(answer))

    def is_ready(self, name: str) -> bool:
        conditions = self.pod(name).get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def ready(self, *names: str) -> None:
        for name in names:
            wait_for(lambda name=name: self.is_ready(name), 15, f"{name} is not ready")

    def main(self, name: str) -> Object:
        """Its first container's status, {} before there is one."""
        return next(iter(self.pod(name).get("status", {}).get("containerStatuses", [])), {})

    def delete(self, name: str, **options: Any) -> None:
        status, answer = self.kube.request("DELETE", self.url(name), options or None)
        assert status in (200, 202), answer

    def gone(self, name: str, seconds: float = 15) -> None:
        wait_for(lambda: not self.pod(name), seconds, f"{name} is still there")

    def release(self, name: str) -> None:
        kind = "application/merge-patch+json"
        self.kube.request("PATCH", self.url(name), {"metadata": {"finalizers": None}}, kind)

    def node(self, name: str) -> str:
        """State and reason in Slurm."""
        return self.slurm.run("sinfo", "-h", "-N", "-n", name, "-p", "all", "-o", "%T %E").strip()

    def rest(self, path: str, body: Object | None = None) -> Object:
        headers = {
            "X-SLURM-USER-TOKEN": self.slurm.token,
            "X-SLURM-USER-NAME": "alice",
            "Content-Type": "application/json",
        }
        request = urllib.request.Request(
            f"{self.slurm.url}/slurm/v0.0.44{path}",
            headers=headers,
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return dict(json.loads(answer.read()))

    def submit(self, script: str, **more: Any) -> int:
        job = {"script": f"#!/bin/sh\n{script}\n", "name": "t", "partition": "all", "current_working_directory": "/tmp",
               "environment": ["PATH=/usr/bin:/bin"], **more}  # fmt: skip
        answer = self.rest("/job/submit", {"job": job})
        assert not answer["errors"], answer
        return int(answer["job_id"])

    def job(self, at: int) -> tuple[str, str]:
        """(state, nodes)"""
        (job,) = self.rest(f"/job/{at}")["jobs"]
        return job["job_state"][0], job["nodes"]
