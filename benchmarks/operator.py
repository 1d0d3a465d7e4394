"""An operator of NodeSets on a real API server and a real slurmctld, with a kubelet that only says that pods run.

0 → 200, 0 → 1,000, a minute at rest, 200 → 100: seconds, requests by verb (from the server's audit log), CPU and memory.
Any operator that speaks these resources can be driven: `--command` is a shell line that gets KUBECONFIG, NAMESPACE,
SLURM_URL and TOKEN_FILE in its environment.

usage: python -m benchmarks.operator [--command LINE] [--sizes 200,1000] [--rest 60]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.lab.kube import KubeLab
from tests.lab.slurm import SlurmLab

SPACE: Final = "bench"
AGENT: Final = "hollow-kubelet"
SLINKY: Final = f"/apis/slinky.slurm.net/v1beta1/namespaces/{SPACE}"
OURS: Final = (
    f"{sys.executable} -m slinkytui --daemon --kubeconfig $KUBECONFIG --slurm $NAMESPACE/slurm=$SLURM_URL "
    "--token-file $TOKEN_FILE --lease-namespace $NAMESPACE -n $NAMESPACE"
)


class Hollow:
    """Binds pods to hollow nodes and says that they run, as fast as the server takes it."""

    def __init__(self, kube: KubeLab) -> None:
        self._kube = kube
        self._task: asyncio.Task[None] | None = None
        self._jobs: set[asyncio.Task[None]] = set()
        self._seen: set[str] = set()

    async def __aenter__(self) -> Hollow:
        context = ssl.create_default_context(cafile=str(self._kube.ca))
        headers = {"Authorization": f"Bearer {self._kube.token}", "User-Agent": AGENT}
        self._session = aiohttp.ClientSession(
            self._kube.url, headers=headers, connector=aiohttp.TCPConnector(ssl=context, limit=32)
        )
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._task, *self._jobs):
            if task is not None:
                task.cancel()
        await self._session.close()

    async def _watch(self) -> None:
        """The server ends a watch whose reader is slow: then everything is read anew."""
        at, forever = f"/api/v1/namespaces/{SPACE}/pods", aiohttp.ClientTimeout(total=None)
        while True:
            async with self._session.get(at) as answer:
                found = await answer.json()
            for pod in found["items"]:
                self._take({"type": "MODIFIED", "object": pod})
            query = {"watch": "1", "timeoutSeconds": "3600", "resourceVersion": found["metadata"]["resourceVersion"]}
            async with self._session.get(at, params=query, timeout=forever) as answer:
                buffer = b""
                async for chunk in answer.content.iter_any():
                    *lines, buffer = (buffer + chunk).split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        pod = event["object"]
        meta = pod["metadata"]
        if event["type"] == "DELETED":
            return
        if meta.get("deletionTimestamp"):
            self._spawn(self._end(meta["name"]), f"end {meta['uid']}")
        elif not pod["spec"].get("nodeName"):
            self._spawn(self._run(meta["name"], f"hollow-{len(self._seen) % 50}"), f"run {meta['uid']}")

    def _spawn(self, work: Any, key: str) -> None:
        if key in self._seen:
            work.close()
            return
        self._seen.add(key)
        task = asyncio.create_task(work)
        self._jobs.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            print(f"kubelet: {error!r}", file=sys.stderr)

    async def _run(self, name: str, node: str) -> None:
        at = f"/api/v1/namespaces/{SPACE}/pods/{name}"
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        await self._call("POST", f"{at}/binding", {"metadata": {"name": name}, "target": target})
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [
            {"type": t, "status": "True", "lastTransitionTime": now} for t in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]  # fmt: skip
        running = {
            "name": "slurmd", "ready": True, "started": True, "restartCount": 0, "image": "x", "imageID": "x",
            "state": {"running": {"startedAt": now}},
        }  # fmt: skip
        status = {"phase": "Running", "conditions": conditions, "containerStatuses": [running], "startTime": now}
        await self._call("PATCH", f"{at}/status", {"status": status})

    async def _end(self, name: str) -> None:
        await self._call("DELETE", f"/api/v1/namespaces/{SPACE}/pods/{name}", {"gracePeriodSeconds": 0})

    async def _call(self, method: str, path: str, body: Any) -> None:
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        async with self._session.request(method, path, data=json.dumps(body), headers={"Content-Type": kind}) as answer:
            text = await answer.text()
            if answer.status >= 300 and answer.status not in (404, 409):
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")


class Driven:
    """The operator's process, its CPU seconds and its memory."""

    def __init__(self, command: str, environment: dict[str, str], log: Path) -> None:
        self._log = log.open("wb")
        self.process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"], env={**os.environ, **environment}, stdout=self._log, stderr=self._log,
            start_new_session=True,
        )  # fmt: skip

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()


