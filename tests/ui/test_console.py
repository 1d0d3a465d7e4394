"""What keys do beyond looking: marks, choosers, columns, copies, exports, arrays, rights, undo."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slinkytui.app import SlinkyApp
from slinkytui.backend import ConfigError, Job, JobId, Key, NodeId, Source, Table
from slinkytui.keys import check_keys, known_keys
from slinkytui.kinds.base import RowGroup
from slinkytui.memory import Memory
from slinkytui.screens.board import Board
from slinkytui.screens.chooser import Chooser
from slinkytui.screens.detail import DetailScreen
from slinkytui.screens.dialogs import PlanDialog
from slinkytui.screens.listing import KindScreen
from slinkytui.screens.pane import KindPane
from slinkytui.widgets.heatgrid import HeatGrid
from tests.ui.picture import Picture, console
from tests.ui.test_pictures import pressed, ready, text_of

SIZE = (120, 36)


def picture(app: SlinkyApp) -> Picture:
    return app.picture  # type: ignore[attr-defined, no-any-return]


def board(app: SlinkyApp) -> Board:
    return next(s for s in app.screen_stack if isinstance(s, Board))


def pane(app: SlinkyApp, name: str) -> KindPane:
    return board(app).query_one(f"#{name}", KindPane)


def names(app: SlinkyApp, name: str) -> list[str]:
    return [getattr(i, "name", str(i)) for i in pane(app, name).table.ids]


async def until(pilot: Any, done: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not done():
            await pilot.pause(0.02)


async def test_a_range_is_marked_and_forgotten() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("v", "j", "j"))
        assert [i.name for i in pane(app, "nodes").table.targets] == ["a100-0", "a100-1", "a100-2"]  # type: ignore[attr-defined]
        await pressed(pilot, ("v", "j"))
        assert len(pane(app, "nodes").table.marks) == 3
        assert "● 3 marked" in text_of(app)
        await pressed(pilot, ("escape",))
        assert [i.name for i in pane(app, "nodes").table.targets] == ["a100-3"]  # type: ignore[attr-defined]


async def test_chosen_columns_last(tmp_path: Path) -> None:
    memory = Memory.load(tmp_path / "console.json")
    app = console("small", memory=memory)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        # Off: JOBS, the fifth.
        await pressed(pilot, ("C", "j", "j", "j", "j", "space", "enter"))
        assert [c.title for c in pane(app, "nodes").columns()] == ["NODE", "STATE", "K8S", "GPU", "REASON"]
    again = console("small", memory=Memory.load(tmp_path / "console.json"))
    async with again.run_test(size=SIZE) as pilot:
        await ready(pilot)
        assert "JOBS" not in [c.title for c in pane(again, "nodes").columns()]
        await pressed(pilot, ("C", "backspace"))
        assert "JOBS" in [c.title for c in pane(again, "nodes").columns()]


def test_a_broken_memory_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "console.json"
    path.write_text("{nonsense")
    found = Memory.load(path)
    assert "cannot be read" in found.trouble
    assert path.read_text() == "{nonsense"


async def test_copy_of_a_name_and_of_json() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("space", "space", "c", "enter"))
        assert app.clipboard == "a100-0\na100-1"
        await pressed(pilot, ("c", *"json", "enter"))
        assert '"name": "a100-1"' in app.clipboard


async def test_export_writes_what_is_shown_and_never_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("slash", *"name~^cpu", "enter", "ctrl+s", *["backspace"] * 9, *str(path), "enter"))
        rows = list(csv.DictReader(path.open()))
        assert [r["name"] for r in rows] == ["cpu-0", "cpu-1", "cpu-2", "cpu-3"]
        before = path.read_text()
        await pressed(pilot, ("escape", "ctrl+s", *["backspace"] * 9, *str(path), "enter"))
        assert path.read_text() == before


async def test_an_array_is_one_line_until_it_is_opened() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        facts = picture(app).engine.facts
        tasks = [
            Job(JobId("sim_small", 900, t), 900 + t, ("RUNNING",), user="alice", gpus=1, node_count=1, start_time=1)
            for t in range(3)
        ]
        rest = Job(JobId("sim_small", 900), 900, ("PENDING",), user="alice", tasks="3-9", task_count=7)
        facts.upsert(Table.JOBS, "array", [*tasks, rest])
        group = RowGroup("sim_small", "900_[…]")
        await until(pilot, lambda: group in pane(app, "jobs").table.ids)
        await pressed(pilot, ("4", "G"))
        pane(app, "jobs").table.go_to(group)
        await pressed(pilot, ())
        assert "▸ 900_[…]" in text_of(app)
        assert "R 3 PD 7" in text_of(app)
        assert len(pane(app, "jobs").targets()) == 4
        await pressed(pilot, ("enter",))
        assert "▾ 900_[…]" in text_of(app)
        assert {i for i in pane(app, "jobs").table.ids if isinstance(i, JobId) and i.id == 900} == {
            t.id for t in (*tasks, rest)
        }
        await pressed(pilot, ("enter",))
        facts.remove(Table.JOBS, "array", [t.id for t in (*tasks, rest)])
        await until(pilot, lambda: group not in pane(app, "jobs").table.ids)


async def test_a_refused_verb_says_why_and_does_nothing() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ())
        app._rights["sim_small", ""] = (app.now(), {"node.drain": "slurmrestd does not answer"})
        await pressed(pilot, ("r",))
        assert isinstance(app.screen, Board)
        assert any("slurmrestd does not answer" in n.message for n in app._notifications)
        await pressed(pilot, ("x",))
        assert isinstance(app.screen, Chooser)
        assert "slurmrestd does not answer" in text_of(app)
        await pressed(pilot, ("escape",))


async def test_again_and_undo() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("U",))
        assert isinstance(app.screen, Board)
        await pressed(pilot, ("r", *"why", "enter", "y"))
        await until(pilot, lambda: len(picture(app).ran) == 1)
        await pressed(pilot, ("j", "full_stop"))
        await until(pilot, lambda: isinstance(app.screen, PlanDialog))
        await pressed(pilot, ("y",))
        await until(pilot, lambda: len(picture(app).ran) == 2)
        assert picture(app).ran == ["node.drain a100-0 why", "node.drain a100-1 why"]
        await pressed(pilot, ("U",))
        await until(pilot, lambda: isinstance(app.screen, PlanDialog))
        # The picture stands still: the node is not drained, so the plan of the inverse has nothing to do.
        assert "nothing to do: none is drained" in text_of(app)


async def test_along_the_chain() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("J",))
        assert pane(app, "nodesets").table.cursor == Key("slurm", "a100")
        assert board(app)._focused == "nodesets"
        await pressed(pilot, ("2", "o"))
        assert isinstance(app.screen, DetailScreen)
        assert "pod slurm/a100-0" in text_of(app)
        await pressed(pilot, ("1",))
        assert "node a100-0" in text_of(app)
        await pressed(pilot, ("escape", "escape"))
        assert len(app.screen_stack) == 2


async def test_the_grid_moves_the_nodes_and_its_verbs_are_theirs() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("3", "l", "l"))
        assert app.screen.query_one(HeatGrid).cursor == NodeId("sim_small", "a100-2")
        assert pane(app, "nodes").table.cursor == NodeId("sim_small", "a100-2")
        await pressed(pilot, ("enter",))
        assert isinstance(app.screen, DetailScreen)


async def test_a_pane_is_hidden_and_comes_back(tmp_path: Path) -> None:
    app = console("small", memory=Memory(tmp_path / "console.json"))
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("1", "minus"))
        assert not pane(app, "nodesets").display
        assert Memory.load(tmp_path / "console.json").hidden == ["nodesets"]
        await pressed(pilot, ("1",))
        assert pane(app, "nodesets").display


@pytest.mark.parametrize(
    ("typed", "told"),
    [("noodes", "did you mean :nodes?"), ("zzz", "a kind (nodes"), ("node.drain", ""), ("theme mauve", "themes: dark")],
)
async def test_commands_that_are_wrong_are_told(typed: str, told: str) -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        app.obey(typed)
        await pressed(pilot, ())
        if told:
            assert any(told in n.message for n in app._notifications)
        else:
            assert not isinstance(app.screen, Board)  # the drain asks for its reason


async def test_the_palette_finds_by_a_few_letters() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("ctrl+p", *"partit", "enter"))
        assert isinstance(app.screen, KindScreen)
        assert "Partitions" in text_of(app)


async def test_a_filter_that_cannot_be_read_keeps_the_rows_and_says_why() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("slash", *"stat=idle", "enter"))
        assert len(names(app, "nodes")) == 16
        assert "state" in pane(app, "nodes").problem
        assert "? " in text_of(app)


async def test_what_no_server_has_told_is_not_zero() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        store = picture(app).engine.facts
        held = dict(store.rows(Table.JOBS))
        sources = [s for s in store.rows(Table.SOURCES).values() if isinstance(s, Source)]
        jobs = next(s for s in sources if s.name.endswith("/jobs"))
        store.remove(Table.JOBS, "sim_small", list(held))
        store.source(Source(jobs.name, "stale", None, 1.0, "connection refused", 5.0))
        await until(pilot, lambda: not pane(app, "jobs").table.ids)
        await pressed(pilot, ())
        text = text_of(app)
        assert "jobs R –  PD –" in text
        assert "not known: connection refused" in text
        store.upsert(Table.JOBS, "sim_small", held.values())
        store.source(jobs)
        await until(pilot, lambda: pane(app, "jobs").view_count == len(held))


async def test_changed_cells_stand_out_and_rows_keep_their_place() -> None:
    app = console("small")
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ("2", "j"))
        table, store = pane(app, "nodes").table, picture(app).engine.store
        row: Any = store.rows(Table.NODES)[NodeId("sim_small", "a100-0")]
        import msgspec

        store.upsert(Table.NODES, "", [msgspec.structs.replace(row, gpus_used=1)])
        await until(pilot, lambda: any(key[0] == row.id for key in table._news))
        assert {table.heads[at].title.rstrip("↑") for key, at in table._news if key == row.id} == {"GPU"}
        store.upsert(Table.NODES, "", [row])


def test_own_keys() -> None:
    known = known_keys()
    assert known["node.drain"] == "r"
    assert "table.down" in known
    check_keys({"node.drain": "ctrl+d"})
    with pytest.raises(ConfigError, match=r"no key binding 'node.drian'"):
        check_keys({"node.drian": "x"})


async def test_own_keys_are_heard_and_shown() -> None:
    app = console("small", keys={"view.describe": "t"})
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        await pressed(pilot, ())
        assert "t describe" in text_of(app)
        await pressed(pilot, ("t",))
        assert isinstance(app.screen, DetailScreen)


@pytest.mark.parametrize("key", ["r", "u", "X", "s", "H", "x"])
async def test_read_only_binds_no_verb(key: str) -> None:
    app = console("small", read_only=True)
    async with app.run_test(size=SIZE) as pilot:
        await ready(pilot)
        if key == "x":
            await pressed(pilot, ("4", "x"))
            assert "started with --read-only" in text_of(app)
            return
        for number in "124":
            await pressed(pilot, (number, key))
            assert isinstance(app.screen, Board)
        assert picture(app).ran == []
