"""A container: its first process, and the shell that makes its root."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.lab.kubelet import spec

Object = dict[str, Any]
# The only child of this shell is the container's pid 1. (`unshare --fork` does not tell of a signal on every release.)
FIRST: Final = 'bash -c "$1"; exit $?'
_DEVICES: Final = "null zero full random urandom tty"


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


def beside(process: Process, argv: Sequence[str]) -> list[str]:
    variables = [f"{k}={v}" for k, v in process.env.items()]
    spaces = ["-n", "-u", "-i", "-m", "-p", "-C", "-r", "-w"]
    return ["nsenter", "-t", str(process.pid), *spaces, "env", "-i", *variables, *process.identity, *argv]


def identity(pod: Object, container: Object) -> list[str]:
    theirs, ours = pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}
    user = ours.get("runAsUser", theirs.get("runAsUser", 0))
    group = ours.get("runAsGroup", theirs.get("runAsGroup", 0))
    shared = theirs.get("fsGroup")
    groups = f"--groups={shared}" if shared is not None else "--clear-groups"
    return ["setpriv", f"--reuid={user}", f"--regid={group}", groups]


def mounts(container: Object, image: Image, state: str, own: str) -> list[str]:
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


def entry(own: str, pod: Object, container: Object, argv: Sequence[str], env: Mapping[str, str]) -> str:
    variables = " ".join(shlex.quote(f"{k}={v}") for k, v in env.items())
    return f"exec env -i {variables} chroot {own}/root {shlex.join([*identity(pod, container), *argv])}"


def command_line(container: Object, env: Mapping[str, str]) -> list[str]:
    """The command line; for a daemon without one, what its image's entry point makes of the arguments."""
    args = [spec.expand(a, env) for a in container.get("args") or []]
    if container.get("command"):
        return [*(spec.expand(c, env) for c in container["command"]), *args]
    if container["name"] not in spec.DAEMONS:
        raise ValueError(f"container {container['name']} has no command, and its image is not known")
    # The image hands its arguments to a shell: quotes and variables in them are the shell's.
    split = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {' '.join(args)}"],
        env=env,
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    words = split.stdout.split("\0")[:-1]
    megabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    words = spec.slurmd_arguments(words, env, os.cpu_count() or 1, megabytes)
    return ["bash", "-c", f"exec slurmd -D {shlex.join(words)}"]
