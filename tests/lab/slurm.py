"""A real Slurm on this machine: Debian's packages in a private root, daemons in namespaces of their own, fake GPUs.

Needs root, apt and unshare. One cluster is one set of namespaces: killing its first process ends everything in it.
`python -m tests.lab.slurm fetch|up VERSION` prepares or starts one by hand.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SUITES: Final = {"24.11": "trixie", "26.05": "forky"}
PACKAGES: Final = [
    "base-files",
    "base-passwd",
    "bash",
    "dash",
    "coreutils",
    "sed",
    "grep",
    "hostname",
    "libc-bin",
    "procps",
    "util-linux",
    "systemd-standalone-sysusers",
    "slurmctld",
    "slurmd",
    "slurmrestd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-jwt-plugin",
]
USERS: Final = {"slurm": 980, "slurmrestd": 981, "alice": 1001, "bob": 1002}
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"


def cache() -> Path:
    return Path(os.environ.get("SLINKYTUI_CACHE") or Path.home() / ".cache" / "slinkytui") / "slurm"


def missing() -> str:
    """Why real Slurm cannot run here, or ""."""
    if os.geteuid() != 0:
        return "real Slurm needs root"
    tools = [t for t in ("apt-get", "dpkg-deb", "unshare", "nsenter") if shutil.which(t) is None]
    return f"real Slurm needs {', '.join(tools)}" if tools else ""


def _mirror() -> str:
    """The Debian mirror that this host uses."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for file in (f for f in files if f.is_file()):
        found = re.search(r"^(?:URIs:|deb(?:\s+\[[^\]]*\])?)\s+(\S+/debian)/?(?:\s|$)", file.read_text(), re.M)
        if found:
            return found[1]
    raise RuntimeError("no Debian mirror in the apt sources of this host")


