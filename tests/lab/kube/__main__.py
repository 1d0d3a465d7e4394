"""`python -m tests.lab.kube build|up|down`: make the binaries, or a control plane that stays up until `down`."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.lab.kube.binaries import build, cache
from tests.lab.kube.lab import KubeLab


def _up(*wanted: str) -> None:
    lab = KubeLab.start(kcm="--kcm" in wanted, scheduler="--scheduler" in wanted)
    pids = [str(p.pid) for p in lab.running.values()]
    (cache() / "up").write_text("\n".join([str(lab.folder), *pids]))
    print(f"export KUBECONFIG={lab.kubeconfig}")


def _end(pid: int, folder: str) -> None:
    """End it and wait: an API server whose etcd left first never does."""
    for sent, tries in ((signal.SIGTERM, 100), (signal.SIGKILL, 20)):
        for attempt in range(tries):
            at = Path(f"/proc/{pid}/cwd")
            # A pid may have passed on to somebody else since.
            if not at.exists() or os.readlink(at) != folder:
                return
            if attempt == 0:
                os.kill(pid, sent)
            time.sleep(0.1)


def _down() -> None:
    noted = cache() / "up"
    if not noted.exists():
        sys.exit("no control plane is up")
    folder, *pids = noted.read_text().split("\n")
    for pid in reversed(pids):
        _end(int(pid), folder)
    shutil.rmtree(folder, ignore_errors=True)
    noted.unlink()


match sys.argv[1:]:
    case ["build"]:
        print(build())
    case ["up", *wanted]:
        _up(*wanted)
    case ["down"]:
        _down()
    case _:
        sys.exit("usage: python -m tests.lab.kube build | up [--kcm] [--scheduler] | down")
