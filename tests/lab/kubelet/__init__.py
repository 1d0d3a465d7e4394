"""A kubelet without a container runtime: pods run as plain processes in namespaces of their own. Needs root.

with Kubelet(api, nodes=("kind-1", "kind-2"), slurm=lab) as kubelet: …
"""

from __future__ import annotations

import os

import pytest

from tests.lab.kubelet.kubelet import Kubelet
from tests.lab.kubelet.network import missing

__all__ = ["Kubelet", "missing", "need"]


def need() -> None:
    """Skip the test, with the reason, where pods cannot run as processes (fails under SLINKYTUI_NO_SKIP)."""
    why = missing()
    if why:
        (pytest.fail if os.environ.get("SLINKYTUI_NO_SKIP") else pytest.skip)(why)
