"""Namespaces: one outer for a kubelet, one sandbox for a pod, one mount and pid namespace for a container.

Everything nests in the outer pid namespace: when its first process ends, all processes, mounts and links are gone, also when
this program is killed.
"""

from __future__ import annotations

import ipaddress
import os
import random
import shlex
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.lab.kubelet.spec import File

Object = dict[str, Any]
START_S: Final = 10.0
TOOLS: Final = ("ip", "nsenter", "unshare", "setpriv", "mount", "chroot", "bash", "readlink")
# The only child of this shell is the container's pid 1. (`unshare --fork` does not tell of a signal on every release.)
_FIRST: Final = 'bash -c "$1"; exit $?'
_DEVICES: Final = "null zero full random urandom tty"


def missing() -> str:
    """Why pods cannot run as processes here, or ""."""
    if os.geteuid() != 0:
        return "pods as processes need root"
    absent = [t for t in TOOLS if shutil.which(t) is None]
    if absent:
        return f"pods as processes need {', '.join(absent)}"
    tried = "ip link add br0 type bridge && ip link add v0 type veth peer name w0 && mount -t tmpfs x /mnt"
    done = _run("unshare", "--net", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", tried)
    return f"no network namespaces here: {done.stderr.strip()}" if done.returncode else ""


def _run(*command: str, check: bool = False, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command[:8])}: {done.stderr.strip()}")
    return done


def _child(pid: int, levels: int = 1) -> int:
    """The pid, as seen here, of the only child so many levels down."""
    for _ in range(levels):
        listed = Path(f"/proc/{pid}/task/{pid}/children")
        end = time.monotonic() + 10
        while not (found := _read(listed).split()):
            if time.monotonic() > end or not listed.exists():
                raise RuntimeError("a namespace did not start")
            time.sleep(0.002)
        pid = int(found[0])
    return pid


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start it and wait for its first line, which says that it is set up."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    if said != b"ok\n":
        process.kill()
        rest = process.stdout.read()
        process.wait()
        raise RuntimeError(f"a namespace did not start: {(said + rest).decode()}")
    return process


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is not None:
        process.stdout.close()


def _free_net() -> ipaddress.IPv4Network:
    """A /24 that no link of this host has."""
    taken = [
        ipaddress.ip_network(word, strict=False)
        for line in _run("ip", "-o", "-4", "addr").stdout.splitlines()
        for word in line.split()[3:4]
    ]
    while True:
        net = ipaddress.IPv4Network(f"10.{random.randint(64, 127)}.{random.randint(0, 255)}.0/24")
        if not any(net.overlaps(t) for t in taken):
            return net


class Network:
    """The outer namespaces with a bridge; this host has one link to it, at `.gateway`.

    Start it in the main thread: the outer process ends with the thread that started it.
    """

    def __init__(self) -> None:
        self.net = _free_net()
        hosts: Iterator[ipaddress.IPv4Address] = self.net.hosts()
        self.gateway = str(next(hosts))
        self._addresses = [str(h) for h in hosts]
        setup = "ip link set lo up && ip link add br0 type bridge && ip link set br0 up && echo ok"
        self._outer = _spawn(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c",
             f'{setup}; trap "exit 0" TERM; while :; do sleep 86400 & wait; done']
        )  # fmt: skip
        self.pid = _child(self._outer.pid)
        link = f"pk{self.net.network_address.packed[1]:02x}{self.net.network_address.packed[2]:02x}{os.getpid() % 65536:x}"
        try:
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", "up0", "netns", str(self.pid), check=True)
            _run("ip", "addr", "add", f"{self.gateway}/24", "dev", link, check=True)
            _run("ip", "link", "set", link, "up", check=True)
            self.inside("ip", "link", "set", "up0", "master", "br0", "up")
        except BaseException:
            self.stop()
            raise

    def inside(self, *command: str, check: bool = True) -> None:
        _run("nsenter", "-t", str(self.pid), "-n", *command, check=check)

    def take(self) -> str:
        return self._addresses.pop(0)

    def give(self, address: str) -> None:
        # At the end of the row: neighbours may remember for a while whose it was.
        self._addresses.append(address)

    def stop(self) -> None:
        """End every process in it; safe to call twice."""
        if self._outer.poll() is None:
            _kill(self.pid)
            self._outer.wait(20)
        _close(self._outer)

    @property
    def alive(self) -> bool:
        return self._outer.poll() is None


