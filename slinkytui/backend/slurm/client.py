"""The client of one slurmrestd: finds the newest common API version, reads lists row by row while they stream, and
writes. What it returns are model rows; what it raises is of `backend.errors`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from slinkytui.backend.clock import Clock
from slinkytui.backend.errors import (
    BadRequest,
    ConfigError,
    Conflict,
    NotFound,
    SlinkyError,
    SlurmError,
    Unsupported,
)
from slinkytui.backend.http import Query, Request, Transport
from slinkytui.backend.models import (
    Diag,
    Job,
    JobState,
    License,
    Partition,
    Ping,
    Reservation,
    Row,
    Share,
    SlurmNode,
)
from slinkytui.backend.slurm.errors import Complaint, CredentialRefused, classify, complaints, printable
from slinkytui.backend.slurm.figures import diag_row, license_row, share_row
from slinkytui.backend.slurm.jobids import has_task, parse_job_id
from slinkytui.backend.slurm.replies import Listing, Reply, Written, no_slurm, parse, records, stamp_of
from slinkytui.backend.slurm.slicer import RowSlicer
from slinkytui.backend.slurm.tokens import Tokens, user_of
from slinkytui.backend.slurm.wire import JOBS, NODES, PARTITIONS, RESERVATIONS, STATES, Shape, read_row

__all__ = ["VERSIONS", "Listing", "SlurmClient", "Written", "parse"]

VERSIONS: Final = ("v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42")
_BUDGET_S: Final = 0.004
_TRIES: Final = 3
_ENDED: Final = (2021,)
"""ESLURM_ALREADY_DONE."""
R = TypeVar("R", bound=Row)


class SlurmClient:
    """One cluster. `probe` first; `cluster`, `release` and `version` are known after it."""

    def __init__(self, transport: Transport, tokens: Tokens, clock: Clock, *, cluster: str = "") -> None:
        self._transport, self._tokens, self._clock = transport, tokens, clock
        self.cluster, self.release, self.version, self.user = cluster, "", "", ""
        self._upgraded = False
        self._known: dict[str, dict[int, Row]] = {}
        """The rows of the last full list of a kind, by what was read: most records of a poll are those of the last."""

    async def probe(self) -> None:
        """Find the newest version that both speak, and check that the token is taken."""
        await self._find_version()
        await self.call("GET", "diag/", what="diag", key="statistics")

    async def _find_version(self) -> None:
        for version in VERSIONS:
            reply = await self._once("GET", f"/slurm/{version}/ping/", (), b"")
            if reply.status == 404 and not reply.data:
                continue
            if reply.status >= 400:
                raise classify("ping", reply.status, reply.errors, reply.body, token_user=self.user)
            if not reply.data:
                raise no_slurm("ping", reply.body)
            self.version = version
            self._learn(reply.data)
            self._upgraded = False
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
        """All records of a job or array, or the one of a task. Slurm answers a task that is not there with the array."""
        try:
            asked = parse_job_id(text)
        except ValueError as error:
            raise BadRequest(str(error)) from error
        rows = [r for r in await self._rows(JOBS, f"job/{quote(text, safe='')}", f"job {text}") if isinstance(r, Job)]
        if not asked.tasks:
            return rows
        found = [r for r in rows if r.id.task in asked.tasks]
        waits = [r for r in rows if r.tasks and any(has_task(r.tasks, t) is not False for t in asked.tasks)]
        if not found and not waits:
            raise NotFound(f"job {text} not found", detail=f"its array {asked.job} has no such task")
        return found or waits

    async def partition(self, name: str) -> Partition:
        rows = await self._rows(PARTITIONS, f"partition/{quote(name, safe='')}", f"partition {name}")
        return _only(rows, Partition, f"partition {name}")

    async def reservation(self, name: str) -> Reservation:
        rows = await self._rows(RESERVATIONS, f"reservation/{quote(name, safe='')}", f"reservation {name}")
        return _only(rows, Reservation, f"reservation {name}")

    async def jobs_state(self) -> list[JobState]:
        """Id and states of every job and array task: a hundredth of the full list."""
        return [r for r in (await self._list(STATES, None)).rows if isinstance(r, JobState)]

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
            for p in records(reply, "pings")
        ]

    async def diag(self) -> Diag:
        """The server's own figures."""
        reply = await self.call("GET", "diag/", what="diag", key="statistics")
        found = reply.data["statistics"]
        if not isinstance(found, dict):
            raise SlurmError("diag: the answer has no statistics", status=reply.status, detail=printable(reply.body))
        return diag_row(found)

    async def licenses(self) -> list[License]:
        reply = await self.call("GET", "licenses/", what="licenses", key="licenses")
        return [license_row(r, self.cluster) for r in records(reply, "licenses")]

    async def shares(self) -> list[Share]:
        """Fair shares of accounts and users; a cluster without accounting has none."""
        reply = await self.call("GET", "shares", what="shares", key="shares")
        outer = reply.data["shares"]
        inner = outer.get("shares") if isinstance(outer, dict) else outer
        if not isinstance(inner, list):
            raise SlurmError("shares: the answer has no list", status=reply.status, detail=printable(reply.body))
        return [share_row(r, self.cluster) for r in inner if isinstance(r, dict)]

    async def raw(self, path: str, key: str, what: str) -> Any:
        """The first record of a lookup, as the server gives it."""
        reply = await self.call("GET", path, what=what, key=key, lookup=True)
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
        return self._verdict(reply.data.get("results"), reply, f"job {raw_id}")

    async def job_hold(self, raw_id: int) -> Written:
        return await self.job_update(raw_id, {"hold": True})

    async def job_release(self, raw_id: int) -> Written:
        return await self.job_update(raw_id, {"hold": False})

    async def job_cancel(self, text: str, signal: str = "") -> Written:
        """Cancel or signal one job; a refusal inside a 200 answer is raised."""
        if "[" in text:
            # job/ takes no brackets; the call for many jobs does.
            refused = await self.jobs_kill([text], signal)
            if refused:
                raise Conflict(f"job {text}: refused", detail="; ".join(dict.fromkeys(refused.values())))
            return Written()
        query = (("signal", signal),) if signal else ()
        reply = await self.call("DELETE", f"job/{quote(text, safe='')}", query=query, what=f"job {text}")
        return self._verdict(reply.data.get("status"), reply, f"job {text}")

    async def jobs_kill(self, jobs: Sequence[str], signal: str = "") -> dict[str, str]:
        """Cancel or signal many jobs in one call: the refusal of each that was refused, by the id as it was asked for.
        Jobs that have ended are no refusals."""
        body = {"jobs": list(jobs), **({"signal": signal} if signal else {})}
        reply = await self.call("DELETE", "jobs/", body, what=f"{len(jobs)} jobs", key="status")
        out: dict[str, str] = {}
        for entry in records(reply, "status"):
            error = entry.get("error")
            if isinstance(error, dict) and error.get("code") and error.get("code") not in _ENDED:
                step = str(entry.get("step_id") or "").partition(".")[0]
                asked = step if step in jobs else step.partition("_")[0]
                out[asked] = str(error.get("message") or error.get("string") or error["code"])
        return out

    async def job_cancel_pending(self, text: str) -> Written:
        """Cancel what is pending of a job or array. slurmctld itself refuses what has started meanwhile: a job that
        runs by now raises Conflict, and running tasks of the array go on (a warning names them)."""
        body = {"jobs": [text], "job_state": ["PENDING"]}
        reply = await self.call("DELETE", "jobs/", body, what=f"job {text}")
        found = [e for e in reply.data.get("status") or [] if isinstance(e, dict)]
        spared = [str(e.get("step_id")) for e in found if str(e.get("step_id")).startswith(f"{text}_")]
        self._verdict([e for e in found if str(e.get("step_id")) not in spared], reply, f"job {text}")
        return Written((*reply.warnings, *([f"started already and left alone: {', '.join(spared)}"] if spared else ())))

    async def requeue(self, text: str) -> Written:
        if "job.requeue" in self.missing():
            raise Unsupported(self.missing()["job.requeue"])
        reply = await self.call("POST", "jobs/requeue", {"jobs": [text]}, what=f"job {text}")
        return self._verdict(reply.data.get("status"), reply, f"job {text}")

    async def reconfigure(self) -> Written:
        reply = await self.call("GET", "reconfigure/", what="reconfigure", retry=False)
        return Written(reply.warnings)

    async def _write(self, method: str, path: str, body: dict[str, Any] | None, what: str) -> Written:
        return Written((await self.call(method, path, body, what=what)).warnings)

    def _verdict(self, found: Any, reply: Reply, what: str) -> Written:
        """Refusals stand inside an answer of 200, as a list, or a list of lists."""
        entries = found if isinstance(found, list) else []
        flat = [e for entry in entries for e in (entry if isinstance(entry, list) else [entry]) if isinstance(e, dict)]
        bad: list[Complaint] = []
        for entry in flat:
            error = entry.get("error")
            code = error.get("code") if isinstance(error, dict) else entry.get("error_code")
            text = error.get("message") or error.get("string") if isinstance(error, dict) else entry.get("error")
            if code:
                number = code if isinstance(code, int) else 0
                bad.append(Complaint(description=str(text or entry.get("why") or code), error_number=number))
        if bad:
            raise classify(what, reply.status, bad, token_user=self.user)
        return Written(reply.warnings)

    async def call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, what: str, key: str = "", query: Query = (),
        retry: bool | None = None, lookup: bool = False,
    ) -> Reply:  # fmt: skip
        """One call of the chosen version. Only plain reads are tried again; `key` must stand in the answer: a lookup
        without it has found nothing if the server says so, anything else has failed."""
        if self._upgraded:
            await self._find_version()
        data = b"" if body is None else msgspec.json.encode(body)
        tries = _TRIES if (method == "GET" if retry is None else retry) else 1
        for attempt in range(tries):
            try:
                reply = await self._once(method, f"/slurm/{self.version}/{path}", query, data)
                if reply.status == 404 and not reply.data and await self._moved():
                    reply = await self._once(method, f"/slurm/{self.version}/{path}", query, data)
                return self._judge(reply, what, key, lookup=lookup)
            except CredentialRefused:
                if attempt or tries == 1:
                    raise
                self._tokens.forget()
            except SlinkyError as error:
                if not error.retryable or attempt == tries - 1:
                    raise
                await self._clock.sleep(random.uniform(0.1, 0.5) * 2**attempt)
        raise AssertionError("unreachable: the last try returns or raises")

    async def _moved(self) -> bool:
        """After a 404: an upgraded server has dropped our version and speaks another. The call itself did nothing."""
        before = self.version
        await self._find_version()
        return self.version != before

    def _judge(self, reply: Reply, what: str, key: str, *, lookup: bool = False) -> Reply:
        if reply.status == 304:
            return reply
        if reply.status >= 400 or reply.errors:
            raise classify(what, reply.status, reply.errors, reply.body, token_user=self.user)
        if not reply.data:
            raise no_slurm(what, reply.body)
        if key and reply.data.get(key) is None:
            if lookup and reply.warnings:
                raise NotFound(f"{what} not found", detail="; ".join(reply.warnings))
            if key == "job_id":
                raise BadRequest(f"{what}: refused", detail="; ".join(reply.warnings) or "the answer has no job id")
            raise SlurmError(f"{what}: the answer has no {key}", status=reply.status, detail="; ".join(reply.warnings))
        self._learn(reply.data)
        return reply

    async def _headers(self) -> dict[str, str]:
        token = await self._tokens.token()
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError("the Slurm token has characters that no token has", hint="is it the right file?")
        self.user = user_of(token)
        return {"x-slurm-user-token": token, "accept": "application/json", "content-type": "application/json"}

    async def _once(self, method: str, path: str, query: Query, data: bytes) -> Reply:
        request = Request(method, path, query, await self._headers(), data)
        async with self._transport.send(request) as answer:
            status = answer.status
            try:
                body = await answer.read()
            except ValueError as error:
                raise SlurmError(
                    f"{method} {path}: the answer is too large", status=status, detail=str(error)
                ) from None
        found = parse(body)
        return Reply(status, found, body, complaints(found.get("errors")))

    def _learn(self, data: dict[str, Any]) -> None:
        meta = data.get("meta")
        slurm = meta.get("slurm") if isinstance(meta, dict) else None
        if not isinstance(slurm, dict):
            return
        release = str(slurm.get("release") or self.release)
        self._upgraded = self._upgraded or bool(self.release and release != self.release)
        self.release = release
        self.cluster = self.cluster or str(slurm.get("cluster") or "")

    async def _rows(self, shape: Shape, path: str, what: str) -> list[Row]:
        reply = await self.call("GET", path, what=what, key=shape.key, lookup=True)
        records = reply.data[shape.key]
        if records == []:
            raise NotFound(f"{what} not found", detail="; ".join(reply.warnings))
        found = (
            [read_row(shape, msgspec.json.encode(r), self.cluster) for r in records]
            if isinstance(records, list)
            else []
        )
        rows = [r for r in found if r is not None]
        if not rows:
            raise SlurmError(f"{what}: the answer cannot be read", status=reply.status, detail=printable(reply.body))
        return rows

    async def _list(self, shape: Shape, update_time: int | None) -> Listing:
        if self._upgraded:
            await self._find_version()
        try:
            return await self._list_once(shape, update_time)
        except CredentialRefused:
            self._tokens.forget()
        except Unsupported:
            if not await self._moved():
                raise
        except SlurmError:
            if update_time is None:
                raise
            # 24.11 answers 500 "Unable to query partitions" when nodes have changed and partitions have not.
            update_time = None
        return await self._list_once(shape, update_time)

    async def _list_once(self, shape: Shape, update_time: int | None) -> Listing:
        query = shape.query + ((("update_time", str(update_time)),) if update_time else ())
        request = Request("GET", f"/slurm/{self.version}/{shape.path}", query, await self._headers())
        rows: list[Row] = []
        known, seen = self._known.get(shape.path, {}), dict[int, Row]()
        lost = size = 0
        async with self._transport.send(request) as answer:
            if answer.status == 304:
                return Listing(unchanged=True, last_update=update_time)
            slicer = RowSlicer(shape.key)
            until = self._clock.monotonic() + _BUDGET_S
            async for chunk in answer.chunks:
                size += len(chunk)
                for raw in slicer.feed(chunk):
                    mark = hash(raw)
                    row = known.get(mark) or read_row(shape, raw, self.cluster)
                    if row is None:
                        lost += 1
                    else:
                        seen[mark] = row
                        rows.append(row)
                    if self._clock.monotonic() > until:
                        await self._clock.sleep(0)
                        until = self._clock.monotonic() + _BUDGET_S
            tail = slicer.finish()
            status = answer.status
        document = parse(tail)
        reply = Reply(status, document, tail, complaints(document.get("errors")))
        if status >= 400 or reply.errors:
            raise classify(shape.key, status, reply.errors, tail, token_user=self.user)
        if not document:
            raise no_slurm(shape.key, tail)
        if not isinstance(document.get(shape.key), list):
            # Only a list that is there can be empty: anything else must not clear a table.
            raise SlurmError(f"the answer has no list of {shape.key}", status=status, detail=printable(tail))
        for record in document[shape.key]:
            row = read_row(shape, msgspec.json.encode(record), self.cluster)
            if row is None:
                lost += 1
            else:
                rows.append(row)
        self._learn(document)
        self._known[shape.path] = seen
        stamp = stamp_of(document.get("last_update"))
        if update_time and not rows and not stamp:
            # jobs/ answers "no news" with an empty list, last_update 0 and a warning: not "no jobs".
            return Listing(unchanged=True, last_update=update_time, warnings=reply.warnings)
        return Listing(rows, False, stamp, reply.warnings, lost, size)


def _only(rows: list[Row], kind: type[R], what: str) -> R:
    for row in rows:
        if isinstance(row, kind):
            return row
    raise classify(what, 422, [Complaint("not in the answer")])
