"""Nothing of the person who runs the tests: no settings, no kubeconfig, no token."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [n for n in os.environ if n.startswith(("SLINKYTUI_", "SLURM_")) or n == "KUBECONFIG"]:
        if name not in ("SLINKYTUI_NO_SKIP", "SLINKYTUI_CACHE"):
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