@dataclass
class Image:
    """The one root that every container gets a private layer of.

    `prepare` is shell run in the new root's folder ($R) before the container starts.
    """

    root: Path
    prepare: str = ""


@dataclass
class Process:
    """A container's first process. `pid` is as this host sees it."""

    outer: subprocess.Popen[bytes]
    pid: int
    env: dict[str, str]
    identity: list[str]

    def exit_code(self) -> int | None:
        """None while it runs; 128 + signal for one that a signal ended."""
        code = self.outer.poll()
        return code if code is None or code >= 0 else 128 - code

    def entered(self) -> bool:
        """Whether it is the container's own program, no longer the shell that makes its root."""
        try:
            root, line = os.readlink(f"/proc/{self.pid}/root"), Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return False
        return root != "/" and line.split(b"\0")[0] not in (b"", b"chroot", b"setpriv")

    def signal(self, sent: signal.Signals) -> None:
        if self.outer.poll() is None:
            try:
                os.kill(self.pid, sent)
            except ProcessLookupError:
                return


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
        self._outer = _spawn(
            ["nsenter", "-t", str(self.network.pid), "-p", "unshare", "--net", "--uts", "--ipc", "--mount", "--propagation",
             "private", "sh", "-c", script]
        )  # fmt: skip
        self.pid = _child(self._outer.pid)
        self.address = self.network.take()
        self._link = f"v{self.address.rsplit('.', 1)[1]}"
        self.network.inside("ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid))
        self.network.inside("ip", "link", "set", self._link, "master", "br0", "up")
        setup = f"ip addr add {self.address}/24 dev eth0 && ip link set eth0 up"
        _run("nsenter", "-t", str(self.pid), "-n", "sh", "-c", setup, check=True)

    @property
    def state(self) -> Path:
        """The pod's tmpfs, as this host reaches it."""
        return Path(f"/proc/{self.pid}/root{self.folder}/state")

    def write_hosts(self, text: str) -> None:
        # In place: it is mounted into the containers.
        (self.state / "hosts").write_text(text)

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

    def run(self, container: Object, pod: Object, image: Image, argv: Sequence[str], env: Mapping[str, str], attempt: int) -> Process:
        """Start a container. Its output goes to `NAME.log`."""
        name = container["name"]
        own = f"{self.folder}/state/{name}-{attempt}"
        script = "\n".join([*_mounts(container, image, f"{self.folder}/state", own), _entry(own, pod, container, argv, env)])
        with (self.folder / f"{name}.log").open("ab") as log:
            outer = subprocess.Popen(
                ["nsenter", "-t", str(self.pid), "-n", "-u", "-i", "-m", "-p", "unshare", "--mount", "--pid", "--cgroup",
                 "--propagation", "private", "bash", "-c", _FIRST, "first", script],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        process = Process(outer, _child(outer.pid, 2), dict(env), _identity(pod, container))
        self.running.append(process)
        end = time.monotonic() + START_S
        while outer.poll() is None and not process.entered():
            if time.monotonic() > end:
                raise RuntimeError(f"container {name} did not start")
            time.sleep(0.002)
        return process

    def exec(self, process: Process, argv: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        """A command beside a container's first process. Raises subprocess.TimeoutExpired."""
        return _run(*_beside(process, argv), timeout=timeout)

    def begin(self, process: Process, argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """The same, without waiting for its end."""
        with log.open("ab") as file:
            return subprocess.Popen(_beside(process, argv), stdin=subprocess.DEVNULL, stdout=file, stderr=file)

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
                _kill(process.pid)
                process.outer.wait(20)
        self.running.clear()
        if self.address and self.network.alive:
            self.network.inside("ip", "link", "del", self._link, check=False)
            self.network.give(self.address)
        self.address = ""
        if self._outer is not None:
            if self._outer.poll() is None:
                _kill(self.pid)
                self._outer.wait(20)
            _close(self._outer)
            self._outer = None


def _beside(process: Process, argv: Sequence[str]) -> list[str]:
    variables = [f"{k}={v}" for k, v in process.env.items()]
    spaces = ["-n", "-u", "-i", "-m", "-p", "-C", "-r", "-w"]
    return ["nsenter", "-t", str(process.pid), *spaces, "env", "-i", *variables, *process.identity, *argv]


def _own(folder: Path, mode: int, group: int | None) -> None:
    if group is not None:
        os.chown(folder, 0, group)
        mode |= 0o2070
    folder.chmod(mode)


def _identity(pod: Object, container: Object) -> list[str]:
    theirs, ours = pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}
    user = ours.get("runAsUser", theirs.get("runAsUser", 0))
    group = ours.get("runAsGroup", theirs.get("runAsGroup", 0))
    shared = theirs.get("fsGroup")
    groups = f"--groups={shared}" if shared is not None else "--clear-groups"
    return ["setpriv", f"--reuid={user}", f"--regid={group}", groups]


def _mounts(container: Object, image: Image, state: str, own: str) -> list[str]:
    """Shell that makes the container's root at `OWN/root`."""
    root = f"{own}/root"
    lines = [
        "set -e", f"R={root}", f"mkdir -p {own}", f"mount -t tmpfs own {own}", f"mkdir {own}/up {own}/work $R",
        f"mount -t overlay overlay -o lowerdir={image.root},upperdir={own}/up,workdir={own}/work $R",
        "mount -t proc proc $R/proc",
    ]  # fmt: skip
    if (container.get("securityContext") or {}).get("privileged"):
        lines += ["mount --rbind /dev $R/dev", "mount -t sysfs sysfs $R/sys"]
    else:
        lines += [
            "mount -t tmpfs -o mode=755 dev $R/dev",
            f"for d in {_DEVICES}; do touch $R/dev/$d; mount --bind /dev/$d $R/dev/$d; done",
            "ln -s /proc/self/fd $R/dev/fd; mkdir -m1777 $R/dev/shm",
        ]
    # Outer folders first, or they would hide the inner ones.
    for mount in sorted(container.get("volumeMounts") or [], key=lambda m: str(m["mountPath"])):
        source, target = shlex.quote(f"{state}/vol/{mount['name']}"), shlex.quote(mount["mountPath"])
        if mount.get("subPath"):
            source += "/" + shlex.quote(mount["subPath"])
            lines.append(f"mkdir -p $(dirname $R{target}); [ -d {source} ] && mkdir -p $R{target} || touch $R{target}")
        else:
            lines.append(f"mkdir -p $R{target}")
        lines.append(f"mount --bind $(readlink -f {source}) $R{target}")
        if mount.get("readOnly"):
            lines.append(f"mount -o remount,bind,ro $R{target}")
    lines += [f"touch $R/etc/{f}; mount --bind {state}/{f} $R/etc/{f}" for f in ("hosts", "hostname", "resolv.conf")]
    return [*lines, image.prepare]


def _entry(own: str, pod: Object, container: Object, argv: Sequence[str], env: Mapping[str, str]) -> str:
    variables = " ".join(shlex.quote(f"{k}={v}") for k, v in env.items())
    return f"exec env -i {variables} chroot {own}/root {shlex.join([*_identity(pod, container), *argv])}"