class Audit:
    """Requests in the server's audit log that are neither the kubelet's nor the benchmark's, since the last look."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0
        self.take()

    def take(self) -> Counter[str]:
        found: Counter[str] = Counter()
        with self._path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                entry = json.loads(line)
                agent = entry.get("userAgent", "")
                ref = entry.get("objectRef") or {}
                if AGENT in agent or "Python-urllib" in agent or entry["user"]["username"] != "admin":
                    continue
                if entry["verb"] == "watch" or ref.get("resource") == "leases":
                    continue
                sub = f"/{ref['subresource']}" if ref.get("subresource") else ""
                code = entry.get("responseStatus", {}).get("code", 0)
                found[f"{entry['verb']} {ref.get('resource', '')}{sub}{'' if code < 300 else f' {code}'}"] += 1
            self._at = file.tell()
        return found


async def until(done: Callable[[], bool], seconds: float, what: str) -> float:
    began = time.perf_counter()
    while not await asyncio.to_thread(done):
        if time.perf_counter() - began > seconds:
            raise RuntimeError(f"{what}: not after {seconds:.0f} s")
        await asyncio.sleep(0.1)
    return time.perf_counter() - began


def status(kube: KubeLab) -> dict[str, Any]:
    found = json.loads(kube.request("GET", f"{SLINKY}/nodesets/worker")[1])
    return dict(found.get("status") or {})


def scale(kube: KubeLab, replicas: int) -> None:
    code, text = kube.request(
        "PATCH", f"{SLINKY}/nodesets/worker", {"spec": {"replicas": replicas}}, "application/merge-patch+json"
    )
    if code >= 300:
        raise RuntimeError(text.decode())


def is_complete(kube: KubeLab, size: int) -> bool:
    found = status(kube)
    names = ("replicas", "readyReplicas", "updatedReplicas", "slurmIdle")
    return all((found.get(n) or 0) == size for n in names)


async def step(kube: KubeLab, driven: Driven, audit: Audit, was: int, size: int) -> None:
    audit.take()
    cpu = driven.cpu()
    scale(kube, size)
    try:
        took = await until(lambda: is_complete(kube, size), 120, f"{was} → {size}")
    except RuntimeError as error:
        phases = Counter(
            p["status"].get("phase")
            for p in json.loads(kube.request("GET", f"/api/v1/namespaces/{SPACE}/pods")[1])["items"]
        )
        raise RuntimeError(f"{error}: {status(kube)} {phases}") from None
    await asyncio.sleep(1.0)
    found = audit.take()
    total, changed = sum(found.values()), abs(size - was)
    words = ", ".join(f"{n} {what}" for what, n in found.most_common())
    print(
        f"{was} → {size}: complete after {took:.1f} s, {total} requests ({total / changed:.2f} a pod: {words}), "
        f"{driven.cpu() - cpu:.1f} s of CPU, peak {driven.peak_mb():.0f} MB",
        flush=True,
    )


async def rest(driven: Driven, audit: Audit, seconds: float, size: int) -> None:
    audit.take()
    cpu = driven.cpu()
    await asyncio.sleep(seconds)
    found = audit.take()
    words = ", ".join(f"{n} {what}" for what, n in found.most_common()) or "none"
    print(
        f"at rest with {size} for {seconds:.0f} s: {sum(found.values())} requests besides lease and watches ({words}), "
        f"{100 * (driven.cpu() - cpu) / seconds:.1f} % of a core",
        flush=True,
    )


def prepare(kube: KubeLab, slurm: SlurmLab, most: int) -> None:
    kube.namespace(SPACE)
    kube.hollow(50)
    secret = {"slurm.key": base64.b64encode(b"0" * 32).decode()}
    kube.post(f"/api/v1/namespaces/{SPACE}/secrets", {"metadata": {"name": "keys"}, "data": secret})
    ref = {"name": "keys", "key": "slurm.key"}
    kube.post(f"{SLINKY}/controllers", {
        "apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller", "metadata": {"name": "slurm"},
        "spec": {"clusterName": slurm.cluster, "slurmKeyRef": ref, "jwtKeyRef": ref},
    })  # fmt: skip
    kube.post(f"{SLINKY}/nodesets", {
        "apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "worker"},
        "spec": {"controllerRef": {"name": "slurm"}, "replicas": 0, "slurmd": {"image": "slurmd:26.05"},
                 "logfile": {"image": "tail:1"}},
    })  # fmt: skip
    slurm.run("scontrol", "create", f"nodename=worker-[0-{most - 1}]", "cpus=4", "realmemory=8000", "state=CLOUD")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", default=OURS)
    parser.add_argument("--sizes", default="200,1000")
    parser.add_argument("--rest", type=float, default=60.0)
    args = parser.parse_args()
    sizes = [int(s) for s in args.sizes.split(",")]
    most = max(sizes)
    with ExitStack() as ends:
        kube = KubeLab.start(audit=True)
        ends.callback(kube.stop)
        slurm = SlurmLab.start("26.05", nodes=0, gpus=0, most=most + 50)
        ends.callback(slurm.stop)
        token = kube.folder / "token"
        token.write_text(slurm.token)
        prepare(kube, slurm, most)
        where = {
            "KUBECONFIG": str(kube.kubeconfig), "NAMESPACE": SPACE, "SLURM_URL": slurm.url, "TOKEN_FILE": str(token),
        }  # fmt: skip
        async with Hollow(kube):
            driven = Driven(args.command, where, kube.folder / "operator.log")
            try:
                audit = Audit(kube.folder / "audit.log")
                await until(lambda: bool(status(kube)), 30, "the first status")
                for size in sizes:
                    await step(kube, driven, audit, 0, size)
                    if size == most:
                        await rest(driven, audit, args.rest, size)
                    await step(kube, driven, audit, size, size // 2)
                    await step(kube, driven, audit, size // 2, 0)
            except BaseException:
                print((kube.folder / "operator.log").read_text()[-3000:], file=sys.stderr)
                raise
            finally:
                driven.end()
                if os.environ.get("KEEP_LOG"):
                    Path(os.environ["KEEP_LOG"]).write_bytes((kube.folder / "operator.log").read_bytes())


if __name__ == "__main__":
    asyncio.run(main())
