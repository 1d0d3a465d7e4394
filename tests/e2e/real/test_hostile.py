"""Text that people put into jobs and nodes never commands a terminal: all bytes of the real console on a real
pseudo-terminal, and all that `get` prints."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slinkytui.backend.clock import RealClock
from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.tokens import FileToken
from slinkytui.backend.slurm.transport import HttpxTransport
from tests.e2e.real.terminal import Terminal
from tests.lab.slurm import SlurmLab, free_ports

BIDI = "".join(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C]))
PAYLOADS = {
    "markup": "[b]BOLD[/b] [@click=app.quit]X[/] [link=file:///etc]Y[/link]",
    "osc52": "a\x1b]52;c;cHduZWQ=\x07b",
    "osc8": "a\x1b]8;;http://evil.invalid\x1b\\click\x1b]8;;\x1b\\",
    "csi": "a\x1b[777;5Hb\x1b[2Jc\x1b[?1049l",
    "c1": "a\x9b777mb\x9d52;c;cHduZWQ=\x9cc",
    "bidi": f"user{BIDI}gpj.exe",
    "nul": "a\x00b\x00c",
    "lines": "one\r\ntwo\x0bthree\x07\x08\x7f",
    "long": "L" * 5_000,
}
JOB = {"current_working_directory": "/tmp", "environment": ["PATH=/usr/bin:/bin"], "standard_output": "/dev/null",
       "hold": True}  # fmt: skip


@dataclass
class Poisoned:
    """A cluster with hostile text in it; `taken` are the payloads that its Slurm accepted somewhere."""

    argv: list[str]
    node: str
    taken: set[str] = field(default_factory=set)


async def poison(url: str, token: Path, node: str) -> set[str]:
    """Put each payload where this Slurm takes it: job names, comments, a node's reason."""
    transport, taken = HttpxTransport(url), set[str]()
    client = SlurmClient(transport, FileToken(str(token)), RealClock())
    try:
        await client.probe()
        for name, text in PAYLOADS.items():
            # Slurm takes about a thousand characters of a name or comment.
            for job in ({"name": text, "comment": text}, {"name": f"named-{name}", "comment": text[:1000]}):
                try:
                    await client.job_submit("#!/bin/sh\nsleep 600\n", {**JOB, **job})
                except SlinkyError:
                    continue
                taken.add(name)
                break
        everything = "[b]" + "".join(t for n, t in PAYLOADS.items() if n != "long")
        await client.node_update(node, {"state": ["DRAIN"], "reason": everything})
    finally:
        await transport.close()
    return taken


@pytest.fixture(scope="module", params=["sim", pytest.param("real", marks=pytest.mark.slurm)])
def poisoned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Poisoned]:
    folder = tmp_path_factory.mktemp("hostile")
    token = folder / "token"
    if request.param == "real":
        lab: SlurmLab = request.getfixturevalue("slurm")
        token.write_text(lab.token)
        made = Poisoned(["--slurm", lab.url, "--token-file", str(token)], "gpu-2")
        made.taken = asyncio.run(poison(lab.url, token, made.node))
        try:
            yield made
        finally:
            lab.run("scancel", "-u", "root", "--state", "pending", check=False)
            lab.run("scontrol", "update", f"nodename={made.node}", "state=resume")
        return
    (port,) = free_ports(1)
    config = folder / "kubeconfig"
    command = [sys.executable, "-m", "slinkytui", "sim", "serve", "small", "--slurm", f"127.0.0.1:{port}",
               "--write-kubeconfig", str(config), "--write-token", str(token)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as served:
        try:
            assert served.stdout is not None
            assert served.stdout.readline()
            made = Poisoned(["--kubeconfig", str(config)], "a100-1")
            made.taken = asyncio.run(poison(f"http://127.0.0.1:{port}", token, made.node))
            yield made
        finally:
            served.terminate()


def environment(folder: Path) -> dict[str, str]:
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("SLINKYTUI_", "SLURM_", "XDG_")) and k != "KUBECONFIG"
    }
    return {**kept, "HOME": str(folder), "KUBECONFIG": str(folder / "none")}


def check(written: bytes) -> str:
    """The text without the program's own sequences; raises when something of the data commands the terminal."""
    assert b"\x1b]52" not in written and b"\x1b]8" not in written
    assert b"\x1b[777" not in written and b"\x9b777" not in written
    text = written.decode("utf-8", "replace")
    assert not set(text) & set(BIDI), "a direction mark reached the terminal"
    assert not re.search("[\x80-\x9f]", text), "a C1 control reached the terminal"
    # What Textual itself writes: CSI, charsets, single escapes, the shape of the pointer.
    rest = re.sub(r"\x1b(\[[0-?]*[ -/]*[@-~]|[()][0-9A-Za-z]|[=>78cDEHMNOPZ]|\]22;[a-z-]*\x07)", "", text)
    assert "\x07" not in rest and "\x00" not in rest and "\x1b" not in rest, repr(rest[:2000])
    return rest


def test_the_console_is_not_commanded(poisoned: Poisoned, tmp_path: Path) -> None:
    assert {"markup", "osc52", "csi", "bidi", "long"} <= poisoned.taken
    command = [sys.executable, "-m", "slinkytui", *poisoned.argv]
    with Terminal(command, environment(tmp_path)) as terminal:
        terminal.until(poisoned.node)
        terminal.press("")
        for keys in ("d", "\x1b", "y", "\x1b", "\t", "\t", "\t", "j", "d", "\x1b", "!", "\x1b"):
            terminal.press(keys)
        # Each of the jobs by itself, with its page and its YAML. A prompt takes keys once it is there.
        for keys in (":", "jobs name~^(\\[b|a|user|one|L|named)", "\r"):
            terminal.press(keys, 0.4)
        for _ in PAYLOADS:
            for keys in ("d", "\x1b", "j"):
                terminal.press(keys, 0.25)
        for keys in ("y", "\x1b", "k", "y", "\x1b", "\x1b"):
            terminal.press(keys)
        # Back to the board, whatever is open, and to the two things that must have been shown.
        for filtered, text in (
            ("jobs name~^(LLLL|named-long)", "LLLLLLLL"),
            (f"nodes name={poisoned.node}", "[b][b]BOLD"),
        ):
            for keys in ("\x1b", "\x1b", "\x1b", ":", filtered, "\r"):
                terminal.press(keys, 0.4)
            terminal.ask("d", text)
            for keys in ("\x1b", "y", "\x1b"):
                terminal.press(keys, 0.4)
        assert terminal.process.poll() is None, terminal.written[-2000:]
        shown = check(terminal.written)
    # Markup is text like any other.
    assert "[@click=app.quit]" in shown


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "csv", "name"])
def test_what_get_prints_is_inert(poisoned: Poisoned, output: str, tmp_path: Path) -> None:
    for kind in ("jobs", "nodes", "problems"):
        done = subprocess.run(
            [sys.executable, "-m", "slinkytui", *poisoned.argv, "get", kind, "-o", output],
            capture_output=True, text=True, env=environment(tmp_path), timeout=60, check=True,
        )  # fmt: skip
        assert (done.stdout or kind == "problems") and done.stdout.replace("\n", "").isprintable(), kind
        if output == "json" and kind == "nodes":
            reasons = {r["name"]: r["reason"] for r in json.loads(done.stdout)}
            # The exact text is still there for machines, as far as Slurm keeps it.
            assert reasons[poisoned.node].startswith(f"[b]{PAYLOADS['markup']}{PAYLOADS['osc52']}")
