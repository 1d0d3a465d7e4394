"""Secrets by reference: what is known of them, and that only who refers to one is told of its changes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slinkytui.backend.controllers.references import References
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.models import Key
from slinkytui.backend.sim.kube import KubeSim
from slinkytui.backend.sim.objects import BY_PLURAL, Objects
from tests.rules import holds
from tests.unit.controllers.virtual import LoopClock, in_virtual_time

SECRETS = BY_PLURAL["", "secrets"]
SSSD = Key("slurm", "sssd")


class Ground:
    def __init__(self) -> None:
        self.clock = LoopClock()
        self.objects = Objects(self.clock.now)
        self.objects.put(BY_PLURAL["", "namespaces"], {"metadata": {"name": "slurm"}, "status": {"phase": "Active"}})
        self.sim = KubeSim(self.objects, {"t": "admin", "r": "nobody"})
        self.silent = False
        self.asked: list[str] = []
        self.told: list[Key] = []
        kube = KubeClient(CoreTransport(self._handle, {"authorization": "Bearer t"}))
        self.references = References(kube, self.clock, self.told.append)

    async def _handle(self, request: Request) -> Response:
        self.asked.append(request.first("fieldSelector"))
        if self.silent:
            return Response(503, b"{}")
        return await self.sim.handle(request)

    def write(self, name: str, **data: str) -> None:
        text = {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}
        kept = self.objects.get(SECRETS, "slurm", name) or {"metadata": {"name": name, "namespace": "slurm"}}
        self.objects.put(SECRETS, {**kept, "data": text})


@asynccontextmanager
async def ground() -> AsyncIterator[Ground]:
    one = Ground()
    try:
        yield one
    finally:
        await one.references.stop()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@holds("W40")
@in_virtual_time
async def test_a_secret_is_known_once_it_has_been_read_and_followed_from_then_on() -> None:
    async with ground() as on:
        on.write("sssd", conf="[sssd]", other="x")
        assert "has not been read" in on.references.secret(SSSD).why
        await on.clock.sleep(1)
        assert on.references.secret(SSSD) == ({"conf": digest("[sssd]"), "other": digest("x")}, "")
        on.told.clear()
        on.write("sssd", conf="[sssd]\ndebug")
        await on.clock.sleep(1)
        assert on.references.secret(SSSD).hashes == {"conf": digest("[sssd]\ndebug")}
        assert on.told == [SSSD]


@holds("W40")
@in_virtual_time
async def test_only_this_secret_is_asked_for_and_nobody_hears_of_others() -> None:
    async with ground() as on:
        on.write("sssd", conf="a")
        on.references.secret(SSSD)
        await on.clock.sleep(1)
        on.told.clear()
        on.write("helm-release", data="x")
        await on.clock.sleep(1)
        assert set(on.asked) == {"metadata.name=sssd"}
        assert on.told == []


@in_virtual_time
async def test_a_secret_that_is_away_is_known_to_be_away() -> None:
    async with ground() as on:
        on.references.secret(SSSD)
        await on.clock.sleep(1)
        assert on.references.secret(SSSD) == ({}, "")
        on.told.clear()
        on.write("sssd", conf="a")
        await on.clock.sleep(1)
        assert on.told == [SSSD]


@in_virtual_time
async def test_a_secret_that_cannot_be_read_is_unknown_and_not_away() -> None:
    async with ground() as on:
        on.silent = True
        on.references.secret(SSSD)
        await on.clock.sleep(5)
        assert "the Secret slurm/sssd has not been read" in on.references.secret(SSSD).why
