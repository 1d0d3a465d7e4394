"""A kubelet whose pods are plain processes: registers nodes, watches the pods bound to them, runs each in a thread."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from tests.lab.kubelet import spec
from tests.lab.kubelet.api import MERGE, Api, Object, Refused, Server
from tests.lab.kubelet.container import Image
from tests.lab.kubelet.forward import Forwarder
from tests.lab.kubelet.network import Network
from tests.lab.kubelet.pod import Worker
from tests.lab.kubelet.sandbox import Sandbox
from tests.lab.kubelet.status import stamp

CLUSTER_HOST = "slurmlab"
"""The name of slurmctld's host in its own configuration, which reaches the workers with it."""


class Slurm(Protocol):
    """What the lab's cluster tells of itself."""

    root: Path
    folder: Path
    ctld_port: int


def image(slurm: Slurm) -> Image:
    """The cluster's own root, its users, and the places that its slurm.conf and gres.conf name."""
    devices = sorted(p.name for p in (slurm.folder / "dev").iterdir())
    lines = [f"mount --bind {slurm.folder}/etc/{f} $R/etc/{f}" for f in ("passwd", "group")]
    lines += ["mkdir -p $R/lab/spool $R/lab/log $R/lab/run $R/lab/dev", "mkdir -p -m 1777 $R/lab/home $R/lab/tmp"]
    lines += [f"ln -s /dev/null $R/lab/dev/{d}" for d in devices]
    return Image(slurm.root, "\n".join(lines))


class Kubelet:
    """Nodes of an API server, from `with` on until its end; nothing of them is left on this host then.

    `slurm` is the cluster that the workers' slurmd join, whatever host and port their arguments name for it. `hurry` scales
    the waits between restarts. Use it in the main thread.
    """

    def __init__(
        self, api: Server, nodes: Sequence[str], slurm: Slurm, *, hurry: float = 0.1, capacity: Object | None = None
    ) -> None:
        self.nodes, self.hurry = tuple(nodes), hurry
        self.capacity = capacity or {"cpu": "64", "memory": "500Gi", "pods": "110"}
        self.image = image(slurm)
        self.stopping = threading.Event()
        self.workers: dict[str, Worker] = {}
        self.errors: list[BaseException] = []
        self._server, self._slurm = api, slurm
        self._lock = threading.Lock()
        self._joined: dict[str, tuple[Object, Sandbox]] = {}
        self._services: dict[str, str] = {}
        self._forwarders: dict[int, Forwarder] = {}

    def __enter__(self) -> Self:
        self.api = Api(self._server)
        self.network = Network()
        self.folder = Path(tempfile.mkdtemp(prefix="kubelet-"))
        self._watcher = threading.Thread(target=self._watch, name="pods", daemon=True)
        try:
            self._services[CLUSTER_HOST] = self.network.gateway
            for name in self.nodes:
                self._register(name)
            self._watcher.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if kind is None and self.errors:
            raise RuntimeError("a pod's thread ended before its pod") from self.errors[0]

    def stop(self) -> None:
        """End every pod's processes at once, without hooks; the pods' objects stay as they are."""
        self.stopping.set()
        self.api.hang_up()
        # First the namespaces: no thread waits for a process that does not end.
        self.network.stop()
        threads = [w.thread for w in list(self.workers.values())]
        for thread in [*threads, self._watcher]:
            if thread.ident is not None:
                thread.join(20)
        for forwarder in self._forwarders.values():
            forwarder.stop()
        self.api.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ── nodes ──

    def _register(self, name: str) -> None:
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
        url = f"/api/v1/nodes/{name}"
        try:
            self.api.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        except Refused as error:
            if error.status != 409:
                raise
        # Admission adds the not-ready taint, and no node controller is there to take it away.
        self.api.call("PATCH", url, {"spec": {"taints": None}}, MERGE)
        now = stamp(time.time())
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        said = {"capacity": self.capacity, "allocatable": self.capacity, "conditions": [ready],
                "addresses": [{"type": "InternalIP", "address": self.network.gateway}, {"type": "Hostname", "address": name}]}  # fmt: skip
        self.api.call("PATCH", f"{url}/status", {"status": said}, MERGE)

    # ── pods ──

    def _watch(self) -> None:
        for event in self.api.watch("/api/v1/pods", self.stopping, self._synced):
            self._take(event["type"], event["object"])

    def _synced(self, pods: list[Object]) -> None:
        there = {p["metadata"]["uid"] for p in pods}
        for uid, worker in list(self.workers.items()):
            if uid not in there:
                worker.vanish()
        for pod in pods:
            self._take("ADDED", pod)

    def _take(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        worker = self.workers.get(uid)
        if worker is not None:
            if kind == "DELETED":
                worker.vanish()
                del self.workers[uid]
            else:
                worker.update(pod)
            return
        finished = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        waits = bool(pod["metadata"].get("deletionTimestamp"))
        if kind == "DELETED" or pod["spec"].get("nodeName") not in self.nodes or (finished and not waits):
            return
        self.workers[uid] = worker = Worker(self, pod)
        worker.thread.start()

    # ── names ──

    def joined(self, pod: Object, sandbox: Sandbox) -> None:
        """A pod has its address: all pods learn its name, and it theirs."""
        with self._lock:
            for container in pod["spec"]["containers"]:
                self._lead(spec.conf_server(container.get("args") or []))
            self._joined[pod["metadata"]["uid"]] = (pod, sandbox)
            self._write_hosts()

    def left(self, pod: Object) -> None:
        with self._lock:
            if self._joined.pop(pod["metadata"]["uid"], None) is not None and not self.stopping.is_set():
                self._write_hosts()

    def _write_hosts(self) -> None:
        text = spec.host_lines([(p, s.address) for p, s in self._joined.values() if s.address], self._services)
        for _, sandbox in self._joined.values():
            try:
                if sandbox.address:
                    sandbox.write_hosts(text)
            except OSError:
                # It ends at this moment, and needs no names any more.
                continue

    def _lead(self, target: tuple[str, int] | None) -> None:
        """Make the controller's name and port lead to the cluster."""
        if target is None:
            return
        host, port = target
        if not host.replace(".", "").isdigit():
            short = host.removesuffix(".svc.cluster.local").removesuffix(".svc")
            self._services |= dict.fromkeys((short, f"{short}.svc", f"{short}.svc.cluster.local"), self.network.gateway)
        if port != self._slurm.ctld_port and port not in self._forwarders:
            self._forwarders[port] = Forwarder((self.network.gateway, port), ("127.0.0.1", self._slurm.ctld_port))

    # ── for tests ──

    def worker(self, namespace: str, name: str) -> Worker:
        """The pod of that name that runs here. Raises KeyError."""
        for worker in list(self.workers.values()):
            if (worker.pod["metadata"]["namespace"], worker.pod["metadata"]["name"]) == (namespace, name):
                return worker
        raise KeyError(f"{namespace}/{name} does not run here")

    def exec(
        self, namespace: str, name: str, *argv: str, container: str = "slurmd", timeout: float = 20
    ) -> subprocess.CompletedProcess[str]:
        """A command in a container. Raises subprocess.TimeoutExpired."""
        worker = self.worker(namespace, name)
        return worker.sandbox.exec(worker.processes[container], argv, timeout)

    def log(self, namespace: str, name: str, container: str = "slurmd") -> str:
        """What a container wrote so far."""
        return (self.worker(namespace, name).sandbox.folder / f"{container}.log").read_text(errors="replace")
