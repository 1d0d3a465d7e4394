"""Servers that die under a running engine: the rows stay, the sources say since when, nothing turns zero, verbs refuse,
and all is live again without a restart."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from textual.geometry import Size

from slinkytui.app import SlinkyApp
from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.feed import MemoryPipe
from slinkytui.backend.models import Ask, Pod, Table
from slinkytui.backend.options import Options
from slinkytui.backend.reader import Reader
from tests.e2e.real.world import Real, nodes, reading, source, until
from tests.lab.kube import KubeLab
from tests.lab.programs import program


async def tried(reader: Reader, ask: Ask) -> str:
    """What stopped a verb, or "" if it was done."""
    try:
        plan = await reader.plan(ask)
        if plan.refused:
            return plan.refused
        result = await reader.run(plan)
    except SlinkyError as error:
        return error.line()
    return "" if result.ok else "; ".join(r.text for r in result.results)


@pytest.mark.slurm
async def test_slurmrestd_dies_and_comes_back(alone: Real) -> None:
    lab = alone.lab
    async with reading(alone.options, Table.NODES, Table.JOBS) as (engine, reader):
        await until(lambda: any(n.jobs for n in nodes(reader).values()), "the nodes and their job")
        before = nodes(reader)
        lost: list[str] = []

        def look(changed: dict[Table, Any]) -> None:
            """Every state of the mirror that a face could have shown."""
            seen = nodes(reader)
            used = sum(n.gpus_used or 0 for n in seen.values())
            jobs = [j for n in seen.values() for j in n.jobs or ()]
            if set(seen) != set(before) or used != 2 or len(jobs) != 1 or not reader.rows(Table.JOBS):
                lost.append(repr(changed))

        reader.listen(look)
        lab.kill_rest()
        try:
            await until(lambda: source(reader, "/nodes").state == "stale", "nodes say that they are stale")
            stale = source(reader, "/nodes")
            assert stale.last_success is not None and stale.last_error is not None
            assert stale.last_error >= stale.last_success and "does not answer" in stale.error
            why = await tried(reader, Ask("node.drain", ("gpu-0",), reason="while away"))
            assert why, "a verb was done on a server that is away"
        finally:
            lab.start_rest()
        await until(
            lambda: source(reader, "/nodes").state == "live" and source(reader, "/jobs").state == "live", "live again"
        )
        assert source(reader, "/nodes").last_success > stale.last_success  # type: ignore[operator]  # live: it has one
        assert lost == []
        assert "DRAIN" not in lab.run("scontrol", "show", "node", "gpu-0")
        lab.run("scontrol", "update", "nodename=gpu-1", "state=drain", "reason=after")
        try:
            await until(lambda: (n := nodes(reader)["gpu-1"].slurm) and n.reason == "after", "news after the outage")
        finally:
            lab.run("scontrol", "update", "nodename=gpu-1", "state=resume")
        assert engine.options == alone.options


@pytest.mark.slurm
async def test_the_console_shows_an_outage_and_its_end(alone: Real) -> None:
    engine = Engine(alone.options)
    await engine.start()
    serving: list[asyncio.Task[None]] = []

    async def start() -> Reader:
        ours, theirs = MemoryPipe.pair()
        serving.append(asyncio.create_task(engine.serve(theirs)))
        return Reader(ours)

    app = SlinkyApp(start)

    def text() -> str:
        strips = app.screen._compositor.render_strips(Size(*app.size))
        return "\n".join("".join(s.text for s in strip) for strip in strips)

    try:
        async with app.run_test(size=(120, 36)) as pilot:

            async def shows(done: Callable[[str], bool], what: str) -> str:
                try:
                    async with asyncio.timeout(40):
                        while not done(text()):
                            await pilot.pause(0.05)
                except TimeoutError:
                    raise AssertionError(f"the screen never shows {what}:\n{text()}") from None
                return text()

            await shows(lambda t: all(f"gpu-{i}" in t for i in range(3)) and "R 1 " in t, "three nodes and a job")
            alone.lab.kill_rest()
            try:
                away = await shows(lambda t: "✖ last answer" in t, "that Slurm is away")
                assert all(f"gpu-{i}" in away for i in range(3)) and "R 1 " in away and "2/8" in away, away
            finally:
                alone.lab.start_rest()
            back = await shows(lambda t: "last answer" not in t, "that it is back")
            assert all(f"gpu-{i}" in back for i in range(3)) and "R 1 " in back, back
    finally:
        await engine.close()
        await asyncio.wait_for(asyncio.gather(*serving, return_exceptions=True), 10)


@pytest.mark.slurm
def test_following_goes_on_over_an_outage(alone: Real) -> None:
    """`get -w` says once that the server is away and once for each list that it is back; the rows are not printed again."""
    command = [sys.executable, "-m", "slinkytui", *alone.argv, "get", "nodes", "-w", "-o", "json"]
    with program(command) as process:
        assert process.stdout is not None and process.stderr is not None
        bound = threading.Timer(90, process.kill)
        bound.start()
        try:
            first = [json.loads(process.stdout.readline())["name"] for _ in range(3)]
            alone.lab.kill_rest()
            try:
                away = process.stderr.readline()
            finally:
                alone.lab.start_rest()
            back = process.stderr.readline()
            alone.lab.run("scontrol", "update", "nodename=gpu-1", "state=drain", "reason=later")
            # The load of the others may change meanwhile.
            rows = (json.loads(line) for line in process.stdout)
            changed = next(r for r in rows if r["name"] == "gpu-1" and r["reason"])
        finally:
            bound.cancel()
            alone.lab.run("scontrol", "update", "nodename=gpu-1", "state=resume", check=False)
            process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=30)
    assert sorted(first) == ["gpu-0", "gpu-1", "gpu-2"]
    assert "no answer" in away and alone.lab.url in away and back.endswith("/nodes is back\n")
    assert (changed["event"], changed["reason"]) == ("changed", "later")
    assert (process.returncode, rest) == (130, "")


def pods(reader: Reader) -> set[str]:
    return {str(p.id) for p in reader.rows(Table.PODS).values() if isinstance(p, Pod)}


def a_pod(kube: KubeLab, namespace: str, name: str) -> None:
    spec = {"containers": [{"name": "c", "image": "none"}]}
    kube.post(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": spec})


def killed(kube: KubeLab) -> None:
    """End the API server as a crash does: a graceful end waits for the watches."""
    process = kube.running.pop("kube-apiserver")
    process.kill()
    process.wait(10)


@pytest.mark.kube
async def test_the_api_server_leaves_and_comes_back(kube: KubeLab) -> None:
    space = kube.namespace("outage")
    for i in range(3):
        a_pod(kube, space, f"p{i}")
    want = {f"{space}/p{i}" for i in range(3)}
    async with reading(Options(kubeconfig=str(kube.kubeconfig), namespace=space), Table.PODS) as (_, reader):
        await until(lambda: pods(reader) == want, "the pods")
        lost: list[set[str]] = []
        reader.listen(lambda changed: lost.append(pods(reader)) if not want <= pods(reader) else None)
        await asyncio.to_thread(killed, kube)
        try:
            await until(lambda: source(reader, "/pods").state == "stale", "pods say that they are stale")
            assert source(reader, "/pods").last_success is not None
            assert kube.url in source(reader, "/pods").error
        finally:
            await asyncio.to_thread(kube.start_apiserver)
        await until(lambda: source(reader, "/pods").state == "live", "live again")
        await asyncio.to_thread(a_pod, kube, space, "late")
        await until(lambda: f"{space}/late" in pods(reader), "news after the outage")
        assert lost == []


@pytest.mark.kube
async def test_a_compacted_history_is_listed_again(kube: KubeLab) -> None:
    """410 under a watch: what went while nobody looked is gone, the rest never left."""
    space = kube.namespace("compacted")
    for name in ("stays", "goes"):
        a_pod(kube, space, name)
    async with reading(Options(kubeconfig=str(kube.kubeconfig), namespace=space), Table.PODS) as (_, reader):
        await until(lambda: len(pods(reader)) == 2, "the pods")
        lost: list[set[str]] = []
        reader.listen(lambda changed: lost.append(pods(reader)) if f"{space}/stays" not in pods(reader) else None)
        await asyncio.to_thread(kube.request, "DELETE", f"/api/v1/namespaces/{space}/pods/goes?gracePeriodSeconds=0")
        await asyncio.to_thread(kube.compact)
        await asyncio.to_thread(a_pod, kube, space, "new")
        await until(lambda: pods(reader) == {f"{space}/stays", f"{space}/new"}, "the truth after a compaction")
        await until(lambda: source(reader, "/pods").state == "live", "live again")
        assert lost == []
