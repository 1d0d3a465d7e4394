"""All benchmarks, one after the other: `python -m benchmarks`. Those on a real API server want its binaries (as the tests do)."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

from benchmarks import board, get_pods_vs_kubectl
from tests.e2e.real.pods import make
from tests.lab.kube import KubeLab


def title(text: str) -> None:
    print(f"\n{text}", flush=True)


def script(name: str, *args: str) -> None:
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *args], check=True)


def help_ms() -> float:
    took = []
    for _ in range(9):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "slinkytui", "--help"], check=True, stdout=subprocess.DEVNULL)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


def main() -> None:
    title("slinkytui --help")
    print(f"  median {help_ms():.0f} ms")
    title("a jobs poll of 10,000 jobs, and the next one")
    script("slurm_decode")
    title("a list of 10,000 pods")
    script("kube_list")
    title("a pass over a NodeSet of 5,000 workers")
    script("decide")
    title("a list of 100,000 jobs")
    script("table")
    title("the board at huge: 10,000 nodes, 100,000 jobs")
    board.main(["huge"])
    title("5,000 pods on a real API server: get")
    get_pods_vs_kubectl.main(5_000)
    title("5,000 pods on a real API server: the console")
    lab = KubeLab.start()
    try:
        asyncio.run(make(str(lab.kubeconfig), lab.namespace("many"), 5_000))
        board.main(["--", "--kubeconfig", str(lab.kubeconfig), "--screen", "pods"])
    finally:
        lab.stop()


if __name__ == "__main__":
    main()
