"""Write docs/transcript-kubectl.md: commands of the stock kubectl at the simulator and what they really print.

`python scripts/kubectl_transcript.py` needs the lab's kubectl (`python -m tests.lab.kube build`).
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.lab.kube.binaries import path  # noqa: E402  (the lab is no installed package)

_FILES: Final = {
    "workers.yaml": """\
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: extra}
spec:
  controllerRef: {name: slurm}
  replicas: 2
  slurmd: {image: "slurmd:26.05"}
""",
    "typo.yaml": """\
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: typo}
spec: {controllerRef: {name: slurm}, replica: 2}
""",
    "team.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: team}
data: {owner: hpc}
""",
}
# (title, commands); at most so many lines of an answer are kept.
_LINES: Final = 12
_PARTS: Final = (
    ("Looking", (
        "version", "api-resources --api-group=slinky.slurm.net", "get nodesets -o wide", "get pods -l app.kubernetes.io/instance=cpu -o wide",
        "get nodes node-a100-1 node-a100-2", "get nodeset h100 -o jsonpath='{.spec.replicas} {.status.selector}'",
        "explain nodeset.spec.updateStrategy", "logs cpu-0", "auth can-i delete nodesets", "--context sim-reader auth can-i delete nodesets",
    )),
    ("A new NodeSet", (
        "apply -f workers.yaml", "wait nodeset/extra --for=jsonpath={.status.readyReplicas}=2 --timeout=30s",
        "scale nodeset/extra --replicas=3 --current-replicas=1", "scale nodeset/extra --replicas=1 --current-replicas=2",
        "wait pod/extra-1 --for=delete --timeout=30s", "events --for nodeset/extra", "describe pod extra-0", "delete nodeset extra",
    )),
    ("What is refused", (
        "apply -f typo.yaml", "patch nodeset cpu --type=merge -p '{\"spec\":{\"scalingMode\":\"Both\"}}'",
        "--context sim-reader delete pod cpu-0", "exec cpu-0 -- true",
    )),
    ("Server-side apply", (
        "apply --server-side -f team.yaml", "patch configmap team --type=merge -p '{\"data\":{\"owner\":\"ml\"}}'",
        "apply --server-side -f team.yaml", "apply --server-side -f team.yaml --force-conflicts",
        "get configmap team -o yaml --show-managed-fields", "delete configmap team",
    )),
    ("Maintenance", (
        "drain node-cpu-1", "get pod cpu-1", "get node node-cpu-1", "uncordon node-cpu-1", "wait pod/cpu-1 --for=condition=Ready --timeout=30s",
    )),
)  # fmt: skip
_KEPT: Final = {"get configmap team -o yaml --show-managed-fields": 40, "describe pod extra-0": 60}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="transcript-") as name:
        folder = Path(name)
        for file, text in _FILES.items():
            (folder / file).write_text(text, encoding="utf-8")
        words = ["-m", "slinkytui.backend.sim", "small", "--write-kubeconfig", str(folder / "config"), "--with-parent"]
        with subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None and server.stdin is not None
            json.loads(server.stdout.readline())
            parts = [_part(title, commands, folder) for title, commands in _PARTS]
            server.stdin.close()
    files = "\n".join(f"`{file}`:\n\n```yaml\n{text}```\n" for file, text in _FILES.items())
    (ROOT / "docs" / "transcript-kubectl.md").write_text(
        "# kubectl at the simulator\n\nWhat the stock kubectl 1.36.3 prints at `slinkytui sim serve small --write-kubeconfig config`. Made by\n"
        "`python scripts/kubectl_transcript.py`; long answers are cut (`…`). `tests/e2e/test_kubectl_on_simulator.py` keeps it so.\n\n"
        + files + "\n" + "\n".join(parts),
        encoding="utf-8",
    )  # fmt: skip


def _part(title: str, commands: tuple[str, ...], folder: Path) -> str:
    return f"## {title}\n\n```console\n" + "".join(_shown(c, folder) for c in commands) + "```\n"


def _shown(command: str, folder: Path) -> str:
    done = subprocess.run(
        [str(path("kubectl")), "--kubeconfig", "config", "--cache-dir", "cache", *shlex.split(command)],
        capture_output=True, text=True, timeout=60, check=False, cwd=folder,
    )  # fmt: skip
    said = (done.stdout + done.stderr).rstrip("\n").expandtabs().splitlines()
    most = _KEPT.get(command, _LINES)
    cut = [*said[:most], "…"] if len(said) > most else said
    return "".join(f"{line}".rstrip() + "\n" for line in (f"$ kubectl {command}", *cut))


if __name__ == "__main__":
    main()
