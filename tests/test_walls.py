"""The layer rules: read off the imports, and proved on a running command."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "slinkytui"

FORBIDDEN = [
    (
        "backend",
        (
            "textual",
            "rich",
            "slinkytui.kinds",
            "slinkytui.screens",
            "slinkytui.widgets",
            "slinkytui.app",
            "slinkytui.cli",
        ),
    ),
    (
        "kinds",
        (
            "textual",
            "rich",
            "slinkytui.screens",
            "slinkytui.widgets",
            "slinkytui.backend.kube",
            "slinkytui.backend.engine",
        ),
    ),
    ("widgets", ("slinkytui.backend", "slinkytui.kinds", "slinkytui.screens", "slinkytui.app")),
    (
        "screens",
        ("slinkytui.backend.kube", "slinkytui.backend.slurm", "slinkytui.backend.engine", "slinkytui.backend.store"),
    ),
    (
        "backend/kube",
        ("slinkytui.backend.slurm", "slinkytui.backend.store", "slinkytui.backend.fleet", "slinkytui.backend.engine"),
    ),
    (
        "backend/slurm",
        (
            "slinkytui.backend.kube",
            "slinkytui.backend.store",
            "slinkytui.backend.fleet",
            "slinkytui.backend.engine",
            "kubernetes",
        ),
    ),
    (
        "backend/models",
        (
            "slinkytui.backend.kube",
            "slinkytui.backend.slurm",
            "slinkytui.backend.store",
            "httpx",
            "aiohttp",
            "kubernetes",
        ),
    ),
    (
        "backend/fleet",
        ("slinkytui.backend.kube", "slinkytui.backend.actions", "slinkytui.backend.engine", "httpx", "aiohttp"),
    ),
    (
        "backend/controllers/runtime",
        (
            *(
                f"slinkytui.backend.{name}"
                for name in (
                    "actions",
                    "crds",
                    "engine",
                    "fleet",
                    "http",
                    "kube",
                    "models",
                    "sim",
                    "slurm",
                    "store",
                )
            ),
            "slinkytui.backend.controllers.nodeset",
            "slinkytui.backend.controllers.leases",
            "slinkytui.backend.controllers.recorder",
            "slinkytui.backend.controllers.gated",
            "aiohttp",
            "httpx",
            "kubernetes",
            "msgspec",
            "pydantic",
        ),
    ),
    (
        "backend/controllers/objects",
        (
            *(
                f"slinkytui.backend.{name}"
                for name in ("clock", "engine", "fleet", "kube", "models", "sim", "slurm", "store")
            ),
            "slinkytui.backend.controllers.nodeset",
            "slinkytui.backend.controllers.runtime",
            "asyncio",
            "time",
        ),
    ),
    (
        "backend/crds",
        ("slinkytui.backend.controllers", "slinkytui.backend.kube", "slinkytui.backend.sim", "asyncio", "time"),
    ),
    (
        "backend/sim",
        (
            "slinkytui.backend.kube",
            "slinkytui.backend.slurm.",
            "slinkytui.backend.store",
            "slinkytui.backend.engine",
            "slinkytui.backend.fleet",
        ),
    ),
]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize(("folder", "banned"), FORBIDDEN, ids=[f for f, _ in FORBIDDEN])
def test_arrows_go_down_only(folder: str, banned: tuple[str, ...]) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    bad = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imports(path)
        for b in banned
        if name == b.rstrip(".") or name.startswith(b if b.endswith(".") else f"{b}.")
    ]
    assert bad == []


def loaded(*argv: str) -> set[str]:
    """The top-level modules after a command."""
    code = f"import sys; from slinkytui.cli import main\ntry:\n    main({list(argv)!r})\nexcept SystemExit:\n    pass\nprint('\\n' + ' '.join(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    return set(out.splitlines()[-1].split())


def test_help_loads_nothing_of_weight() -> None:
    assert not loaded("--help") & {"textual", "rich", "httpx", "aiohttp", "pydantic", "kubernetes", "msgspec", "yaml"}


def test_get_never_loads_the_terminal() -> None:
    modules = loaded("--sim", "empty", "get", "nodesets")
    assert "slinkytui.backend.engine" in modules
    # httpx brings rich where click is installed; textual never comes along.
    assert "textual" not in modules


def test_the_backend_imports_without_the_terminal() -> None:
    code = "import sys, slinkytui.backend.engine, slinkytui.kinds; print('textual' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    assert out.strip() == "False"
