"""The board over a real feed and store: keys in, calls and screen text out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from textual.geometry import Size

from slinkytui.app import SlinkyApp
from slinkytui.backend.actions.registry import Scene, make_plan
from slinkytui.backend.errors import UsageError
from slinkytui.backend.feed import VERSION, Hello, MemoryPipe
from slinkytui.backend.models import (
    Ask,
    FleetNode,
    FleetNodeSet,
    Gres,
    Job,
    JobId,
    Key,
    Meta,
    NodeId,
    NodeSet,
    Plan,
    RunResult,
    SlurmNode,
    Source,
    StepResult,
    Table,
)
from slinkytui.backend.reader import Reader
from slinkytui.backend.server import FeedServer
from slinkytui.backend.store import Store
from slinkytui.screens.board import Board
from slinkytui.screens.dialogs import PlanDialog
from slinkytui.screens.pane import KindPane
from slinkytui.widgets.table import Head, lay_out
from slinkytui.widgets.text import fit, inert

NOW = 1_800_000_000.0
EVIL = "[b]x[/]\x1b]52;c;aGk=\x07\x1b[31m \u202egnp\x00" + "y" * 5000


class Answers:
    """An engine's end without clients: plans are real, runs are remembered."""

    def __init__(self, store: Store) -> None:
        self.store, self.ran = store, [""][:0]

    def hello(self) -> Hello:
        return Hello(VERSION, context="lab")

    def wanted(self, table: Table, readers: int) -> None:
        """Every table is there anyway."""

    async def answer(self, method: str, params: bytes, progress: Callable[[Any], Awaitable[None]]) -> Any:
        if method == "plan":
            return make_plan(msgspec.msgpack.decode(params, type=Ask), Scene(self.store, NOW))
        if method == "run":
            plan = msgspec.msgpack.decode(params, type=Plan)
            self.ran.append(f"{plan.ask.verb} {','.join(plan.ask.targets)} {plan.ask.reason}".strip())
            return RunResult(plan.hash, plan.ask.verb, tuple(StepResult(s.target, True, "done") for s in plan.todo))
        raise UsageError(method)


def filled() -> Store:
    store = Store()
    nodeset = NodeSet(Key("slurm", "gpu"), Meta(uid="u"), Key("slurm", "ctl"), replicas=4)
    store.upsert(
        Table.NODESETS, "", [FleetNodeSet(nodeset.id, nodeset, "c", 4, 4, 4, 4, gpus_total=32, gpus_used=8, jobs=1)]
    )
    jobs = (JobId("c", 7),)
    for i in range(4):
        slurm = SlurmNode(
            NodeId("c", f"gpu-{i}"),
            ("MIXED" if i == 1 else "IDLE",),
            gres=(Gres("gpu", "h100", 8),),
            reason=EVIL if i == 3 else "",
        )
        cells = "uuuuuuuu" if i == 1 else "ffffffff"
        row = FleetNode(
            slurm.id,
            slurm,
            nodeset=nodeset.id,
            k8s="Ready",
            gpus_total=8,
            gpus_used=8 if i == 1 else 0,
            gpu_cells=cells,
            jobs=jobs if i == 1 else (),
        )
        store.upsert(Table.NODES, "", [row])
    store.upsert(Table.JOBS, "", [
        Job(jobs[0], 7, ("RUNNING",), user="alice", nodes="gpu-1", node_count=1, gpus=8, gres_detail=("gpu:h100:8(IDX:0-7)",), start_time=int(NOW), time_limit_min=60.0),
        Job(JobId("c", 8), 8, ("PENDING",), user=EVIL, state_reason="Resources", gpus=8),
    ])  # fmt: skip
    store.source(Source("slurm/c/nodes", "live", NOW, period_s=5.0))
    return store


def app_over(store: Store, answers: Answers) -> SlinkyApp:
    async def start() -> Reader:
        ours, theirs = MemoryPipe.pair()
        app.engine_task = asyncio.create_task(FeedServer(store, theirs, answers).run())  # type: ignore[attr-defined]
        return Reader(ours)

    app = SlinkyApp(start, now=lambda: NOW)
    return app


async def settled(pilot: Any, done: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not done():
            await pilot.pause(0.02)


def screen_text(app: SlinkyApp) -> str:
    width, height = app.size
    lines = app.screen._compositor.render_strips(Size(width, height))
    return "\n".join("".join(s.text for s in strip) for strip in lines)


def board(app: SlinkyApp) -> Board:
    return next(s for s in app.screen_stack if isinstance(s, Board))


def pane(app: SlinkyApp, name: str) -> KindPane:
    return board(app).query_one(f"#{name}", KindPane)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50), (20, 6), (5, 2)])