def fetch(version: str) -> Path:
    """The unpacked root of a release, made once: the closure is downloaded with an apt state of its own."""
    root = cache() / version
    if (root / ".complete").exists():
        return root
    work, debs = cache() / f"{version}.work", cache() / f"{version}.debs"
    shutil.rmtree(work, ignore_errors=True)
    for folder in (
        debs / "partial",
        work / "etc/apt.conf.d",
        work / "etc/preferences.d",
        work / "state/lists/partial",
        work / "cache",
    ):
        folder.mkdir(parents=True, exist_ok=True)
    (work / "status").touch()
    (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {_mirror()} {SUITES[version]} main\n")
    settings = {
        "Dir::Etc": work / "etc", "Dir::Etc::SourceList": work / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Parts": work / "etc/apt.conf.d", "Dir::State": work / "state", "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache", "Dir::Cache::archives": debs, "APT::Install-Recommends": "0", "Acquire::Languages": "none",
        "Acquire::Check-Valid-Until": "false", "APT::Sandbox::User": "root",
    }  # fmt: skip
    (work / "apt.conf").write_text("".join(f'{k} "{v}";\n' for k, v in settings.items()))
    apt = {**os.environ, "APT_CONFIG": str(work / "apt.conf")}
    subprocess.run(["apt-get", "update", "-qq"], env=apt, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        ["apt-get", "install", "-qq", "-y", "--download-only", *PACKAGES],
        env=apt,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    fresh = cache() / f"{version}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    # base-files first: it has the links from /bin to /usr/bin that the others unpack through.
    for deb in sorted(debs.glob("*.deb"), key=lambda d: not d.name.startswith("base-files_")):
        data = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE)
        subprocess.run(
            [
                "tar",
                "-x",
                "-C",
                str(fresh),
                "--keep-directory-symlink",
                "--exclude=./usr/share/doc/*",
                "--exclude=./usr/share/man/*",
                "-f",
                "-",
            ],
            stdin=data.stdout,
            check=True,
        )
        if data.wait():
            raise RuntimeError(f"{deb.name} cannot be unpacked")
    for link in ("bin", "sbin", "lib", "lib64"):
        if not (fresh / link).exists():
            (fresh / link).symlink_to(f"usr/{link}")
    for place, names in (
        ("usr/sbin", ("slurmctld", "slurmd", "slurmstepd")),
        ("usr/bin", ("scontrol", "sinfo", "squeue", "sbatch", "srun", "scancel")),
    ):
        for name in names:
            if not (fresh / place / name).exists():
                (fresh / place / name).symlink_to(f"{name}-wlm")
    for name in ("lab", "proc", "dev", "run", "sys", "tmp"):
        (fresh / name).mkdir(exist_ok=True)
    for etc in ("passwd", "group", "hosts"):
        (fresh / "etc" / etc).touch()
    (fresh / ".complete").touch()
    shutil.rmtree(root, ignore_errors=True)
    fresh.rename(root)
    shutil.rmtree(work)
    shutil.rmtree(debs)
    return root


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


_INIT: Final = """
hostname slurmlab
mount --bind "$2" "$1/lab" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --bind "$2/run" "$1/run" &&
mount --bind "$2/tmp" "$1/tmp" && for f in hosts passwd group; do mount --bind "$2/etc/$f" "$1/etc/$f" || exit 1; done || exit 1
: > "$2/ready"; while :; do sleep 86400 & wait; done
"""


@dataclass
class SlurmLab:
    """A running cluster. `url` is its slurmrestd, `token` root's."""

    version: str
    cluster: str
    folder: Path
    root: Path
    outer: subprocess.Popen[bytes]
    init: int
    ctld_port: int
    rest_port: int
    node_ports: list[int]
    token: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"

    @classmethod
    def start(cls, version: str, *, nodes: int = 3, gpus: int = 8, name: str = "", most: int = 256) -> SlurmLab:
        """`nodes` of them run; `most` is how many slurmctld takes."""
        root = fetch(version)
        name = name or f"lab{version.replace('.', '')}x{secrets.token_hex(2)}"
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        folder.chmod(0o755)
        ctld, rest, *node_ports = free_ports(2 + nodes)
        _write_files(folder, name, ctld, gpus, most)
        command = [
            "unshare",
            "--mount",
            "--pid",
            "--uts",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            "bash",
            "-c",
            _INIT,
            "init",
            str(root),
            str(folder),
        ]
        outer = subprocess.Popen(
            command,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "log/init.log").open("wb"),
        )
        wait_for((folder / "ready").exists, 10, f"namespaces: see {folder}/log/init.log")
        init = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
        lab = cls(version, name, folder, root, outer, init, ctld, rest, node_ports)
        try:
            lab._start_daemons(gpus)
        except BaseException:
            lab.stop()
            raise
        return lab

    def _start_daemons(self, gpus: int) -> None:
        self.start_ctld()
        self.start_rest()
        self.token = self.run("scontrol", "token", "username=root", "lifespan=86400").strip().removeprefix("SLURM_JWT=")
        for at, port in enumerate(self.node_ports):
            self.start_node(at, port, gpus)
        if not self.node_ports:
            return
        count = str(len(self.node_ports))
        wait_for(
            lambda: self.run("sinfo", "-h", "-t", "idle", "-p", "gpu", "-o", "%D").strip() == count,
            30,
            "the nodes are not idle",
        )

    def start_node(self, at: int, port: int, gpus: int) -> None:
        """A slurmd with a /run of its own: all of them bind the same socket there."""
        run = self.folder / f"spool/gpu-{at}/run"
        run.mkdir(parents=True, exist_ok=True)
        conf = f"Features=gpu Port={port} CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000"
        conf += f" Gres=gpu:h100:{gpus}" if gpus else ""
        script = 'mount --bind "$1" "$2/run"; r=$2; shift 2; exec chroot "$r" "$@"'
        self._enter("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", str(run), str(self.root), "env", "-i",
                    "PATH=/usr/sbin:/usr/bin", "SLURM_SACK_KEY=/lab/etc/slurm.key", "slurmd", "-Z", "-N", f"gpu-{at}",
                    "--conf-server", f"127.0.0.1:{self.ctld_port}", "--conf", conf)  # fmt: skip

    def start_ctld(self) -> None:
        self.run("slurmctld")
        wait_for(lambda: self.run("scontrol", "ping", check=False).count("UP") == 1, 30, "slurmctld does not answer")

    def start_rest(self) -> None:
        command = ["nsenter", "-t", str(self.init), "-m", "-p", "-u", "--", "chroot", str(self.root), "env", "-i", "PATH=/usr/sbin:/usr/bin",
                   "SLURM_CONF=/lab/etc/slurm.conf", "SLURM_JWT=daemon", "MALLOC_ARENA_MAX=1", "setsid", "slurmrestd", "-u", "slurmrestd", "-g", "slurmrestd",
                   "-a", "rest_auth/jwt", "-s", "openapi/slurmctld", f"127.0.0.1:{self.rest_port}"]  # fmt: skip
        log = (self.folder / "log/slurmrestd.log").open("ab")
        self._rest = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(lambda: _listens(self.rest_port), 20, "slurmrestd does not listen")

    def kill_rest(self) -> None:
        self.run("pkill", "-KILL", "slurmrestd")
        self._rest.wait(10)

    def run(self, *command: str, user: str = "root", check: bool = True) -> str:
        """A command inside; its output."""
        who = ["--userspec", f"{USERS[user]}:{USERS[user]}"] if user != "root" else []
        return self._enter("chroot", *who, str(self.root), "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/lab/home", "LANG=C.UTF-8",
                           "SLURM_CONF=/lab/etc/slurm.conf", *command, check=check)  # fmt: skip

    def _enter(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            ["nsenter", "-t", str(self.init), "-m", "-p", "-u", "--", *command],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"{command[:3]}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def stop(self) -> None:
        """End everything at once and leave nothing behind."""
        os.kill(self.init, signal.SIGKILL)
        self.outer.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


def _write_files(folder: Path, name: str, port: int, gpus: int, most: int) -> None:
    for part in ("etc", "log", "run", "tmp", "state", "spool", "home", "dev"):
        (folder / part).mkdir()
    for part in ("tmp", "home"):
        (folder / part).chmod(0o1777)
    etc = folder / "etc"
    (etc / "hosts").write_text("127.0.0.1 localhost slurmlab\n")
    users = {"root": 0, "daemon": 1, "nobody": 65534, **USERS}
    (etc / "passwd").write_text("".join(f"{u}:x:{i}:{i}::/lab/home:/bin/bash\n" for u, i in users.items()))
    (etc / "group").write_text("".join(f"{u}:x:{i}:\n" for u, i in users.items()))
    for key, size in (("slurm.key", 1024), ("jwt_hs256.key", 32)):
        (etc / key).write_bytes(secrets.token_bytes(size))
        (etc / key).chmod(0o600)
    for at in range(gpus):
        (folder / f"dev/nvidia{at}").symlink_to("/dev/null")
    (etc / "gres.conf").write_text(
        "AutoDetect=off\n" + (f"Name=gpu Type=h100 File=/lab/dev/nvidia[0-{gpus - 1}]\n" if gpus else "")
    )
    (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    (etc / "slurm.conf").write_text(f"""ClusterName={name}
SlurmctldHost=slurmlab
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/slurm
CredType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/lab/etc/jwt_hs256.key
SlurmctldParameters=enable_configless
StateSaveLocation=/lab/state
SlurmdSpoolDir=/lab/spool/%n
SlurmctldPidFile=/lab/run/slurmctld.pid
SlurmdPidFile=/lab/run/slurmd-%n.pid
SlurmctldLogFile=/lab/log/slurmctld.log
SlurmdLogFile=/lab/log/slurmd-%n.log
MaxNodeCount={most}
TreeWidth=65533
SlurmdTimeout=15
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
DefMemPerCPU=1000
KillWait=3
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=5
NodeSet=gpu Feature=gpu
PartitionName=gpu Nodes=gpu State=UP MaxTime=UNLIMITED
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED
""")


def _listens(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def wait_for(done, seconds: float, what: str) -> None:  # type: ignore[no-untyped-def]  # any truthy callable
    """Poll until it is so; the error names what was waited for."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise RuntimeError(what)
        time.sleep(0.05)


if __name__ == "__main__":
    action, release = sys.argv[1], sys.argv[2]
    if action == "fetch":
        print(fetch(release))
    else:
        made = SlurmLab.start(release)
        (made.folder / "token").write_text(made.token)
        print(f"slinkytui --slurm {made.url} --token-file {made.folder}/token get nodes; kill -9 {made.init} ends it")
