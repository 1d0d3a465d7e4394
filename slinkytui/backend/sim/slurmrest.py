"""slurmrestd over the model: v0.0.42 to v0.0.45, with its envelope and its odd answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import unquote

import jwt
import msgspec

from slinkytui.backend.http import Request, Response
from slinkytui.backend.sim.arrays import ranges
from slinkytui.backend.sim.jobs import Refusal
from slinkytui.backend.sim.jobsrest import (
    ADMINS,
    job_from,
    kill,
    record,
    reservation_record,
    state_rows,
    submit_warnings,
    update,
)
from slinkytui.backend.sim.jobsrest import number as _n
from slinkytui.backend.sim.slurm import SimNode, SlurmSim

VERSIONS: Final = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")
RELEASE: Final = "26.05.5"
_QUERY: Final = "Query empty or not RFC7320 compliant"
_TEXTS: Final = {1007: "Protocol authentication error"}


class SlurmRest:
    """`handle` is the core of the server; records are encoded once and again only when they change."""

    def __init__(self, sim: SlurmSim, key: bytes) -> None:
        self._sim, self._key = sim, key
        self._node_bytes: dict[str, bytes] = {}
        self._job_bytes: dict[int, bytes] = {}
        self.away = False

    async def handle(self, request: Request) -> Response:
        parts = unquote(request.path).strip("/").split("/")
        token = request.headers.get("x-slurm-user-token") or request.headers.get("authorization", "").removeprefix(
            "Bearer "
        )
        if not token:
            return Response(401, b"Authentication failure", "text/plain")
        if len(parts) < 3 or parts[0] != "slurm" or parts[1] not in VERSIONS:
            return Response(404, b"Unable to find requested URL endpoint.", "text/plain")
        if parts[2] == "ping":
            ping = {
                "hostname": "slurmctld",
                "responding": True,
                "primary": True,
                "latency": 200,
                "pinged": "UP",
                "mode": "primary",
            }
            return self._answer({"pings": [ping]})
        user = self._user(token)
        if not user:
            return self._error(511, 1007, _TEXTS[1007], "op_handler")
        try:
            body = msgspec.json.decode(request.body) if request.body else {}
        except msgspec.DecodeError:
            return Response(400, b"Failure during parsing", "text/plain")
        try:
            return self._route(request, parts[2:], body, user, parts[1])
        except Refusal as refusal:
            status = 404 if refusal.code == 2017 and request.method == "GET" else 422
            return self._error(status, refusal.code, refusal.text, "slurmctld")

    def _user(self, token: str) -> str:
        try:
            claims = jwt.decode(
                token, self._key, algorithms=["HS256"], options={"verify_exp": False, "verify_iat": False}
            )
        except jwt.PyJWTError:
            return ""
        end = claims.get("exp")
        return str(claims.get("sun") or "") if isinstance(end, int) and end > self._sim.now else ""

    def _route(self, request: Request, parts: list[str], body: Any, user: str, version: str) -> Response:
        match (request.method, *parts):
            case ("GET", "diag"):
                states = [j.state for j in self._sim.jobs.values()]
                return self._answer({"statistics": {
                    "server_thread_count": 1, "req_time": _n(self._sim.now), "agent_queue_size": 0,
                    "jobs_pending": states.count("PENDING"), "jobs_running": states.count("RUNNING"),
                }})  # fmt: skip
            case ("GET", "licenses"):
                return self._answer({"licenses": [], "last_update": _n(self._sim.now)})
            case ("GET", "shares"):
                return self._answer({"shares": {"shares": [], "total_shares": 0}})
            case ("GET", "nodes"):
                return self._list("nodes", request, self._sim.stamp_nodes)
            case ("GET", "jobs"):
                return self._list("jobs", request, self._sim.stamp_jobs)
            case ("GET", "jobs", "state"):
                return self._answer({"jobs": state_rows(self._sim)})
            case ("GET", "node", name):
                if name not in self._sim.nodes:
                    return self._answer({}, errors=[_complaint(0, f"Failure to query node {name}", "No error")])
                return self._answer({"nodes": [self._node(self._sim.nodes[name])]})
            case ("GET", "job", text):
                return self._answer({"jobs": self._found(text)})
            case ("GET", "job", text, "requeue") if version == VERSIONS[-1]:
                return self._requeue([text])
            case ("POST", "jobs", "requeue") if version == VERSIONS[-1]:
                return self._requeue([str(t) for t in body.get("jobs") or ()])
            case ("GET", "partitions"):
                return self._answer({"partitions": self._partitions(), "last_update": _n(self._sim.stamp_nodes)})
            case ("GET", "partition", name):
                found = [p for p in self._partitions() if p["name"] == name]
                return self._answer(
                    {"partitions": found} if found else {},
                    warnings=[] if found else [f"Unable to find partition {name}"],
                )
            case ("GET", "reservations"):
                return self._answer({
                    "reservations": [reservation_record(self._sim, r) for r in self._sim.reservations.values()],
                    "last_update": _n(self._sim.now),
                })  # fmt: skip
            case ("GET", "reservation", name):
                return self._reservation(name)
            case ("POST", "node", name):
                return self._update_nodes([name], body, user)
            case ("DELETE", "node", name):
                if name not in self._sim.nodes:
                    raise Refusal(2018, "Invalid node name specified")
                if user not in ADMINS:
                    raise Refusal(2002, "Access/permission denied")
                if self._sim.nodes[name].jobs:
                    raise Refusal(2024, "Requested nodes are busy")
                del self._sim.nodes[name]
                self._sim.touch_node(name)
                return self._answer({})
            case ("POST", "nodes"):
                names = body.get("name") or []
                return self._update_nodes([names] if isinstance(names, str) else names, body, user)
            case ("POST", "job", "submit"):
                try:
                    return self._submit(body, user)
                except Refusal as no:
                    return self._error(422, no.code, "Batch job submission failed", "slurm_submit_batch_job()", no.text)
            case ("POST", "job", text):
                update(self._sim, _number(text), body, user)
                return self._answer({"results": []})
            case ("DELETE", "job", text):
                if "[" in text:
                    return self._error(
                        422, 9000, "Rejecting request. Failure parsing parameters", "op_handler_job", _QUERY
                    )
                return self._answer({"status": kill(self._sim, text, user, request.first("signal"))})
            case ("DELETE", "jobs"):
                states = [str(x).upper() for x in body.get("job_state") or []]
                texts = [str(t) for t in body.get("jobs") or ()]
                status = [e for t in texts for e in kill(self._sim, t, user, str(body.get("signal") or ""), states)]
                return self._answer({"status": status})
        return Response(404, b"Unable to find requested URL endpoint.", "text/plain")

    def _update_nodes(self, names: list[str], body: Any, user: str) -> Response:
        if user not in ADMINS:
            raise Refusal(2010, "Invalid user id")
        states = body.get("state") or []
        states = [states] if isinstance(states, str) else states
        for name in names:
            self._sim.update_node(name, str(states[0]).upper() if states else "", str(body.get("reason") or ""), user)
            node = self._sim.nodes[name]
            node.comment, node.extra = str(body.get("comment", node.comment)), str(body.get("extra", node.extra))
        return self._answer({})

    def _found(self, text: str) -> list[dict[str, Any]]:
        """A job, or every record of an array, whichever of its tasks was asked for."""
        number = text.partition("_")[0]
        found = self._sim.family(number)
        if not found:
            self._sim.job(_number(number))
        return [record(self._sim, j) for j in (*found[-1:], *found[:-1])]

    def _requeue(self, texts: list[str]) -> Response:
        for text in texts:
            found = self._sim.family(text)
            if not found:
                return self._error(404, 2017, "Invalid job id specified", "op_handler_jobs_requeue")
            for job in found:
                self._sim.requeue(job.id)
        return self._answer({"status": []})

    def _reservation(self, name: str) -> Response:
        found = self._sim.reservations.get(name)
        if found is not None:
            return self._answer({"reservations": [reservation_record(self._sim, found)]})
        if self._sim.reservations:
            return self._error(422, 9000, f"Unable to find reservation {name}", "_get_single_reservation")
        return self._answer({}, errors=[_complaint(0, f"Unable to query reservation {name}", "No error")])

    def _submit(self, body: Any, user: str) -> Response:
        job = body.get("job") or {}
        script = body.get("script") or job.get("script") or ""
        if not script:
            return self._error(422, 9000, "Populating field script failed", "submit")
        if not job.get("current_working_directory"):
            raise Refusal(2063, "Job's current_working_directory must be set")
        partition = str(job.get("partition") or next(iter(sorted(self._names())), ""))
        if partition not in self._names():
            raise Refusal(2000, "Invalid partition name specified")
        made = self._sim.submit(job_from(job, user, script, partition, self._sim.now))
        return self._answer(
            {"job_id": made.id, "step_id": "batch", "job_submit_user_msg": ""}, warnings=submit_warnings(made)
        )

    def _names(self) -> set[str]:
        return {p for n in self._sim.nodes.values() for p in n.partitions}

    def _partitions(self) -> list[dict[str, Any]]:
        out = []
        for name in sorted(self._names()):
            members = [n for n in self._sim.nodes.values() if name in n.partitions]
            out.append({
                "name": name, "nodes": {"configured": ",".join(n.name for n in members), "total": len(members)}, "partition": {"state": ["UP"]},
                "cpus": {"total": sum(n.cpus for n in members)}, "maximums": {"time": {"set": False, "infinite": True, "number": 0}},
                "tres": {"configured": f"node={len(members)},gres/gpu={sum(len(n.devices) for n in members)}"},
            })  # fmt: skip
        return out

    def _list(self, key: str, request: Request, stamp: float) -> Response:
        asked = request.first("update_time")
        # As slurmctld does: the answer carries the time of asking, and a change in that very second is still news.
        if asked.isdigit() and int(stamp) < int(asked):
            if key == "nodes":
                return Response(304)
            warning = f"No job changes since update_time[{asked}]"
            return self._answer({"jobs": [], "last_update": _n(None)}, warnings=[warning])
        return Response(200, self._stream(key, int(self._sim.now)))

    async def _stream(self, key: str, stamp: int) -> AsyncIterator[bytes]:
        records = self._node_records() if key == "nodes" else self._job_records()
        tail = msgspec.json.encode({"last_update": _n(stamp), **self._envelope([], [])})
        yield b'{"' + key.encode() + b'":['
        for at in range(0, len(records), 500):
            yield (b"," if at else b"") + b",".join(records[at : at + 500])
        yield b"]," + tail[1:]

    def _node_records(self) -> list[bytes]:
        sim = self._sim
        for name in sim.changed_nodes.union(n for n in sim.nodes if n not in self._node_bytes):
            if name in sim.nodes:
                self._node_bytes[name] = msgspec.json.encode(self._node(sim.nodes[name]))
            else:
                self._node_bytes.pop(name, None)
        sim.changed_nodes.clear()
        return list(self._node_bytes.values())

    def _job_records(self) -> list[bytes]:
        sim = self._sim
        for job_id in sim.changed_jobs.union(j for j in sim.jobs if j not in self._job_bytes):
            if job_id in sim.jobs:
                self._job_bytes[job_id] = msgspec.json.encode(record(sim, sim.jobs[job_id]))
            else:
                self._job_bytes.pop(job_id, None)
        sim.changed_jobs.clear()
        return list(self._job_bytes.values())

    def _node(self, n: SimNode) -> dict[str, Any]:
        used = [i for i, d in enumerate(n.devices) if d]
        reservation, flags = self._sim.reserved_flags(n.name)
        gres = f"gpu:{n.gpu_type}:{len(n.devices)}" if n.devices else ""
        gres_used = f"gpu:{n.gpu_type}:{len(used)}(IDX:{ranges(used) or 'N/A'})" if n.devices else ""
        return {
            "architecture": "x86_64", "name": n.name, "hostname": n.name, "address": n.name, "state": n.states(self._sim.jobs, flags),
            "reason": n.reason, "reason_set_by_user": n.reason_user, "reason_changed_at": _n(n.reason_time or None),
            "features": list(n.features), "active_features": list(n.features), "partitions": list(n.partitions), "cpus": n.cpus,
            "alloc_cpus": n.cpus_used, "cpu_load": n.cpus_used * 100, "real_memory": n.memory_mib, "alloc_memory": n.memory_used,
            "free_mem": _n(n.memory_mib - n.memory_used), "gres": gres, "gres_used": gres_used, "gres_drained": "N/A",
            "comment": n.comment, "extra": n.extra, "weight": 1, "boot_time": _n(n.boot), "slurmd_start_time": _n(n.boot),
            "version": RELEASE, "operating_system": "Linux", "topology": "", "reservation": reservation,
        }  # fmt: skip

    def _envelope(self, errors: list[dict[str, Any]], warnings: list[str]) -> dict[str, Any]:
        meta = {
            "plugin": {"type": "openapi/slurmctld", "data_parser": "data_parser/v0.0.45"},
            "slurm": {
                "version": {"major": "26", "minor": "05", "micro": "5"},
                "release": RELEASE,
                "cluster": self._sim.cluster,
            },
        }
        return {"meta": meta, "errors": errors, "warnings": [{"description": w, "source": "sim"} for w in warnings]}

    def _answer(
        self, data: dict[str, Any], *, errors: list[dict[str, Any]] | None = None, warnings: list[str] | None = None
    ) -> Response:
        return Response(200, json.dumps({**data, **self._envelope(errors or [], warnings or [])}).encode())

    def _error(self, status: int, code: int, text: str, source: str, error: str = "") -> Response:
        return Response(
            status, json.dumps(self._envelope([_complaint(code, text, error or text, source)], [])).encode()
        )


def _complaint(code: int, description: str, error: str, source: str = "sim") -> dict[str, Any]:
    return {"description": description, "error_number": code, "error": error, "source": source}


def _number(text: str) -> int:
    if not text.isdigit():
        raise Refusal(9000, f"Unable to parse job id {text}")
    return int(text)
