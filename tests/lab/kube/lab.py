"""One control plane: its files, its processes, and the few things that tests ask of it."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from slinkytui.backend import crds
from tests.lab.kube import hollow, pki
from tests.lab.kube.binaries import path

READY_S: Final = 60.0
# Hollow nodes renew no lease: these would taint them and evict their pods.
_NO_KUBELET: Final = "*,-node-lifecycle-controller,-taint-eviction-controller,-node-ipam-controller"
USERS: Final = ("reader", "nobody")


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on."""
    held = [socket.socket() for _ in range(count)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [int(s.getsockname()[1]) for s in held]
    for s in held:
        s.close()
    return ports


def _listens(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class KubeLab:
    """`token` is the admin's; `tokens` those of a user who may only read and of one who may nothing."""

    folder: Path
    port: int
    etcd_port: int
    token: str
    tokens: dict[str, str]
    crd: bool = True
    audit: bool = False
    """Whether every request is noted in `audit.log`: who, what, which answer."""
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @classmethod
    def start(cls, *, kcm: bool = False, scheduler: bool = False, crd: bool = True, audit: bool = False) -> KubeLab:
        """etcd and the API server, with the custom resources; about three seconds."""
        folder = Path(tempfile.mkdtemp(prefix="kubelab-"))
        port, etcd_port = free_ports(2)
        lab = cls(folder, port, etcd_port, secrets.token_hex(16), {u: secrets.token_hex(16) for u in USERS}, crd, audit)
        try:
            lab._files()
            lab._start_etcd()
            lab.start_apiserver()
            lab._seed()
            for name, wanted in (("kube-controller-manager", kcm), ("kube-scheduler", scheduler)):
                if wanted:
                    lab._start_component(name)
        except BaseException:
            lab.stop()
            raise
        return lab

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def _files(self) -> None:
        pki.write(self.folder)
        lines = [f'{self.token},admin,admin,"system:masters"', *(f"{t},{u},{u}" for u, t in self.tokens.items())]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
        ca = base64.b64encode(self.ca.read_bytes()).decode()
        users = [("admin", self.token), *self.tokens.items()]
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "admin",
            "clusters": [{"name": "lab", "cluster": {"server": self.url, "certificate-authority-data": ca}}],
            "users": [{"name": u, "user": {"token": t}} for u, t in users],
            "contexts": [{"name": u, "context": {"cluster": "lab", "user": u}} for u, _ in users],
        }  # fmt: skip
        self.kubeconfig.write_text(json.dumps(config))
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
                  "rules": [{"level": "Metadata"}]}  # fmt: skip
        (self.folder / "audit.yaml").write_text(json.dumps(policy))
        for name in ("tokens.csv", "kubeconfig"):
            (self.folder / name).chmod(0o600)

    def _spawn(self, name: str, arguments: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [str(path(name)), *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                start_new_session=True,
            )  # fmt: skip

    def _start_etcd(self) -> None:
        at = f"http://127.0.0.1:{self.etcd_port}"
        self._spawn("etcd", ["--data-dir", "etcd", "--unsafe-no-fsync", "--listen-client-urls", at, "--advertise-client-urls", at,
                             "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "error"])  # fmt: skip

    def start_apiserver(self) -> None:
        """Start it and wait until it is ready."""
        self._spawn("kube-apiserver", [
            "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}", "--bind-address", "127.0.0.1",
            "--secure-port", str(self.port), "--tls-cert-file", "server.crt", "--tls-private-key-file", "server.key",
            "--token-auth-file", "tokens.csv", "--authorization-mode", "RBAC",
            "--service-account-issuer", "https://lab", "--service-account-key-file", "sa.pub",
            "--service-account-signing-key-file", "sa.key", "--service-cluster-ip-range", "10.96.0.0/16",
            "--allow-privileged=true", "--profiling=false",
            *(["--audit-policy-file", "audit.yaml", "--audit-log-path", "audit.log"] if self.audit else []),
        ])  # fmt: skip
        self._wait(self.ready, READY_S, "kube-apiserver")

    def stop_apiserver(self) -> None:
        self._end("kube-apiserver")

    def restart_apiserver(self) -> None:
        """A graceful end and a new start on the same port."""
        # The others give up when the API server leaves while they start.
        others = [n for n in ("kube-controller-manager", "kube-scheduler") if n in self.running]
        for name in others:
            self._end(name)
        self.stop_apiserver()
        self.start_apiserver()
        if self.crd:
            self._wait_for_resources()
        for name in others:
            self._start_component(name)

    def ready(self) -> bool:
        try:
            return self.request("GET", "/readyz")[1] == b"ok"
        except OSError:
            return False

    def _start_component(self, name: str) -> None:
        (port,) = free_ports(1)
        config = [f"--{k}=kubeconfig" for k in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")]
        common = [*config, "--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        if name == "kube-controller-manager":
            common += ["--service-account-private-key-file=sa.key", "--use-service-account-credentials=true"]
            common += [f"--controllers={_NO_KUBELET}", f"--root-ca-file={self.ca}"]
        self._spawn(name, common)
        self._wait(lambda: _listens(port), READY_S, name)

    def _seed(self) -> None:
        """What every test may count on: the default service account, a user who may read, the custom resources."""
        self._wait(lambda: self.request("GET", "/api/v1/namespaces/default")[0] == 200, READY_S, "namespace default")
        self.namespace("default")
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
        at = "/apis/rbac.authorization.k8s.io/v1"
        self.post(f"{at}/clusterroles", {"metadata": {"name": "lab-reader"}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lab-reader"}
        self.post(f"{at}/clusterrolebindings", {
            "metadata": {"name": "lab-reader"}, "roleRef": role,
            "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
        })  # fmt: skip
        if self.crd:
            for definition in crds.DEFINITIONS:
                self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crds.document(definition))
            self._wait_for_resources()

    def _wait_for_resources(self) -> None:
        for d in crds.DEFINITIONS:
            served = f"/apis/{crds.GROUP}/v1beta1/{d.plural}"
            self._wait(lambda served=served: self.request("GET", served)[0] == 200, READY_S, served)  # type: ignore[misc]

    def namespace(self, name: str) -> str:
        """A namespace with the service account that admission wants in it."""
        self.post("/api/v1/namespaces", {"metadata": {"name": name}})
        self.post(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        return name

    def request(
        self, method: str, url: str, body: Any = None, kind: str = "application/json", token: str = ""
    ) -> tuple[int, bytes]:
        """One call as the admin, on the blocking path: for setting things up."""
        request = urllib.request.Request(
            self.url + url, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token or self.token}", "Content-Type": kind},
        )  # fmt: skip
        context = ssl.create_default_context(cafile=str(self.ca))
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def post(self, url: str, body: Any) -> None:
        """Create it unless it is there."""
        status, answer = self.request("POST", url, body)
        if status not in (200, 201, 409):
            raise RuntimeError(f"POST {url}: {status} {answer[:500].decode()}")

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """kubectl's stdout; raises with its stderr."""
        done = subprocess.run([str(path("kubectl")), "--kubeconfig", str(self.kubeconfig), *arguments],
                              input=stdin, capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def _etcd(self, url: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}{url}", data=json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as answer:
            return dict(json.loads(answer.read()))

    def compact(self) -> None:
        """Forget every older revision, and the API server's watch cache with them: old versions are answered with 410."""
        head = self._etcd("/v3/kv/range", {"key": base64.b64encode(b"compact").decode()})["header"]
        self._etcd("/v3/kv/compaction", {"revision": head["revision"], "physical": True})
        self.restart_apiserver()

    def hollow(self, nodes: int, *, gpus: int = 0) -> None:
        """Ready nodes that nobody runs."""
        hollow.nodes(self.request, nodes, gpus=gpus)

    def run_pods(self, namespace: str) -> int:
        """Bind the pending pods of a namespace to hollow nodes and say that they run; how many those were."""
        return hollow.run_pods(self.request, namespace)

    def _wait(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        end = time.monotonic() + seconds
        while not done():
            for name, process in self.running.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended: {(self.folder / f'{name}.log').read_text()[-1500:]}")
            if time.monotonic() > end:
                raise RuntimeError(f"{what} is not there after {seconds:.0f} s")
            time.sleep(0.05)

    def _end(self, name: str) -> None:
        process = self.running.pop(name, None)
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """End everything and remove the files (kept where SLINKYTUI_KEEP is set)."""
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            self._end(name)
        if not os.environ.get("SLINKYTUI_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)
