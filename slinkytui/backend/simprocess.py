"""Starts the embedded simulator as a process of its own; it ends when its stdin does."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

import msgspec

from slinkytui.backend.errors import ConfigError, Unreachable

_START_S = 60.0


class _Ready(msgspec.Struct):
    kubeconfig: str


@dataclass
class SimProcess:
    process: asyncio.subprocess.Process
    kubeconfig: str

    async def close(self) -> None:
        """End it and wait until it is gone."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), 5)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


async def start_sim(scenario: str, speed: float) -> SimProcess:
    """A running simulator. Raises ConfigError with its own words when the scenario is wrong."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "slinkytui.backend.sim", scenario, "--speed", str(speed), "--with-parent",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    if process.stdout is None or process.stderr is None:
        raise Unreachable("the simulator has no pipes")
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_S)
    except TimeoutError:
        process.kill()
        raise Unreachable("the simulator does not start") from None
    if not line:
        words = (await process.stderr.read()).decode("utf-8", "replace").strip().splitlines()
        raise ConfigError((words[-1] if words else "the simulator ended at once").removeprefix("slinkytui: "))
    return SimProcess(process, msgspec.json.decode(line, type=_Ready).kubeconfig)
