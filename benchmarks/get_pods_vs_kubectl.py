"""5,000 pods on a real API server: `slinkytui get pods -A -o json` against `kubectl get pods -A -o json`.

`python -m benchmarks.get_pods_vs_kubectl [PODS]`; prints the medians of five turns and their ratio.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time

from tests.e2e.real.pods import make
from tests.lab.kube import KubeLab
from tests.lab.kube.binaries import path

TURNS = 5


def timed(command: list[str]) -> tuple[float, bytes]:
    began = time.perf_counter()
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return time.perf_counter() - began, out


def main(count: int) -> None:
    lab = KubeLab.start()
    try:
        asyncio.run(make(str(lab.kubeconfig), lab.namespace("many"), count))
        config = ["--kubeconfig", str(lab.kubeconfig)]
        ours = [sys.executable, "-m", "slinkytui", *config, "get", "pods", "-A", "-o", "json"]
        theirs = [str(path("kubectl")), *config, "get", "pods", "-A", "-o", "json"]
        took: dict[str, list[float]] = {"slinkytui": [], "kubectl": []}
        for _ in range(TURNS):
            for name, command in (("slinkytui", ours), ("kubectl", theirs)):
                seconds, out = timed(command)
                found = json.loads(out)
                rows = found if name == "slinkytui" else found["items"]
                if len(rows) != count:
                    raise SystemExit(f"{name} prints {len(rows)} of {count} pods")
                took[name].append(seconds)
        medians = {name: statistics.median(times) for name, times in took.items()}
        for name, median in medians.items():
            print(f"{name:10} {median:.2f} s  ({', '.join(f'{t:.2f}' for t in took[name])})")
        print(f"slinkytui takes {medians['slinkytui'] / medians['kubectl']:.2f} of kubectl's time for {count} pods")
    finally:
        lab.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
