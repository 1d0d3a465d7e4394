"""The client of one slurmrestd: finds the newest common API version, reads lists row by row while they stream, and
writes. What it returns are model rows; what it raises is of `backend.errors`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from slinkytui.backend.clock import Clock
from slinkytui.backend.errors import SlinkyError, Unreachable, Unsupported
from slinkytui.backend.http import Query, Request, Transport
from slinkytui.backend.models import Job, JobState, Partition, Ping, Reservation, Row, SlurmNode
from slinkytui.backend.slurm.errors import Complaint, CredentialRefused, classify, complaints, printable
from slinkytui.backend.slurm.slicer import RowSlicer
from slinkytui.backend.slurm.tokens import Tokens, user_of
from slinkytui.backend.slurm.wire import JOBS, NODES, PARTITIONS, RESERVATIONS, Shape, names, read_row

VERSIONS: Final = ("v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42")
_BUDGET_S: Final = 0.004
_TRIES: Final = 3
R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as it was at `last_update`; `unchanged` means that the server had no news, and says nothing of rows."""

    rows: Sequence[Row] = ()
    unchanged: bool = False
    last_update: int | None = None
    warnings: tuple[str, ...] = ()
    lost: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a write: the server's warnings, and of a submit the job's number and its message."""

    warnings: tuple[str, ...] = ()
    job_id: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    data: dict[str, Any]
    body: bytes
    errors: list[Complaint] = field(default_factory=list)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(w.text for w in complaints(self.data.get("warnings")) if w.text)


class SlurmClient:
    """One cluster. `probe` first; `cluster`, `release` and `version` are known after it."""

    def __init__(self, transport: Transport, tokens: Tokens, clock: Clock, *, cluster: str = "") -> None:
        self._transport, self._tokens, self._clock = transport, tokens, clock
        self.cluster, self.release, self.version, self.user = cluster, "", "", ""

    async def probe(self) -> None:
        """Find the newest version that both speak, and check that the token is taken."""
        for version in VERSIONS:
            reply = await self._once("GET", f"/slurm/{version}/ping/", (), b"")
            if reply.status == 404 and not reply.data:
                continue
            if reply.status >= 400:
                raise classify("ping", reply.status, reply.errors, reply.body, token_user=self.user)
            self.version = version
            self._learn(reply.data)
            await self.call("GET", "diag/", what="diag", key="statistics")
            return
        raise Unsupported(
            "this slurmrestd speaks no REST version that we know", hint=f"we know {VERSIONS[-1]} to {VERSIONS[0]}"
        )

    def missing(self) -> dict[str, str]:
        """Verbs that this release cannot do over REST, and why."""
        out = dict.fromkeys(("job.suspend", "job.resume", "node.reboot"), "Slurm has no such call over REST")
        if self.version < "v0.0.45":
            out["job.requeue"] = f"Slurm {self.release} ({self.version}) has no requeue over REST"
        if self.version < "v0.0.44":
            out["node.new"] = f"Slurm {self.release} ({self.version}) has no new/node over REST"
        return out

    async def nodes(self, update_time: int | None = None) -> Listing:
        return await self._list(NODES, update_time)

    async def jobs(self, update_time: int | None = None) -> Listing:
        return await self._list(JOBS, update_time)

    async def partitions(self, update_time: int | None = None) -> Listing:
        return await self._list(PARTITIONS, update_time)

    async def reservations(self, update_time: int | None = None) -> Listing:
        return await self._list(RESERVATIONS, update_time)

    async def node(self, name: str) -> SlurmNode:
        return _only(await self._rows(NODES, f"node/{quote(name, safe='')}", f"node {name}"), SlurmNode, f"node {name}")

    async def job(self, text: str) -> list[Job]:
        """All records of a job or array."""
        return [r for r in await self._rows(JOBS, f"job/{quote(text, safe='')}", f"job {text}") if isinstance(r, Job)]

    async def partition(self, name: str) -> Partition:
        rows = await self._rows(PARTITIONS, f"partition/{quote(name, safe='')}", f"partition {name}")
        return _only(rows, Partition, f"partition {name}")

    async def reservation(self, name: str) -> Reservation:
        rows = await self._rows(RESERVATIONS, f"reservation/{quote(name, safe='')}", f"reservation {name}")
        return _only(rows, Reservation, f"reservation {name}")

    async def jobs_state(self) -> list[JobState]:
        reply = await self.call("GET", "jobs/state/", what="job states", key="jobs")
        return [
            JobState(str(j.get("job_id")), names(j.get("state"))) for j in reply.data["jobs"] if isinstance(j, dict)
        ]

    async def ping(self) -> list[Ping]:
        reply = await self.call("GET", "ping/", what="ping", key="pings")
        return [
            Ping(
                str(p.get("hostname", "")),
                bool(p["responding"]) if "responding" in p else p.get("pinged") == "UP",
                p.get("primary"),
                p.get("latency"),
                str(p.get("mode") or ""),
            )
            for p in reply.data["pings"]
        ]

    async def raw(self, path: str, key: str, what: str) -> Any:
        """The first record of a lookup, as the server gives it."""
        reply = await self.call("GET", path, what=what, key=key)
        found = reply.data[key]
        return found[0] if isinstance(found, list) and len(found) == 1 else found

    async def node_update(self, name: str, body: dict[str, Any]) -> Written:
        return await self._write("POST", f"node/{quote(name, safe='')}", body, f"node {name}")

    async def nodes_update(self, hosts: str, body: dict[str, Any]) -> Written:
        return await self._write("POST", "nodes/", {"name": [hosts], **body}, f"nodes {hosts}")

    async def node_delete(self, name: str) -> Written:
        return await self._write("DELETE", f"node/{quote(name, safe='')}", None, f"node {name}")

    async def node_new(self, conf: str) -> Written:
        if "node.new" in self.missing():
            raise Unsupported(self.missing()["node.new"])
        return await self._write("POST", "new/node/", {"node_conf": conf}, "new node")

    async def job_submit(self, script: str, job: dict[str, Any]) -> Written:
        """Submit; an answer without a job id is a failure, whatever its status."""
        reply = await self.call("POST", "job/submit", {"script": script, "job": job}, what="submit", key="job_id")
        return Written(reply.warnings, int(reply.data["job_id"]), str(reply.data.get("job_submit_user_msg") or ""))

    async def job_update(self, raw_id: int, body: dict[str, Any]) -> Written:
        reply = await self.call("POST", f"job/{raw_id}", body, what=f"job {raw_id}")
        return self._verdict(reply, "results", f"job {raw_id}")

    async def job_hold(self, raw_id: int) -> Written:
        return await self.job_update(raw_id, {"hold": True})

    async def job_release(self, raw_id: int) -> Written:
        return await self.job_update(raw_id, {"hold": False})

    async def job_cancel(self, text: str, signal: str = "") -> Written:
        """Cancel or signal one job; a refusal inside a 200 answer is raised."""
        query = (("signal", signal),) if signal else ()
        reply = await self.call("DELETE", f"job/{quote(text, safe='')}", query=query, what=f"job {text}")
        return self._verdict(reply, "status", f"job {text}")

    async def requeue(self, text: str) -> Written:
        if "job.requeue" in self.missing():
            raise Unsupported(self.missing()["job.requeue"])
        reply = await self.call("POST", "jobs/requeue", {"jobs": [text]}, what=f"job {text}")
        return self._verdict(reply, "status", f"job {text}")

    async def reconfigure(self) -> Written:
        reply = await self.call("GET", "reconfigure/", what="reconfigure", retry=False)
        return Written(reply.warnings)

    async def _write(self, method: str, path: str, body: dict[str, Any] | None, what: str) -> Written:
        return Written((await self.call(method, path, body, what=what)).warnings)

    def _verdict(self, reply: _Reply, key: str, what: str) -> Written:
        found = reply.data.get(key) or []
        flat = [e for entry in found for e in (entry if isinstance(entry, list) else [entry]) if isinstance(e, dict)]
        bad: list[Complaint] = []
        for entry in flat:
            error = entry.get("error")
            code = error.get("code") if isinstance(error, dict) else entry.get("error_code")
            text = error.get("message") or error.get("string") if isinstance(error, dict) else entry.get("error")
            if code:
                bad.append(Complaint(description=str(text or entry.get("why") or ""), error_number=int(code)))
        if bad:
            raise classify(what, reply.status, bad, token_user=self.user)
        return Written(reply.warnings)

    async def call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, what: str, key: str = "", query: Query = (),
        retry: bool | None = None,
    ) -> _Reply:  # fmt: skip
        """One call of the chosen version. Only plain reads are tried again; `key` must stand in the answer."""
        data = b"" if body is None else msgspec.json.encode(body)
        tries = _TRIES if (method == "GET" if retry is None else retry) else 1
        for attempt in range(tries):
            try:
                return self._judge(await self._once(method, f"/slurm/{self.version}/{path}", query, data), what, key)
            except CredentialRefused:
                if attempt or tries == 1:
                    raise
                self._tokens.forget()
            except SlinkyError as error:
                if not error.retryable or attempt == tries - 1:
                    raise
                await self._clock.sleep(random.uniform(0.1, 0.5) * 2**attempt)
        raise AssertionError("unreachable: the last try returns or raises")

    def _judge(self, reply: _Reply, what: str, key: str) -> _Reply:
        if reply.status == 304:
            return reply
        failed = reply.status >= 400 or bool(reply.errors) or not reply.data
        if failed or (key and reply.data.get(key) is None):
            missing = [] if failed else [Complaint("; ".join(reply.warnings) or f"the answer has no {key}")]
            raise classify(what, reply.status, reply.errors or missing, reply.body, token_user=self.user)
        self._learn(reply.data)
        return reply

    async def _headers(self) -> dict[str, str]:
        token = await self._tokens.token()
        self.user = user_of(token)
        return {"x-slurm-user-token": token, "accept": "application/json", "content-type": "application/json"}

    async def _once(self, method: str, path: str, query: Query, data: bytes) -> _Reply:
        request = Request(method, path, query, await self._headers(), data)
        async with self._transport.send(request) as answer:
            body = await answer.read()
            status = answer.status
        found = parse(body)
        return _Reply(status, found, body, complaints(found.get("errors")))

    def _learn(self, data: dict[str, Any]) -> None:
        slurm = (data.get("meta") or {}).get("slurm") or {}
        self.release = str(slurm.get("release") or self.release)
        self.cluster = self.cluster or str(slurm.get("cluster") or "")

    async def _rows(self, shape: Shape, path: str, what: str) -> list[Row]:
        reply = await self.call("GET", path, what=what, key=shape.key)
        found = [read_row(shape, msgspec.json.encode(r), self.cluster) for r in reply.data[shape.key]]
        rows = [r for r in found if r is not None]
        if not rows:
            raise classify(what, 422, [Complaint(f"no {shape.key} in the answer")])
        return rows

    async def _list(self, shape: Shape, update_time: int | None) -> Listing:
        query = shape.query + ((("update_time", str(update_time)),) if update_time else ())
        request = Request("GET", f"/slurm/{self.version}/{shape.path}", query, await self._headers())
        rows: list[Row] = []
        lost = size = 0
        async with self._transport.send(request) as answer:
            if answer.status == 304:
                return Listing(unchanged=True, last_update=update_time)
            slicer = RowSlicer(shape.key)
            until = self._clock.monotonic() + _BUDGET_S
            async for chunk in answer.chunks:
                size += len(chunk)
                for raw in slicer.feed(chunk):
                    row = read_row(shape, raw, self.cluster)
                    if row is None:
                        lost += 1
                    else:
                        rows.append(row)
                    if self._clock.monotonic() > until:
                        await self._clock.sleep(0)
                        until = self._clock.monotonic() + _BUDGET_S
            tail = slicer.finish()
            status = answer.status
        document = parse(tail)
        reply = _Reply(status, document, tail, complaints(document.get("errors")))
        if status >= 400 or reply.errors or shape.key not in document:
            raise classify(shape.key, status, reply.errors, tail, token_user=self.user)
        for record in document[shape.key] or []:
            row = read_row(shape, msgspec.json.encode(record), self.cluster)
            if row is None:
                lost += 1
            else:
                rows.append(row)
        self._learn(document)
        stamp = _stamp(document.get("last_update"))
        if update_time and not rows and not stamp:
            # jobs/ answers "no news" with an empty list, last_update 0 and a warning: not "no jobs".
            return Listing(unchanged=True, last_update=update_time, warnings=reply.warnings)
        return Listing(rows, False, stamp, reply.warnings, lost, size)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object of a body, bare NaN and Infinity too; {} when it is something else."""
    if not body.lstrip().startswith(b"{"):
        return {}
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        try:
            found = json.loads(body.decode("utf-8", "replace"))
        except ValueError:
            raise Unreachable("the answer of slurmrestd is cut or no JSON", detail=printable(body)) from None
    return found if isinstance(found, dict) else {}


def _stamp(value: Any) -> int | None:
    found = value.get("number") if isinstance(value, dict) else value
    return int(found) if isinstance(found, int | float) and found else None


def _only(rows: list[Row], kind: type[R], what: str) -> R:
    for row in rows:
        if isinstance(row, kind):
            return row
    raise classify(what, 422, [Complaint("not in the answer")])
