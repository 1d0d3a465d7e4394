"""`slinkytui doctor`: what was found, what was chosen and why, and what does not answer. It changes nothing."""

from __future__ import annotations

import argparse
import asyncio
import json
import locale
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, Literal

from slinkytui.backend.clusters import Link
from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.http import Request
from slinkytui.backend.kube.resources import LEASES, NODESETS, PODS, SECRETS, Resource
from slinkytui.backend.kube.resources import NODES as KUBENODES
from slinkytui.backend.models import FleetNodeSet, Operator, Source, Table
from slinkytui.backend.options import Options
from slinkytui.backend.slurm.tokens import claims, clean
from slinkytui.commands_get import plain
from slinkytui.config import config_path
from slinkytui.kinds.text import span

State = Literal["ok", "note", "bad"]
SETTLE_S: Final = 15.0
SKEW_S: Final = 30.0
"""Tokens carry times: a clock that is further off makes them invalid."""
_RIGHTS: Final[tuple[tuple[str, Resource, str], ...]] = (
    ("list", PODS, ""), ("list", KUBENODES, ""), ("list", NODESETS, ""), ("list", LEASES, ""), ("get", SECRETS, ""),
    ("patch", PODS, ""), ("delete", PODS, ""), ("create", PODS, "eviction"), ("patch", KUBENODES, ""),
    ("patch", NODESETS, "scale"),
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One line. `bad` is something that does not answer; `note` is worth reading."""

    about: str
    name: str
    state: State
    text: str


def run_doctor(options: Options, args: argparse.Namespace) -> int:
    found = asyncio.run(examine(options, min(args.timeout, SETTLE_S)))
    if args.output == "json":
        sys.stdout.write(json.dumps([asdict(f) for f in found], indent=2) + "\n")
    else:
        sys.stdout.write(report(found))
    return 4 if any(f.state == "bad" for f in found) else 0


def report(found: list[Finding]) -> str:
    """The findings for a person, one block for each thing."""
    width = max((len(f.name) for f in found), default=0)
    lines: list[str] = []
    about = ""
    for finding in found:
        if finding.about != about:
            about = finding.about
            lines += ["", plain(about)] if lines else [plain(about)]
        mark = {"ok": " ", "note": "!", "bad": "✗"}[finding.state]
        lines.append(f"{mark} {plain(finding.name).ljust(width)}  {plain(finding.text)}".rstrip())
    return "\n".join(lines) + "\n"


async def examine(options: Options, settle_s: float = SETTLE_S) -> list[Finding]:
    """Everything there is to say, also when nothing answers."""
    found = [*_here(), *terminal()]
    engine = Engine(options)
    try:
        await engine.start()
        try:
            await engine.settled(settle_s)
        except TimeoutError:
            found.append(Finding("sources", "time", "note", f"not all have answered within {settle_s:.0f} s"))
        found += [f async for f in _kubernetes(engine)]
        for link in engine.clusters.links.values():
            found += [f async for f in _slurm(engine, link)]
        if not engine.clusters.links:
            found.append(
                Finding("Slurm", "cluster", "bad", "none found: no RestApi of a Controller, and no --slurm URL")
            )
        found += await _verbs(engine)
        found += [freshness(s, engine.clock.now()) for s in _sources(engine)]
    except SlinkyError as error:
        found.append(Finding("start", "engine", "bad", error.line()))
    finally:
        await engine.close()
    return found


def _here() -> list[Finding]:
    path = config_path()
    return [Finding("settings", "file", "ok", f"{path}{'' if path.exists() else ' (not there)'}")]


def terminal() -> list[Finding]:
    """What the console would find to draw on."""
    term, colours = os.environ.get("TERM", ""), os.environ.get("COLORTERM", "")
    size = shutil.get_terminal_size((0, 0))
    coding = (sys.stdout.encoding or "").lower().replace("-", "")
    shown = f"{size.columns}x{size.lines}" if size.columns else "no terminal"
    small = 0 < size.columns < 80 or 0 < size.lines < 24
    return [
        Finding("terminal", "TERM", "ok" if term not in ("", "dumb") else "note", term or "not set"),
        Finding("terminal", "colours", "ok", "24 bit" if colours in ("truecolor", "24bit") else "256 or fewer"),
        Finding("terminal", "size", "note" if small else "ok", shown + (" (80x24 is the least)" if small else "")),
        Finding("terminal", "locale", "ok" if coding == "utf8" else "note",
                f"{locale.setlocale(locale.LC_CTYPE)}, {coding or 'unknown'}{'' if coding == 'utf8' else ': use --plain'}"),
    ]  # fmt: skip


async def _kubernetes(engine: Engine) -> AsyncIterator[Finding]:
    if engine.access is None or engine.kube is None:
        yield Finding("Kubernetes", "access", "note", engine.hello().note or "none")
        return
    access, at = engine.access, "Kubernetes"
    files = engine.options.kubeconfig or os.environ.get("KUBECONFIG", "") or str(Path.home() / ".kube" / "config")
    yield Finding(at, "kubeconfig", "ok", "the pod's service account" if access.context == "in-cluster" else files)
    yield Finding(at, "context", "ok", f"{access.context} of {', '.join(access.contexts) or 'one'}")
    yield Finding(at, "namespace", "ok", engine.options.namespace or "all")
    began = time.monotonic()
    try:
        async with engine.kube.transport.send(Request("GET", "/version"), timeout_s=10.0) as answer:
            await answer.read()
            took, date = time.monotonic() - began, answer.headers.get("date", "")
        version = await engine.kube.version()
    except SlinkyError as error:
        yield Finding(at, "server", "bad", f"{access.server}: {error.line()}")
        return
    yield Finding(at, "server", "ok", f"{access.server}, {version}, {took * 1000:.0f} ms")
    if date:
        yield skew(at, parsedate_to_datetime(date).timestamp(), engine.clock.now())
    for verb, resource, sub in _RIGHTS:
        yield await _right(engine, verb, resource, sub)
    operators = [o for o in engine.store.rows(Table.OPERATORS).values() if isinstance(o, Operator)]
    for operator in operators:
        yield Finding(at, "operator", "ok", f"{operator.words(engine.clock.now())} ({operator.id})")
    if not operators:
        yield Finding(at, "operator", "note", f"nobody is seen to hold the lease {LEASES.fields.rpartition('=')[2]}")


async def _right(engine: Engine, verb: str, resource: Resource, sub: str) -> Finding:
    assert engine.kube is not None  # asked of a Kubernetes that has answered
    what = f"{verb} {resource.plural}{'/' + sub if sub else ''}"
    namespace = engine.options.namespace if resource.namespaced else ""
    try:
        may, why = await engine.kube.may(verb, resource, namespace, sub)
    except SlinkyError as error:
        return Finding("rights", what, "note", f"unknown: {error.line()}")
    return Finding("rights", what, "ok" if may else "note", "yes" if may else f"no{': ' + why if why else ''}")


async def _verbs(engine: Engine) -> list[Finding]:
    """Each verb where it could be done: allowed as far as is known, or why not."""
    sets = [n for n in engine.store.rows(Table.NODESETS).values() if isinstance(n, FleetNodeSet)]
    spaces = {engine.options.namespace} - {""} or {n.id.namespace for n in sets}
    places = [
        (f"Slurm {name}", name, "")
        for name in sorted(link.name for link in engine.clusters.links.values() if link.name)
    ]
    places += [(f"namespace {space}", "", space) for space in sorted(spaces)]
    out: list[Finding] = []
    for title, cluster, space in places:
        for verb, why in (await engine.rights.of(cluster, space)).items():
            out.append(Finding(f"verbs in {title}", verb, "note" if why else "ok", why or "yes"))
    return out


def skew(about: str, theirs: float, ours: float) -> Finding:
    """How far a server's clock is off ours; its answer is whole seconds and some travel old."""
    off = theirs - ours
    if abs(off) <= 2:
        return Finding(about, "clock", "ok", "as ours")
    text = f"{span(abs(off))} {'ahead of' if off > 0 else 'behind'} ours"
    return Finding(about, "clock", "ok" if abs(off) < SKEW_S else "note", text)


async def _slurm(engine: Engine, link: Link) -> AsyncIterator[Finding]:
    at = f"Slurm {link.name or link.controller or link.url}"
    yield Finding(at, "found", "ok", link.found)
    yield Finding(at, "address", "ok", link.url)
    yield token_finding(at, engine.options, link, engine.clock.now())
    client = link.client
    if client is None:
        failed = [s for s in _sources(engine) if s.name.startswith("slurm/") and s.state in ("stale", "refused")]
        mine = [s.error for s in failed if s.name in (f"slurm/{link.controller}", f"slurm/{link.url}")]
        yield Finding(at, "answer", "bad", mine[0] if mine else "none yet")
        return
    began = time.monotonic()
    try:
        await client.call("GET", "diag/", what="diag", key="statistics")
    except SlinkyError as error:
        yield Finding(at, "answer", "bad", error.line())
        return
    took = (time.monotonic() - began) * 1000
    yield Finding(at, "answer", "ok", f"Slurm {client.release}, REST {client.version}, {took:.0f} ms")
    yield Finding(at, "user", "ok", client.user or "unknown")
    for verb, why in sorted(client.missing().items()):
        yield Finding(at, verb, "note", f"not in this release: {why}")


def token_finding(about: str, options: Options, link: Link, now: float) -> Finding:
    """Where the token comes from and when it ends. The token itself is never shown."""
    if options.token_file:
        source = f"file {options.token_file}"
        try:
            text = clean(Path(options.token_file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            return Finding(about, "token", "bad", f"{source} cannot be read: {error}")
    elif os.environ.get("SLURM_JWT"):
        source, text = "SLURM_JWT", clean(os.environ["SLURM_JWT"])
    elif link.controller is not None:
        return Finding(about, "token", "ok", f"made with the JWT key of Controller {link.controller}, for user slurm")
    else:
        return Finding(about, "token", "bad", "none (--token-file FILE, or SLURM_JWT=$(scontrol token))")
    end = claims(text).get("exp")
    if not isinstance(end, int | float):
        return Finding(about, "token", "note", f"{source}, says no end")
    if end <= now:
        return Finding(about, "token", "bad", f"{source}, ended {span(now - end)} ago")
    return Finding(about, "token", "ok" if end - now > 300 else "note", f"{source}, ends in {span(end - now)}")


def _sources(engine: Engine) -> list[Source]:
    return sorted((s for s in engine.store.rows(Table.SOURCES).values() if isinstance(s, Source)), key=lambda s: s.name)


def freshness(source: Source, now: float) -> Finding:
    """A source's age, or why it has none."""
    if source.state == "live":
        age = "" if source.last_success is None else f", {span(now - source.last_success)} old"
        rows = "" if source.rows is None else f", {source.rows} rows"
        return Finding("sources", source.name, "ok", f"live{age}{rows}{', ' + source.error if source.error else ''}")
    since = "never answered" if source.last_success is None else f"last answer {span(now - source.last_success)} ago"
    state: State = "note" if source.state in ("absent", "starting") else "bad"
    return Finding("sources", source.name, state, f"{source.state}, {since}: {source.error}")
