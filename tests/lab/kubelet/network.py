"""The outer namespaces of a kubelet, and the programs that make namespaces.

Everything nests in the outer pid namespace: when its first process ends, all processes, mounts and links are gone, also when
this program is killed.
"""

from __future__ import annotations

import ipaddress
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

TOOLS: Final = ("ip", "nsenter", "unshare", "setpriv", "mount", "chroot", "bash", "readlink")


def missing() -> str:
    """Why pods cannot run as processes here, or ""."""
    if os.geteuid() != 0:
        return "pods as processes need root"
    absent = [t for t in TOOLS if shutil.which(t) is None]
    if absent:
        return f"pods as processes need {', '.join(absent)}"
    tried = "ip link add br0 type bridge && ip link add v0 type veth peer name w0 && mount -t tmpfs x /mnt"
    done = run("unshare", "--net", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", tried)
    return f"no network namespaces here: {done.stderr.strip()}" if done.returncode else ""


def run(*command: str, check: bool = False, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
    )
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command[:8])}: {done.stderr.strip()}")
    return done


def child(pid: int, levels: int = 1) -> int:
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


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
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


def close(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is not None:
        process.stdout.close()


def _free_net() -> ipaddress.IPv4Network:
    """A /24 that no link of this host has."""
    taken = [
        ipaddress.ip_network(word, strict=False)
        for line in run("ip", "-o", "-4", "addr").stdout.splitlines()
        for word in line.split()[3:4]
    ]
    while True:
        net = ipaddress.IPv4Network(f"10.{random.randint(64, 127)}.{random.randint(0, 255)}.0/24")
        if not any(net.overlaps(t) for t in taken):
            return net


class Network:
    """The outer namespaces with a bridge; this host has one link to it, `.link` at `.gateway`.

    Start it in the main thread: the outer process ends with the thread that started it.
    """

    def __init__(self) -> None:
        self.net = _free_net()
        hosts: Iterator[ipaddress.IPv4Address] = self.net.hosts()
        self.gateway = str(next(hosts))
        self._addresses = [str(h) for h in hosts]
        setup = "ip link set lo up && ip link add br0 type bridge && ip link set br0 up && echo ok"
        self._outer = spawn(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c",
             f'{setup}; trap "exit 0" TERM; while :; do sleep 86400 & wait; done']
        )  # fmt: skip
        self.pid = child(self._outer.pid)
        self.link = f"pk{self.net.network_address.packed[1:3].hex()}"
        try:
            run(
                "ip",
                "link",
                "add",
                self.link,
                "type",
                "veth",
                "peer",
                "name",
                "up0",
                "netns",
                str(self.pid),
                check=True,
            )
            run("ip", "addr", "add", f"{self.gateway}/24", "dev", self.link, check=True)
            run("ip", "link", "set", self.link, "up", check=True)
            self.inside("ip", "link", "set", "up0", "master", "br0", "up")
        except BaseException:
            self.stop()
            raise

    def inside(self, *command: str, check: bool = True) -> None:
        run("nsenter", "-t", str(self.pid), "-n", *command, check=check)

    def take(self) -> str:
        return self._addresses.pop(0)

    def give(self, address: str) -> None:
        # At the end of the row: neighbours may remember for a while whose it was.
        self._addresses.append(address)

    def stop(self) -> None:
        """End every process in it; safe to call twice."""
        if self._outer.poll() is None:
            kill(self.pid)
            self._outer.wait(20)
        close(self._outer)

    @property
    def alive(self) -> bool:
        return self._outer.poll() is None
