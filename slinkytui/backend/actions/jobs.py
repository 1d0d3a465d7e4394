"""Cancel, hold and release of jobs."""

from __future__ import annotations

from slinkytui.backend.actions.registry import Scene, digest, unique
from slinkytui.backend.models import Ask, Blast, Job, Plan, PlanLine, Step
from slinkytui.backend.slurm.states import holds_node, is_pending, is_terminal, squeue_code

MANY_JOBS = 50


def plan_cancel(ask: Ask, scene: Scene) -> Plan:
    """Running jobs are killed: that is what the blast radius counts first."""
    jobs = scene.jobs(ask)
    steps = tuple(
        Step(str(j.id), "has ended", skip="it has ended") if is_terminal(j.states)
        else Step(str(j.id), f"cancel {j.id}", f"DELETE /slurm/…/job/{j.id}")
        for j in jobs
    )  # fmt: skip
    todo = [j for j, s in zip(jobs, steps, strict=True) if not s.skip]
    killed = [j for j in todo if holds_node(j.states)]
    users = unique(j.user for j in todo)
    rest = [j for j in todo if j.tasks]
    warnings = [f"{len(killed)} running job{'' if len(killed) == 1 else 's'} will be killed"] if killed else []
    warnings += [f"{j.id} is an array: its pending tasks end, those that run go on" for j in rest]
    if len(users) > 1:
        warnings.append(f"jobs of {len(users)} users: {', '.join(users[:6])}")
    gpus = [j.gpus for j in killed]
    return Plan(
        ask=ask, title=f"Cancel {_count(todo)}", summary=f"{_count(todo)} of {len(jobs)} to cancel", steps=steps,
        blast=Blast(0, 0, 0, len(killed), users, None if any(g is None for g in gpus) else sum(g or 0 for g in gpus)),
        hash=_hash(ask, jobs), made=scene.now, headers=_HEADERS, rows=_lines(jobs), warnings=tuple(warnings),
        confirm_count=len(todo) if len(todo) >= MANY_JOBS or len(users) > 1 else 0,
        command=f"scancel {' '.join(str(j.id) for j in todo)}" if todo else "",
        refused="" if todo else "nothing to do: all have ended", go=f"Cancel {_count(todo)}",
    )  # fmt: skip


def plan_hold(ask: Ask, scene: Scene) -> Plan:
    return _plan_priority(ask, scene, hold=True)


def plan_release(ask: Ask, scene: Scene) -> Plan:
    return _plan_priority(ask, scene, hold=False)


def _plan_priority(ask: Ask, scene: Scene, *, hold: bool) -> Plan:
    word = "hold" if hold else "release"
    jobs = scene.jobs(ask)
    steps = tuple(_priority_step(j, word, hold) for j in jobs)
    todo = [j for j, s in zip(jobs, steps, strict=True) if not s.skip]
    return Plan(
        ask=ask, title=f"{word.capitalize()} {_count(todo)}", summary=f"{_count(todo)} of {len(jobs)} to {word}",
        steps=steps, blast=Blast(users=unique(j.user for j in todo)), hash=_hash(ask, jobs), made=scene.now,
        headers=_HEADERS, rows=_lines(jobs), confirm_count=len(todo) if len(todo) >= MANY_JOBS else 0,
        command=f"scontrol {word} {' '.join(str(j.id) for j in todo)}" if todo else "",
        inverse="job.release" if hold else "job.hold",
        refused="" if todo else f"nothing to {word}: only pending jobs can be held", go=f"{word.capitalize()} {_count(todo)}",
    )  # fmt: skip


def _priority_step(job: Job, word: str, hold: bool) -> Step:
    if not is_pending(job.states):
        return Step(str(job.id), f"is {squeue_code(job.states)}", skip="it is not pending")
    if job.hold == hold:
        return Step(str(job.id), f"{word}: already so", skip="it is held already" if hold else "it is not held")
    return Step(str(job.id), f"{word} {job.id}", f"POST /slurm/…/job/{job.raw_id}", f'{{"hold":{str(hold).lower()}}}')


_HEADERS = ("JOB", "USER", "ST", "GPU", "NODES")


def _count(jobs: list[Job]) -> str:
    return f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}"


def _lines(jobs: list[Job]) -> tuple[PlanLine, ...]:
    return tuple(
        PlanLine((str(j.id), j.user, squeue_code(j.states), "–" if j.gpus is None else str(j.gpus), j.nodes or "–"))
        for j in jobs
    )


def _hash(ask: Ask, jobs: list[Job]) -> str:
    return digest(ask.verb, [(j.id, squeue_code(j.states), j.hold, j.nodes, j.restarts) for j in jobs])
