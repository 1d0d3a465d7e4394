"""slurmrestd over the model: v0.0.42 to v0.0.45, with its envelope and its odd answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import unquote

import jwt
import msgspec

from slinkytui.backend.http import Request, Response
from slinkytui.backend.sim.slurm import Refusal, SimJob, SimNode, SlurmSim

VERSIONS: Final = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")
RELEASE: Final = "26.05.5"
_TEXTS: Final = {2002: "Access/permission denied", 1007: "Protocol authentication error"}


def _n(value: float | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": int(value or 0)}


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
            return self._route(request, parts[2:], body, user)
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

    def _route(self, request: Request, parts: list[str], body: Any, user: str) -> Response:
        match (request.method, *parts):
            case ("GET", "diag"):
                return self._answer({"statistics": {"server_thread_count": 1}})
            case ("GET", "nodes"):
                return self._list("nodes", request, self._sim.stamp_nodes)
            case ("GET", "jobs"):
                return self._list("jobs", request, self._sim.stamp_jobs)
            case ("GET", "jobs", "state"):
                rows = [{"job_id": str(j.id), "state": _job_states(j)} for j in self._sim.jobs.values()]
                return self._answer({"jobs": rows})
            case ("GET", "node", name):
                if name not in self._sim.nodes:
                    return self._answer({}, errors=[_complaint(0, f"Failure to query node {name}", "No error")])
                return self._answer({"nodes": [self._node(self._sim.nodes[name])]})
            case ("GET", "job", text):
                return self._answer({"jobs": [self._job(self._sim.job(_number(text)))]})
            case ("GET", "partitions"):
                return self._answer({"partitions": self._partitions(), "last_update": _n(self._sim.stamp_nodes)})
            case ("GET", "partition", name):
                found = [p for p in self._partitions() if p["name"] == name]
                return self._answer(
                    {"partitions": found} if found else {},
                    warnings=[] if found else [f"Unable to find partition {name}"],
                )
            case ("GET", "reservations"):
                return self._answer({"reservations": [], "last_update": _n(self._sim.now)})
            case ("GET", "reservation", name):
                return self._answer({}, errors=[_complaint(0, f"Unable to query reservation {name}", "No error")])
            case ("POST", "node", name):
                return self._update_nodes([name], body, user)
            case ("POST", "nodes"):
                names = body.get("name") or []
                return self._update_nodes([names] if isinstance(names, str) else names, body, user)
            case ("POST", "job", "submit"):
                return self._submit(body, user)
            case ("POST", "job", text):
                if "hold" in body:
                    self._sim.hold(_number(text), bool(body["hold"]), user)
                if "comment" in body:
                    job = self._sim.job(_number(text))
                    job.comment = str(body["comment"])
                    self._sim.touch_job(job.id)
                return self._answer({"results": []})
            case ("DELETE", "job", text):
                return self._cancel(_number(text), user)
            case ("DELETE", "jobs"):
                return self._kill(body, user)
        return Response(404, b"Unable to find requested URL endpoint.", "text/plain")

    def _update_nodes(self, names: list[str], body: Any, user: str) -> Response:
        if user not in ("root", "slurm"):
            raise Refusal(2010, "Invalid user id")
        states = body.get("state") or []
        states = [states] if isinstance(states, str) else states
        for name in names:
            self._sim.update_node(name, str(states[0]).upper() if states else "", str(body.get("reason") or ""), user)
            node = self._sim.nodes[name]
            node.comment, node.extra = str(body.get("comment", node.comment)), str(body.get("extra", node.extra))
        return self._answer({})

    def _kill(self, body: Any, user: str) -> Response:
        """Many jobs at once; `job_state` spares those in another state."""
        wanted = [str(s).upper() for s in body.get("job_state") or []]
        status: list[dict[str, Any]] = []
        for text in map(str, body.get("jobs") or []):
            job = self._sim.jobs.get(int(text)) if text.isdigit() else None
            if job is None:
                status.append(_refused(text, 2017, "Invalid job id specified"))
            elif wanted and job.state not in wanted:
                status.append(_refused(text, 2172, f"Job state {job.state} != filter state {wanted[0]}"))
            elif user not in ("root", "slurm", job.user):
                status.append(_refused(text, 2002, _TEXTS[2002]))
            else:
                try:
                    self._sim.cancel(job.id)
                except Refusal as refusal:
                    status.append(_refused(text, refusal.code, refusal.text))
        return self._answer({"status": status})

    def _cancel(self, job_id: int, user: str) -> Response:
        job = self._sim.jobs.get(job_id)
        if job is not None and user not in ("root", "slurm", job.user):
            return self._answer(
                {
                    "status": [
                        {"job_id": _n(job_id), "error": {"code": 2002, "string": _TEXTS[2002], "message": _TEXTS[2002]}}
                    ]
                }
            )
        try:
            self._sim.cancel(job_id)
        except Refusal as refusal:
            return self._answer(
                {
                    "status": [
                        {
                            "job_id": _n(job_id),
                            "error": {"code": refusal.code, "string": refusal.text, "message": refusal.text},
                        }
                    ]
                }
            )
        return self._answer({"status": []})

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
        each, total = _asked(str(job.get("tres_per_node") or "")), _asked(str(job.get("tres_per_job") or ""))
        nodes = int(str(job.get("nodes") or job.get("minimum_nodes") or 1).split("-")[0])
        limit = job.get("time_limit")
        minutes = int((limit.get("number") if isinstance(limit, dict) else limit) or 1440)
        made = self._sim.submit(SimJob(
            0, user, str(job.get("name") or "sbatch"), partition, total or each * nodes, nodes, int(job.get("tasks") or 1),
            1000, minutes, 3600.0, 100, self._sim.now, held=bool(job.get("hold")), comment=str(job.get("comment") or ""), script=script,
        ))  # fmt: skip
        return self._answer({"job_id": made.id, "step_id": "batch", "job_submit_user_msg": ""})

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
                self._job_bytes[job_id] = msgspec.json.encode(self._job(sim.jobs[job_id]))
            else:
                self._job_bytes.pop(job_id, None)
        sim.changed_jobs.clear()
        return list(self._job_bytes.values())

    def _node(self, n: SimNode) -> dict[str, Any]:
        used = [i for i, d in enumerate(n.devices) if d]
        gres = f"gpu:{n.gpu_type}:{len(n.devices)}" if n.devices else ""
        gres_used = f"gpu:{n.gpu_type}:{len(used)}(IDX:{_ranges(used) or 'N/A'})" if n.devices else ""
        return {
            "architecture": "x86_64", "name": n.name, "hostname": n.name, "address": n.name, "state": n.states(self._sim.jobs),
            "reason": n.reason, "reason_set_by_user": n.reason_user, "reason_changed_at": _n(n.reason_time or None),
            "features": list(n.features), "active_features": list(n.features), "partitions": list(n.partitions), "cpus": n.cpus,
            "alloc_cpus": n.cpus_used, "cpu_load": n.cpus_used * 100, "real_memory": n.memory_mib, "alloc_memory": n.memory_used,
            "free_mem": _n(n.memory_mib - n.memory_used), "gres": gres, "gres_used": gres_used, "gres_drained": "N/A",
            "comment": n.comment, "extra": n.extra, "weight": 1, "boot_time": _n(n.boot), "slurmd_start_time": _n(n.boot),
            "version": RELEASE, "operating_system": "Linux", "topology": "", "reservation": "",
        }  # fmt: skip

    def _job(self, j: SimJob) -> dict[str, Any]:
        running = j.state == "RUNNING"
        each = j.gpus // j.node_count
        kinds = {name: self._sim.nodes[name].gpu_type for name in j.nodes if name in self._sim.nodes}
        detail = (
            [f"gpu:{kinds.get(n, 'gpu')}:{len(d)}(IDX:{_ranges(d)})" for n, d in j.nodes.items() if d]
            if running
            else []
        )
        tres = f"cpu={j.cpus},mem={j.memory_mib}M,node={j.node_count},billing={j.cpus}" + (
            f",gres/gpu={j.gpus}" if j.gpus else ""
        )
        end = j.end or (j.start + j.limit_min * 60 if running else 0)
        return {
            "account": j.account, "job_id": j.id, "job_state": _job_states(j), "name": j.name, "user_name": j.user, "user_id": 1000,
            "partition": j.partition, "qos": "normal", "state_reason": j.reason, "hold": j.held, "priority": _n(0 if j.held else j.priority),
            "nodes": ",".join(j.nodes), "node_count": _n(j.node_count), "cpus": _n(j.cpus), "tasks": _n(1),
            "submit_time": _n(j.submit), "eligible_time": _n(j.submit), "start_time": _n(j.start or None), "end_time": _n(end or None),
            "time_limit": _n(j.limit_min), "exit_code": {"status": ["ERROR" if j.exit_code else "SUCCESS"], "return_code": _n(j.exit_code), "signal": {"id": _n(None), "name": ""}},
            "gres_detail": detail, "tres_req_str": tres, "tres_alloc_str": tres if j.nodes else "", "tres_per_node": f"gres/gpu:{each}" if each else "",
            "comment": j.comment, "command": f"/home/{j.user}/{j.name}.sh", "current_working_directory": f"/home/{j.user}",
            "standard_output": f"/home/{j.user}/slurm-{j.id}.out", "requeue": True, "restart_cnt": 0, "array_job_id": _n(0), "array_task_id": _n(None),
            "array_task_string": j.array,
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

    def _error(self, status: int, code: int, text: str, source: str) -> Response:
        return Response(status, json.dumps(self._envelope([_complaint(code, text, text, source)], [])).encode())


def _complaint(code: int, description: str, error: str, source: str = "sim") -> dict[str, Any]:
    return {"description": description, "error_number": code, "error": error, "source": source}


def _refused(text: str, code: int, words: str) -> dict[str, Any]:
    return {"step_id": text, "job_id": _n(int(text) if text.isdigit() else None),
            "error": {"code": code, "string": words, "message": words}, "federation": {"sibling": ""}}  # fmt: skip


def _job_states(job: SimJob) -> list[str]:
    return [job.state, *(["COMPLETING"] if job.completing_until else [])]


def _number(text: str) -> int:
    if not text.isdigit():
        raise Refusal(9000, f"Unable to parse job id {text}")
    return int(text)


def _asked(text: str) -> int:
    last = text.rsplit(":", 1)[-1].rsplit("=", 1)[-1] if "gpu" in text else ""
    return int(last) if last.isdigit() else 1 if text else 0


def _ranges(numbers: list[int]) -> str:
    out: list[str] = []
    start = previous = -2
    for n in [*numbers, -9]:
        if n != previous + 1:
            if start >= 0:
                out.append(str(start) if start == previous else f"{start}-{previous}")
            start = n
        previous = n
    return ",".join(out)
