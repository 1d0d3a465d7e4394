"""What an operator looks at: each screen as text at three sizes, and as pictures in the themes. Look at a change before
it is accepted with --snapshot-update.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.geometry import Size

from slinkytui.app import SlinkyApp
from slinkytui.screens.board import Board
from slinkytui.screens.lists import ListScreen
from tests.ui.conftest import Text
from tests.ui.picture import ROLLING, console

SIZES = {"80x24": (80, 24), "120x36": (120, 36), "200x50": (200, 50)}
PAGES: dict[str, tuple[str, ...]] = {
    "list-nodes": ("colon", *"nodes", "enter"),
    "list-jobs": ("colon", *"jobs", "enter"),
    "list-pods": ("colon", *"pods", "enter"),
    "list-problems": ("exclamation_mark",),
    "node": ("d",),
    "job": ("4", "d"),
    "nodeset": ("1", "d"),
    "yaml": ("o", "y"),
    "help": ("question_mark",),
    "palette": ("ctrl+p",),
    "verbs": ("4", "x"),
    "columns": ("C",),
    "filter": ("slash", *"state=idle", "enter"),
    "drain-asks": ("space", "space", "r"),
    "drain-plan": ("space", "space", "r", *"xid", "enter"),
    "cancel-plan": ("4", "X"),
    "scale-plan": ("1", "s", "backspace", "2", "enter"),
    "nodeset-rolling": ("1", "j", "j", "d"),
    "operator": ("colon", *"operator", "enter"),
    "decision": ("colon", *"operator", "enter", "j", "d"),
}


async def ready(pilot: Any) -> None:
    """All tables have come and are drawn."""
    app: SlinkyApp = pilot.app
    async with asyncio.timeout(30):
        while app.reader is None or not app.reader.ready or not _filled(app):
            await pilot.pause(0.02)
    await pilot.pause()


def _filled(app: SlinkyApp) -> bool:
    board = next((s for s in app.screen_stack if isinstance(s, Board)), None)
    tables = app.reader.ready if app.reader else set()
    return board is not None and len(tables) >= 6


async def pressed(pilot: Any, keys: tuple[str, ...]) -> None:
    for key in keys:
        await pilot.press(key)
        await pilot.pause(0.02)
    await pilot.pause(0.25)
    app = pilot.app
    if isinstance(app.screen, ListScreen):
        app.screen.tick()
    await pilot.pause()


def text_of(app: SlinkyApp) -> str:
    width, height = app.size
    lines = app.screen._compositor.render_strips(Size(width, height))
    return "\n".join("".join(s.text for s in strip).rstrip() for strip in lines) + "\n"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scenario", ["small", "gpu", "broken", "empty"])
async def test_the_board_as_text(scenario: str, size: str, snapshot: SnapshotAssertion) -> None:
    app = console(scenario)
    async with app.run_test(size=SIZES[size]) as pilot:
        await ready(pilot)
        await pressed(pilot, ())
        assert text_of(app) == snapshot(extension_class=Text, name=f"board-{scenario}-{size}")


SCENARIO = {
    "node": "broken", "list-problems": "broken", "nodeset-rolling": ROLLING, "operator": ROLLING, "decision": ROLLING,
}  # fmt: skip
"""Where it is another one than the small."""


@pytest.mark.parametrize("size", ["80x24", "120x36"])
@pytest.mark.parametrize("page", PAGES)
async def test_every_page_as_text(page: str, size: str, snapshot: SnapshotAssertion) -> None:
    app = console(SCENARIO.get(page, "small"))
    async with app.run_test(size=SIZES[size]) as pilot:
        await ready(pilot)
        await pressed(pilot, PAGES[page])
        assert text_of(app) == snapshot(extension_class=Text, name=f"{page}-{size}")


async def test_the_board_in_ascii(snapshot: SnapshotAssertion) -> None:
    app = console("small", plain=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        await pressed(pilot, ("4",))
        text = text_of(app)
        assert text.isascii()
        assert text == snapshot(extension_class=Text, name="board-plain-120x36")


@pytest.mark.parametrize(
    ("scenario", "theme", "size"),
    [
        ("small", "dark", "120x36"), ("small", "light", "120x36"), ("small", "safe", "120x36"), ("small", "dark", "80x24"),
        ("gpu", "dark", "200x50"), ("broken", "dark", "120x36"), ("broken", "light", "80x24"), ("empty", "dark", "80x24"),
    ],
)  # fmt: skip
def test_the_board_as_a_picture(scenario: str, theme: str, size: str, snap_compare: Callable[..., bool]) -> None:
    async def before(pilot: Any) -> None:
        await ready(pilot)
        await pressed(pilot, ())

    assert snap_compare(console(scenario, theme_name=theme), terminal_size=SIZES[size], run_before=before)


@pytest.mark.parametrize("page", ["cancel-plan", "node", "help", "palette", "operator", "nodeset-rolling"])
def test_pages_as_pictures(page: str, snap_compare: Callable[..., bool]) -> None:
    async def before(pilot: Any) -> None:
        await ready(pilot)
        await pressed(pilot, PAGES[page])

    assert snap_compare(console(SCENARIO.get(page, "small")), terminal_size=SIZES["120x36"], run_before=before)
