"""`python -m tests.schedules.replay FILE`: run a schedule again and tell each step, each request and what was broken."""

from __future__ import annotations

import sys
from pathlib import Path

from slinkytui.backend.http import Request
from tests.schedules.acts import SIZE, Schedule, Step, read
from tests.schedules.ground import Ground
from tests.schedules.lived import Story, live
from tests.unit.controllers.virtual import run


async def told(schedule: Schedule) -> Story:
    ground = Ground(SIZE)
    began = ground.clock.now()

    def say(request: Request) -> None:
        body = request.body.decode()[:220] if request.body else ""
        print(f"{ground.clock.now() - began:8.1f}  {request.method} {request.path.split('/proxy')[-1]} {body}")

    ground.listeners.append(say)
    return await live([_Said(*step) for step in schedule], ground)


class _Said(Step):
    """A step that is told when it is begun."""

    @property
    def act(self) -> str:
        print("         ", self[1], *self[2])
        return str(self[1])


def main(path: str) -> int:
    story = run(told(read(Path(path))))
    print("\n".join(story.broken) or "nothing was broken")
    return bool(story.broken)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