async def test_every_size_paints(size: tuple[int, int]) -> None:
    store = filled()
    app = app_over(store, Answers(store))
    async with app.run_test(size=size) as pilot:
        await settled(pilot, lambda: len(pane(app, "nodes").table.ids) == 4)
        await pilot.pause()
        text = screen_text(app)
        if size[0] >= 80:
            assert "gpu-0" in text
            assert "○ idle" in text
            assert "slurm ●" in text


async def test_strings_from_the_cluster_are_inert() -> None:
    store = filled()
    app = app_over(store, Answers(store))
    async with app.run_test(size=(200, 50)) as pilot:
        await settled(pilot, lambda: len(pane(app, "jobs").table.ids) == 2)
        await pilot.pause()
        text = screen_text(app)
        assert "[b]x[/]" in text
        assert not any(c in text for c in "\x1b\x07\x00\u202e")


async def test_drain_of_marked_nodes_from_key_to_run() -> None:
    store = filled()
    answers = Answers(store)
    app = app_over(store, answers)
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot, lambda: len(pane(app, "nodes").table.ids) == 4)
        await pilot.press("space", "space", "r")
        await settled(pilot, lambda: len(app.screen_stack) == 3)
        await pilot.press(*"drain", "space", *"it", "enter")
        await settled(pilot, lambda: isinstance(app.screen, PlanDialog))
        assert app.focused is not None
        assert app.focused.id == "cancel"
        await pilot.press("y")
        await settled(pilot, lambda: bool(answers.ran))
    assert answers.ran == ["node.drain gpu-0,gpu-1 drain it"]


async def test_cancel_of_a_running_job_needs_more_than_one_key() -> None:
    store = filled()
    answers = Answers(store)
    app = app_over(store, answers)
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot, lambda: len(pane(app, "jobs").table.ids) == 2)
        await pilot.press("4", "X")
        await settled(pilot, lambda: isinstance(app.screen, PlanDialog))
        await pilot.press("y", "enter")
        await settled(pilot, lambda: not isinstance(app.screen, PlanDialog))
    assert answers.ran == []


async def test_letters_only_type_in_the_filter_and_esc_closes_one_layer() -> None:
    store = filled()
    app = app_over(store, Answers(store))
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot, lambda: len(pane(app, "nodes").table.ids) == 4)
        await pilot.press("slash", *"state=mixed")
        await settled(pilot, lambda: len(pane(app, "nodes").table.ids) == 1)
        await pilot.press("enter")
        assert pane(app, "nodes").filter_text == "state=mixed"
        await pilot.press("escape")
        assert len(pane(app, "nodes").table.ids) == 4


async def test_brushing_lights_the_relatives() -> None:
    store = filled()
    app = app_over(store, Answers(store))
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot, lambda: len(pane(app, "nodes").table.ids) == 4)
        await pilot.press("j")
        await pilot.pause()
        assert pane(app, "jobs").table.lit == {JobId("c", 7)}
        assert pane(app, "nodesets").table.lit == {Key("slurm", "gpu")}


async def test_the_cursor_follows_its_row_and_old_data_stays() -> None:
    store = filled()
    app = app_over(store, Answers(store))
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot, lambda: len(pane(app, "nodes").table.ids) == 4)
        await pilot.press("j", "j")
        assert pane(app, "nodes").table.cursor == NodeId("c", "gpu-2")
        store.remove(Table.NODES, "", [NodeId("c", "gpu-0")])
        await settled(pilot, lambda: len(pane(app, "nodes").table.ids) == 3)
        assert pane(app, "nodes").table.cursor == NodeId("c", "gpu-2")
        store.source(Source("slurm/c/nodes", "stale", NOW - 130, NOW, "no answer", 5.0))
        await settled(pilot, lambda: pane(app, "nodes").table.stale)
        await pilot.pause()
        assert "last answer 2m ago, retrying" in screen_text(app)
        assert len(pane(app, "nodes").table.ids) == 3


@pytest.mark.parametrize(
    ("text", "width", "out"), [("abc", 5, "abc  "), ("abcdef", 4, "abc…"), ("模型训练", 5, "模型…"), ("x", 0, "")]
)
def test_text_fits_to_the_cell(text: str, width: int, out: str) -> None:
    assert fit(text, width) == out


def test_inert_text_has_nothing_to_obey() -> None:
    assert inert("a\x1b[31mb\u202ec\x00\x9b") == "a·[31mb·c··"
    assert len(inert("y" * 5000)) == 1000


def test_columns_are_dropped_and_never_squeezed() -> None:
    heads = [
        Head("NAME", width=10),
        Head("STATE", width=8, drop=1),
        Head("REASON", grow=True, drop=3, width=10),
        Head("JOBS", drop=2),
    ]
    assert [i for i, _ in lay_out(heads, [10, 8, 10, 4], 40)] == [0, 1, 2, 3]
    assert [i for i, _ in lay_out(heads, [10, 8, 10, 4], 30)] == [0, 1, 3]
    assert [i for i, _ in lay_out(heads, [10, 8, 10, 4], 12)] == [0]
