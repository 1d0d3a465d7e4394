"""A pod's sandbox: the namespaces and volumes that its containers share."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.lab.kubelet.container import FIRST, Image, Process, beside, entry, identity, mounts
from tests.lab.kubelet.network import Network, child, close, kill, run, spawn
from tests.lab.kubelet.spec import File

Object = dict[str, Any]
START_S: Final = 10.0


@dataclass
class Sandbox:
    """A pod's namespaces: hostname, address, and a tmpfs for its volumes that goes with them."""

    network: Network
    folder: Path
    """Logs are kept here; the pod's tmpfs is mounted at `state` below it, in the pod's mount namespace only."""
    host: str
    address: str = ""
    running: list[Process] = field(default_factory=list)
    _outer: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Raises RuntimeError; nothing of it is left then."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        at = self.folder / "state"
        at.mkdir(parents=True, exist_ok=True)
        quoted = shlex.quote(str(at))
        script = (
            f"set -e; hostname {shlex.quote(self.host)}; ip link set lo up; mount -t tmpfs -o mode=755 pod {quoted}; cd {quoted}; "
            f"mkdir vol; touch hosts resolv.conf; hostname > hostname; echo ok; exec sleep 86400"
        )
        self._outer = spawn(
            ["nsenter", "-t", str(self.network.pid), "-p", "unshare", "--net", "--uts", "--ipc", "--mount", "--propagation",
             "private", "sh", "-c", script]
        )  # fmt: skip
        self.pid = child(self._outer.pid)
        self.address = self.network.take()
        self._link = f"v{self.address.rsplit('.', 1)[1]}"
        self.network.inside(
            "ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid)
        )
        self.network.inside("ip", "link", "set", self._link, "master", "br0", "up")
        setup = f"ip addr add {self.address}/24 dev eth0 && ip link set eth0 up"
        run("nsenter", "-t", str(self.pid), "-n", "sh", "-c", setup, check=True)

    @property
    def state(self) -> Path:
        """The pod's tmpfs, as this host reaches it."""
        return Path(f"/proc/{self.pid}/root{self.folder}/state")

    def write_hosts(self, text: str) -> None:
        # In place: it is mounted into the containers.
        (self.state / "hosts").write_text(text)

    def place(self, name: str, at: Path) -> None:
        """A volume that is a folder of this host, and stays when the pod goes."""
        at.mkdir(parents=True, exist_ok=True)
        link = self.state / "vol" / name
        if not link.is_symlink():
            link.symlink_to(at)

    def volume(self, name: str, content: list[File] | None, group: int | None) -> None:
        """Lay a volume out, or lay it out anew: files appear at once, behind a link that is swapped."""
        at = self.state / "vol" / name
        at.mkdir(exist_ok=True)
        if content is None:
            _own(at, 0o777, group)
            return
        fresh = at / f"..{time.time_ns()}"
        fresh.mkdir()
        for file in content:
            path = fresh / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
            if group is not None:
                os.chown(path, 0, group)
            path.chmod(file.mode)
        _own(fresh, 0o755, group)
        _own(at, 0o755, group)
        old = os.readlink(at / "..data") if (at / "..data").is_symlink() else ""
        (at / "..data_tmp").symlink_to(fresh.name)
        (at / "..data_tmp").rename(at / "..data")
        for top in {f.path.split("/")[0] for f in content}:
            if not (at / top).is_symlink():
                (at / top).symlink_to(f"..data/{top}")
        if old:
            shutil.rmtree(at / old)

    def run(
        self, container: Object, pod: Object, image: Image, argv: Sequence[str], env: Mapping[str, str], attempt: int
    ) -> Process:
        """Start a container. Its output goes to `NAME.log`."""
        name = container["name"]
        own = f"{self.folder}/state/{name}-{attempt}"
        script = "\n".join(
            [*mounts(container, image, f"{self.folder}/state", own), entry(own, pod, container, argv, env)]
        )
        with (self.folder / f"{name}.log").open("ab") as log:
            outer = subprocess.Popen(
                ["nsenter", "-t", str(self.pid), "-n", "-u", "-i", "-m", "-p", "unshare", "--mount", "--pid", "--cgroup",
                 "--propagation", "private", "bash", "-c", FIRST, "first", script],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        process = Process(outer, child(outer.pid, 2), dict(env), identity(pod, container))
        self.running.append(process)
        end = time.monotonic() + START_S
        while outer.poll() is None and not process.entered():
            if time.monotonic() > end:
                raise RuntimeError(f"container {name} did not start")
            time.sleep(0.002)
        return process

    def exec(self, process: Process, argv: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        """A command beside a container's first process. Raises subprocess.TimeoutExpired."""
        return run(*beside(process, argv), timeout=timeout)

    def begin(self, process: Process, argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """The same, without waiting for its end."""
        with log.open("ab") as file:
            return subprocess.Popen(beside(process, argv), stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def is_fifo(self, process: Process, path: str) -> bool:
        try:
            return stat.S_ISFIFO(os.stat(f"/proc/{process.pid}/root{path}").st_mode)
        except OSError:
            return False

    def stop(self) -> None:
        """End what still runs in it; safe to call twice."""
        for process in self.running:
            # The first process itself: those that changed their user do not end with their parent.
            if process.outer.poll() is None:
                kill(process.pid)
                process.outer.wait(20)
        self.running.clear()
        if self.address and self.network.alive:
            self.network.inside("ip", "link", "del", self._link, check=False)
            self.network.give(self.address)
        self.address = ""
        if self._outer is not None:
            if self._outer.poll() is None:
                kill(self.pid)
                self._outer.wait(20)
            close(self._outer)
            self._outer = None


def _own(folder: Path, mode: int, group: int | None) -> None:
    if group is not None:
        os.chown(folder, 0, group)
        mode |= 0o2070
    folder.chmod(mode)
