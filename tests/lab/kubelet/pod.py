"""One pod's life: sandbox, volumes, containers in order, probes, restarts, the way out."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

import httpx

from tests.lab.kubelet import spec, status
from tests.lab.kubelet.api import STRATEGIC, Api, Refused
from tests.lab.kubelet.container import Image, Process, command_line
from tests.lab.kubelet.network import Network
from tests.lab.kubelet.probing import answers
from tests.lab.kubelet.sandbox import Sandbox
from tests.lab.kubelet.spec import Object
from tests.lab.kubelet.status import Probe, Seen

TICK_S: Final = 0.03
CALM_S: Final = 0.1
RETRY_S: Final = 0.3
SIDECAR_S: Final = 0.3
"""A sidecar that reads a pipe does not hear SIGTERM; after so long it is killed."""
LEAST_S: Final = 2.0
"""What is left for SIGTERM when a hook took the whole grace."""
PROBES: Final = ("startupProbe", "livenessProbe", "readinessProbe")


class Node(Protocol):
    """What a pod needs of the kubelet it runs on."""

    api: Api
    network: Network
    image: Image
    folder: Path
    hurry: float
    stopping: threading.Event
    errors: list[BaseException]

    def joined(self, pod: Object, sandbox: Sandbox) -> None: ...
    def left(self, pod: Object) -> None: ...


class Worker:
    """A thread that brings one pod up, keeps it so and takes it down. `pod` is its newest object."""

    def __init__(self, node: Node, pod: Object) -> None:
        self.node, self.pod = node, pod
        self.uid: str = pod["metadata"]["uid"]
        self.name: str = f"{pod['metadata']['namespace']}_{pod['metadata']['name']}"
        self.url: str = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self.sandbox = Sandbox(node.network, node.folder / f"{self.name}_{self.uid[:8]}", spec.hostname(pod))
        self.seen = {c["name"]: Seen(c["name"], c["image"]) for c in spec.containers(pod)}
        self.processes: dict[str, Process] = {}
        self.probes: dict[tuple[str, str], Probe] = {}
        self.gone = threading.Event()
        self._wake = threading.Event()
        self._known = False
        self._ready_to_run = False
        self._retry = 0.0
        self._published: Object | None = None
        self._publish_at = 0.0
        self.thread = threading.Thread(target=self._run, name=f"pod-{self.name}", daemon=True)

    # ── from the watch ──

    def update(self, pod: Object) -> None:
        self.pod = pod
        self._wake.set()

    def vanish(self) -> None:
        """The object is no more: nothing is left to report to."""
        self.gone.set()
        self._wake.set()

    # ── the loop ──

    @property
    def _over(self) -> bool:
        return self.gone.is_set() or self.node.stopping.is_set()

    def _run(self) -> None:
        try:
            while not self._over and not self.pod["metadata"].get("deletionTimestamp"):
                if not self._is_over() and (self._ready_to_run or self._prepare()):
                    self._advance()
                    if self._is_over():
                        self._end_sidecars()
                self._publish()
                settled = all(seen.running and seen.ready for seen in self.seen.values())
                self._wake.wait(CALM_S if settled else TICK_S)
                self._wake.clear()
            if not self._over:
                self._terminate()
        except BaseException as error:
            self.node.errors.append(error)
            raise
        finally:
            self.sandbox.stop()
            self.node.left(self.pod)

    def _lookup(self, plural: str, name: str) -> Object:
        namespace = self.pod["metadata"]["namespace"]
        try:
            return self.node.api.call("GET", f"/api/v1/namespaces/{namespace}/{plural}/{name}")
        except Refused as error:
            raise KeyError(f"{plural} {name}: {error}") from error

    def _facts(self) -> dict[str, str]:
        return {"status.podIP": self.sandbox.address, "status.hostIP": self.node.network.gateway}

    def _prepare(self) -> bool:
        """Sandbox and volumes; False, with the reason in the status, where something is not there yet."""
        if time.monotonic() < self._retry:
            return False
        try:
            if not self.sandbox.address:
                self.sandbox.start()
            if not self._known:
                self.node.joined(self.pod, self.sandbox)
                self._known = True
            group = (self.pod["spec"].get("securityContext") or {}).get("fsGroup")
            for volume in self.pod["spec"].get("volumes") or []:
                if "persistentVolumeClaim" in volume:
                    claim = f"{self.pod['metadata']['namespace']}_{volume['persistentVolumeClaim']['claimName']}"
                    self.sandbox.place(volume["name"], self.node.folder / "claims" / claim)
                    continue
                content = spec.files(self.pod, volume, self._lookup, self._facts())
                self.sandbox.volume(volume["name"], content, group)
        except (KeyError, RuntimeError, OSError, httpx.HTTPError) as error:
            for seen in self.seen.values():
                seen.message = str(error)
            self._retry = time.monotonic() + RETRY_S
            return False
        self._ready_to_run = True
        return True

    def _advance(self) -> None:
        """One step: starts in order, ends noticed, probes asked."""
        for container in spec.containers(self.pod):
            self._notice_end(container)
        for container in self.pod["spec"].get("initContainers") or []:
            seen = self.seen[container["name"]]
            if not spec.is_sidecar(container) and seen.code == 0:
                continue
            self._keep(container)
            if not (spec.is_sidecar(container) and seen.started):
                return
        for container in self.pod["spec"]["containers"]:
            self._keep(container)

    @property
    def _initialized(self) -> bool:
        init = self.pod["spec"].get("initContainers") or []
        return all(self.seen[c["name"]].started if spec.is_sidecar(c) else self.seen[c["name"]].code == 0 for c in init)

    def _is_over(self) -> bool:
        """Whether its containers ran to their end and none starts again."""
        ends = [self.seen[c["name"]] for c in self.pod["spec"]["containers"]]
        once = self.pod["spec"].get("restartPolicy", "Always") != "Always"
        return once and all(s.code is not None and not s.waiting for s in ends)

    def _keep(self, container: Object) -> None:
        """Start it when it does not run and may; ask its probes when it does."""
        seen = self.seen[container["name"]]
        if seen.running:
            self._ask(container, seen)
            return
        policy = "Always" if spec.is_sidecar(container) else self.pod["spec"].get("restartPolicy", "Always")
        if seen.code is not None and (policy == "Never" or (policy == "OnFailure" and seen.code == 0)):
            seen.waiting = ""
            return
        again = seen.code is not None
        if again and time.time() < (seen.ended_at or 0) + status.restart_delay(seen.restarts, self.node.hurry):
            seen.waiting, seen.message = "CrashLoopBackOff", "back-off restarting failed container"
            return
        self._start(container, seen, again)

    def _start(self, container: Object, seen: Seen, again: bool) -> None:
        if time.monotonic() < self._retry:
            return
        restarts = seen.restarts + (1 if again else 0)
        try:
            env = spec.environment(self.pod, container, self._lookup, self._facts())
            process = self.sandbox.run(
                container, self.pod, self.node.image, command_line(container, env), env, restarts
            )
        except (KeyError, RuntimeError, OSError, ValueError, httpx.HTTPError) as error:
            seen.waiting, seen.message = "CreateContainerError", str(error)
            self._retry = time.monotonic() + RETRY_S
            return
        if again:
            seen.last = status.ended(seen)
        seen.restarts, seen.started_at, seen.code, seen.ended_at = restarts, time.time(), None, None
        seen.started = seen.ready = False
        seen.waiting = seen.message = ""
        self.processes[container["name"]] = process
        for kind in PROBES:
            if container.get(kind):
                probe = Probe(container[kind], time.monotonic(), passing=kind == "livenessProbe")
                self.probes[container["name"], kind] = probe

    def _notice_end(self, container: Object) -> None:
        seen = self.seen[container["name"]]
        if seen.running and (code := self.processes[container["name"]].exit_code()) is not None:
            seen.code, seen.ended_at, seen.started, seen.ready = code, time.time(), False, False
            seen.waiting = ""

    # ── probes ──

    def _ask(self, container: Object, seen: Seen) -> None:
        startup, live, ready = (self.probes.get((container["name"], kind)) for kind in PROBES)
        now = time.monotonic()
        if not seen.started:
            seen.started = self._has_pipe(container) and (startup is None or self._passes(startup, container, now))
            if startup is not None and startup.broken:
                self._restart(container)
            if not seen.started:
                return
        if live is not None and not self._passes(live, container, now) and live.broken:
            self._restart(container)
            return
        seen.ready = ready is None or self._passes(ready, container, now)

    def _restart(self, container: Object) -> None:
        process = self.processes[container["name"]]
        process.signal(signal.SIGTERM)
        self._until(lambda: process.exit_code() is not None, lambda: self._grace() * self.node.hurry)
        process.signal(signal.SIGKILL)

    def _has_pipe(self, container: Object) -> bool:
        """A log sidecar is up when its pipe is there: who writes to it must not make a plain file of that name."""
        if not spec.is_sidecar(container):
            return True
        wanted = self.processes[container["name"]].env.get("SOCKET")
        return not wanted or self.sandbox.is_fifo(self.processes[container["name"]], wanted)

    def _passes(self, probe: Probe, container: Object, now: float) -> bool:
        if probe.due(now):
            probe.note(answers(probe.spec, container, self.sandbox, self.processes[container["name"]]), now)
        return probe.passing

    # ── the way out ──

    def _grace(self) -> float:
        asked = self.pod["metadata"].get("deletionGracePeriodSeconds")
        return float(self.pod["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked)

    def _until(self, done: Callable[[], bool], seconds: Callable[[], float]) -> bool:
        """Whether it was done in time; a grace that is shortened meanwhile counts."""
        began = time.monotonic()
        while not done():
            if self._over or time.monotonic() - began >= seconds():
                return done()
            self._wake.wait(TICK_S)
            self._wake.clear()
        return True

    def _terminate(self) -> None:
        began = time.monotonic()

        def left() -> float:
            return self._grace() - (time.monotonic() - began)

        mine = list(self._alive(self.pod["spec"]["containers"]))
        self._run_hooks(mine, left)
        for _, process in mine:
            process.signal(signal.SIGTERM)
        end = max(left(), LEAST_S if self._grace() else 0.0)
        self._until(
            lambda: all(p.exit_code() is not None for _, p in mine), lambda: min(end, max(self._grace(), LEAST_S))
        )
        self._kill(mine)
        self._end_sidecars()
        for container in spec.containers(self.pod):
            self._notice_end(container)
            self.seen[container["name"]].waiting = (
                "" if self.seen[container["name"]].code is not None else "ContainerCreating"
            )
        self.sandbox.stop()
        self._farewell()

    def _end_sidecars(self) -> None:
        rest = list(self._alive(self.pod["spec"].get("initContainers") or []))
        for _, process in rest:
            process.signal(signal.SIGTERM)
        self._until(lambda: all(p.exit_code() is not None for _, p in rest), lambda: SIDECAR_S)
        self._kill(rest)

    def _alive(self, containers: list[Object]) -> Iterator[tuple[Object, Process]]:
        for container in containers:
            process = self.processes.get(container["name"])
            if process is not None and process.exit_code() is None:
                yield container, process

    def _run_hooks(self, mine: list[tuple[Object, Process]], left: Callable[[], float]) -> None:
        hooks = []
        for container, process in mine:
            command = ((container.get("lifecycle") or {}).get("preStop") or {}).get("exec", {}).get("command")
            if command:
                log = self.sandbox.folder / f"{container['name']}.prestop.log"
                hooks.append(self.sandbox.begin(process, command, log))
        self._until(lambda: all(h.poll() is not None for h in hooks), left)
        for hook in hooks:
            if hook.poll() is None:
                hook.kill()
                hook.wait()

    def _kill(self, mine: list[tuple[Object, Process]]) -> None:
        for _, process in mine:
            process.signal(signal.SIGKILL)
            process.outer.wait(20)

    def _farewell(self) -> None:
        """The last status, then the object's own end; both again while the API server is away."""
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        while not self._over:
            self._published = None
            if self._publish(final=True):
                try:
                    self.node.api.call("DELETE", self.url, body)
                    return
                except Refused as error:
                    if error.status in (404, 409):
                        return
                except httpx.HTTPError:
                    pass
            self.node.stopping.wait(RETRY_S)

    # ── status ──

    def _publish(self, final: bool = False) -> bool:
        """Write the status where it changed; whether the API server has it."""
        init = [self.seen[c["name"]] for c in self.pod["spec"].get("initContainers") or []]
        main = [self.seen[c["name"]] for c in self.pod["spec"]["containers"]]
        address, old = self.sandbox.address, self._published or self.pod.get("status") or {}
        done = final or self._is_over()
        said = status.pod_status(
            old, init, main, self._initialized, address, self.node.network.gateway, time.time(), done
        )
        if said == self._published:
            return True
        if not final and time.monotonic() < self._publish_at:
            return False
        try:
            body = {"metadata": {"uid": self.uid}, "status": said}
            self.node.api.call("PATCH", f"{self.url}/status", body, STRATEGIC)
        except (Refused, httpx.HTTPError) as error:
            self._publish_at = time.monotonic() + RETRY_S
            return isinstance(error, Refused) and error.status in (404, 409)
        self._published = said
        return True
