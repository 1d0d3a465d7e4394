"""Job calls of slurmrestd over the model: submit, cancel, many at once, requeue, update, and the job record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from slinkytui.backend.sim.arrays import parse_array, parse_ids, ranges
from slinkytui.backend.sim.jobs import Refusal, SimJob
from slinkytui.backend.sim.reservations import SimReservation
from slinkytui.backend.sim.slurm import SlurmSim

ADMINS: Final = ("root", "slurm")
_DENIED: Final = "Access/permission denied"
_KILLS: Final = ("", "KILL", "SIGKILL", "9", "TERM", "SIGTERM", "15")
_HELD: Final = "Job is in held state, pending scheduler release"


def number(value: float | None) -> dict[str, Any]:
    """Slurm's number object; None is "not set"."""
    return {"set": value is not None, "infinite": False, "number": int(value or 0)}


def read_number(value: Any, otherwise: int = 0) -> int:
    """A plain integer or a number object, as a body may have it."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) else None
    return int(value) if isinstance(value, int | str) and str(value).isdigit() else otherwise


def job_from(body: dict[str, Any], user: str, script: str, partition: str, now: float) -> SimJob:
    """The job that a submit asks for. Raises Refusal."""
    nodes = int(str(body.get("nodes") or body.get("minimum_nodes") or 1).split("-")[0])
    each, total = asked(str(body.get("tres_per_node") or "")), asked(str(body.get("tres_per_job") or ""))
    wanted = body.get("required_nodes") or ()
    made = SimJob(
        0, user, str(body.get("name") or "sbatch"), partition, total or each * nodes, nodes, int(body.get("tasks") or 1), 1000,
        read_number(body.get("time_limit")) or 1440, 3600.0, 100, now, held=bool(body.get("hold")), comment=str(body.get("comment") or ""),
        script=script, dependency=str(body.get("dependency") or ""), begin=float(read_number(body.get("begin_time"))),
        reservation=str(body.get("reservation") or ""), wanted_nodes=tuple(wanted.split(",") if isinstance(wanted, str) else wanted),
        requeue=body.get("requeue") is not False,
    )  # fmt: skip
    if body.get("array"):
        try:
            made.tasks, made.array_limit = parse_array(str(body["array"]))
        except ValueError:
            raise Refusal(2081, "Invalid job array specification") from None
    return made


def submit_warnings(job: SimJob) -> list[str]:
    return [f"Job submission resulted in non-zero return code: {_HELD}", _HELD] if job.held else []


def kill(sim: SlurmSim, text: str, user: str, signal: str = "", states: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Cancel or signal what `text` names ("13", "13_4", "13_[1-3]"); only what is in one of `states`, when there are any.
    Returns the refusals, one for each record."""
    found = sim.family(text)
    if not found:
        return [refusal(text, int(text) if text.isdigit() else None, 2017, "Invalid job id specified")]
    tasks = (parse_ids(text) or (0, None))[1]
    out: list[dict[str, Any]] = []
    for job in found:
        if states and job.state not in states:
            why = "Cannot signal job"
            out.append(
                refusal(job.shown_id, job.id, 2172, why, f"Job state {job.state} != filter state {states[0]}: {why}")
            )
        elif user not in (*ADMINS, job.user):
            out.append(refusal(job.shown_id, job.id, 2002, _DENIED))
        else:
            try:
                _kill_one(sim, job, signal.upper(), tasks)
            except Refusal as no:
                out.append(refusal(job.shown_id, job.id, no.code, no.text))
    return out


def _kill_one(sim: SlurmSim, job: SimJob, signal: str, tasks: list[int] | None) -> None:
    if signal not in _KILLS:
        if job.state == "PENDING":
            raise Refusal(2020, "Job can not be altered now, try again later")
        if job.state != "RUNNING":
            raise Refusal(2021, "Job/step already completing or completed")
    elif tasks is not None and job.task is None:
        sim.cancel_tasks(job.id, tasks)
    else:
        sim.cancel(job.id)


def refusal(text: str, job_id: int | None, code: int, words: str, message: str = "") -> dict[str, Any]:
    """One entry of `status` in an answer of 200."""
    return {"step_id": text, "job_id": number(job_id), "error": {"code": code, "string": words, "message": message or words},
            "federation": {"sibling": ""}}  # fmt: skip


