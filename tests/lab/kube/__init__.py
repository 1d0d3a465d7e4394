"""A real Kubernetes control plane on this machine: etcd and kube-apiserver on loopback, the others on request.

No kubelet and no container runtime: `hollow` nodes say that their pods run. `python -m tests.lab.kube build|up|down`.
"""

from __future__ import annotations

import os

import pytest

from tests.lab.kube.binaries import VERSION, missing
from tests.lab.kube.lab import KubeLab

__all__ = ["VERSION", "KubeLab", "start_or_skip"]


def start_or_skip(*, kcm: bool = False, scheduler: bool = False) -> KubeLab:
    """A running lab, or the test is skipped with the reason (fails under SLINKYTUI_NO_SKIP)."""
    why = missing()
    if why:
        (pytest.fail if os.environ.get("SLINKYTUI_NO_SKIP") else pytest.skip)(why)
    return KubeLab.start(kcm=kcm, scheduler=scheduler)
