"""One world per server for the whole run; a namespace of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.contract.kube.world import Hand, RealWorld, SimWorld, World
from tests.lab.kube import start_or_skip


@pytest.fixture(scope="session", params=["sim", pytest.param("real", marks=pytest.mark.kube)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "sim":
        yield SimWorld()
        return
    lab = start_or_skip(kcm=True)
    try:
        yield RealWorld(lab)
    finally:
        lab.stop()


@pytest.fixture
async def hand(world: World) -> AsyncIterator[Hand]:
    wire = world.transport()
    yield Hand(world, world.namespace(), wire)
    await wire.close()


@pytest.fixture
async def reader(world: World, hand: Hand) -> AsyncIterator[Hand]:
    """Somebody who may only read."""
    wire = world.transport("reader")
    yield Hand(world, hand.space, wire)
    await wire.close()