def update(sim: SlurmSim, job_id: int, body: dict[str, Any], user: str) -> None:
    """Hold, release, and the fields that an update may change."""
    job = sim.job(job_id)
    if user not in (*ADMINS, job.user):
        raise Refusal(2010, "Invalid user id")
    if "hold" in body:
        sim.hold(job_id, bool(body["hold"]), user)
    job.comment = str(body.get("comment", job.comment))
    job.name = str(body.get("name", job.name))
    job.limit_min = read_number(body.get("time_limit"), job.limit_min)
    job.priority = read_number(body.get("priority"), job.priority)
    sim.touch_job(job.id)


def states_of(job: SimJob) -> list[str]:
    return [job.state, *(["COMPLETING"] if job.completing_until else [])]


def state_rows(sim: SlurmSim) -> list[dict[str, Any]]:
    """/jobs/state/: every task that waits has a row of its own."""
    rows: list[dict[str, Any]] = []
    for job in sim.jobs.values():
        ids = [f"{job.id}_{t}" for t in job.tasks] if job.tasks else [str(job.id)]
        rows += [{"job_id": i, "state": states_of(job)} for i in ids]
    return rows


def record(sim: SlurmSim, j: SimJob) -> dict[str, Any]:
    running = j.state == "RUNNING"
    each = j.gpus // j.node_count
    kinds = {name: sim.nodes[name].gpu_type for name in j.nodes if name in sim.nodes}
    detail = (
        [f"gpu:{kinds.get(n, 'gpu')}:{len(d)}(IDX:{ranges(d)})" for n, d in j.nodes.items() if d] if running else []
    )
    tres = f"cpu={j.cpus},mem={j.memory_mib}M,node={j.node_count},billing={j.cpus}" + (
        f",gres/gpu={j.gpus}" if j.gpus else ""
    )
    end = j.end or (j.start + j.limit_min * 60 if running else 0)
    begin = max(j.begin, j.submit)
    start = j.start or (j.begin if j.begin > sim.now else 0.0)
    output = f"slurm-{j.array_id}_{j.task if j.task is not None else 4294967294}" if j.array_id else f"slurm-{j.id}"
    return {
        "account": j.account, "job_id": j.id, "job_state": states_of(j), "name": j.name, "user_name": j.user, "user_id": 1000,
        "partition": j.partition, "qos": "normal", "state_reason": j.reason, "hold": j.held, "priority": number(0 if j.held else j.priority),
        "nodes": ",".join(j.nodes), "node_count": number(j.node_count), "cpus": number(j.cpus), "tasks": number(1),
        "submit_time": number(j.submit), "eligible_time": number(begin), "start_time": number(start or None), "end_time": number(end or None),
        "time_limit": number(j.limit_min), "exit_code": {"status": ["ERROR" if j.exit_code else "SUCCESS"], "return_code": number(j.exit_code), "signal": {"id": number(None), "name": ""}},
        "gres_detail": detail, "tres_req_str": tres, "tres_alloc_str": tres if j.nodes else "", "tres_per_node": f"gres/gpu:{each}" if each else "",
        "comment": j.comment, "command": f"/home/{j.user}/{j.name}.sh", "current_working_directory": f"/home/{j.user}",
        "standard_output": f"/home/{j.user}/{output}.out", "requeue": j.requeue, "restart_cnt": j.restarts,
        "array_job_id": number(j.array_id), "array_task_id": number(j.task), "array_task_string": j.array_text,
        "array_max_tasks": number(j.array_limit), "dependency": j.dependency, "resv_name": j.reservation, "required_nodes": ",".join(j.wanted_nodes),
    }  # fmt: skip


def reservation_record(sim: SlurmSim, found: SimReservation) -> dict[str, Any]:
    cores = sum(sim.nodes[n].cpus for n in found.nodes if n in sim.nodes)
    return {
        "accounts": "", "burst_buffer": "", "core_count": cores, "core_specializations": [], "end_time": number(found.end), "features": "",
        "flags": list(found.flags), "groups": "", "licenses": "", "max_start_delay": 0, "name": found.name, "node_count": len(found.nodes),
        "node_list": ",".join(found.nodes), "partition": "", "purge_completed": {"time": number(None)}, "start_time": number(found.start),
        "tres": f"cpu={cores}", "users": ",".join(found.users),
    }  # fmt: skip


def asked(text: str) -> int:
    """How many GPUs "gres/gpu:h100:4" or "gres/gpu=2" asks for."""
    last = text.rsplit(":", 1)[-1].rsplit("=", 1)[-1] if "gpu" in text else ""
    return int(last) if last.isdigit() else 1 if text else 0
