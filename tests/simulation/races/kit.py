"""What races are made of: actors that do one thing each, and a system that has lived."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from carillon.api.apply.models import ApplyBody
from carillon.api.http.requests import Precondition
from carillon.domain.run import RunError, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import SYSTEM
from carillon.errors import StoreUnavailableError
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.loop import Loop
from carillon.simulation.services import Api, job_body
from carillon.simulation.targets import Behaviour, SimulatedTargets
from carillon.tick.dispatcher import Dispatcher
from tests.simulation.races.ending import Check
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.replay import World
from tests.simulation.races.stores import FUNCTION_SECONDS, Contents, Kept, contents_of
from tests.support.requests import API_SECONDS

OWNER = "o"
KEY, NAME = "k", "raced"
JOB_ID = job_id_of(OWNER, NAME)
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
OPTIONS = Options(segments=1, function_timeout_seconds=FUNCTION_SECONDS)
TICK_SECONDS = FUNCTION_SECONDS - 6
SUCCEEDED = frozenset({RunStatus.SUCCEEDED})

Request = Callable[[Api], Any]


@dataclass(frozen=True, slots=True)
class Race:
    """`minutes` is how long the system goes on after it. `planted` is the bug (bugs.py) that it
    must find. `allowed` are the outcomes that an active job's occurrences may have, `check` what
    else must hold at the end. `losses` is 0 where answers that are lost would make it too large for
    every day, `crashes` where the race is known not to stand them."""

    name: str
    setting: Callable[[], Setting]
    planted: str
    minutes: int = 6
    allowed: frozenset[RunStatus] = SUCCEEDED
    check: Check | None = None
    crashes: int = 1
    losses: int = 1


def at(minute: int, second: int = 0) -> datetime:
    """An instant of the hour after noon."""
    return NOON + timedelta(minutes=minute, seconds=second)


def run_id(minute: int, redrive: int = 0) -> str:
    return f"{JOB_ID}_{at(minute):%Y%m%dT%H%M%SZ}_scheduled_{redrive}"


def cron(minutes: str) -> dict[str, object]:
    """A daily schedule in the hour after noon."""
    return {"schedule": {"cron": f"{minutes} 12 * * *"}}


def one_shot(minute: int) -> dict[str, object]:
    return {"schedule": {"at": f"{at(minute):%Y-%m-%dT%H:%M:%SZ}"}}


def document(**members: object) -> dict[str, object]:
    """A body of POST /jobs: whatever an outage passes over is to run."""
    body: dict[str, object] = {"name": NAME, "target": {"type": "task", "name": "echo"}}
    return body | {"catch_up": "all"} | members


def create(**members: object) -> Request:
    body = job_body(document(**members))
    return lambda api: api.jobs.create(OWNER, body, KEY)


def put(**members: object) -> Request:
    body = job_body(document(**members))
    return lambda api: api.jobs.put(OWNER, body, Precondition(), dry_run=False)


def rename(name: str, **members: object) -> Request:
    """The job gets another name, by a manifest."""
    declared = {key: value for key, value in document(**members).items() if key != "name"}
    jobs = {name: {**declared, "was": NAME}}
    body = ApplyBody.model_validate({"manifest": "m", "jobs": jobs, "adopt": True})

    def ask(api: Api) -> object:
        applied = api.applying.apply(OWNER, SYSTEM, "manifest/m", body, lambda item: None)
        if not applied.is_complete:
            raise StoreUnavailableError("the renaming is not done")
        return applied

    return ask


def succeeds(call: Call) -> Outcome:
    return Success(None)


def fails_first(call: Call) -> Outcome:
    """The first attempt of anything fails, and may be tried again."""
    return Failure(RunError("http_503", "raced")) if call.attempt == 1 else Success(None)


def refuses(call: Call) -> Outcome:
    return Failure(RunError("http_400", "raced", permanent=True))


def lived(
    until: datetime,
    requests: Mapping[datetime, Request] | None = None,
    *,
    ticks_down: datetime | None = None,
    executors_down: datetime | None = None,
    behave: Callable[[Call], Outcome] = succeeds,
    options: Options = OPTIONS,
) -> Contents:
    """What a healthy deployment holds that lives from noon on; ticks or executors may stop."""
    loop = Loop(NOON)
    targets = SimulatedTargets(loop, lambda target, call, draws: Behaviour(0.0, behave(call)))
    deployment = Deployment(
        loop,
        options,
        targets,
        ticks_down=[(ticks_down, until)] if ticks_down else (),
        executors_down=[(executors_down, until + timedelta(days=1))] if executors_down else (),
    )
    api = Api.of(deployment)
    tasks = [
        deployment.invoke(f"request {number}", partial(request, api), at=requested_at)
        for number, (requested_at, request) in enumerate((requests or {}).items())
    ]
    deployment.start()
    loop.run(loop.us_of(until))
    assert not deployment.crashes, deployment.crashes
    failures = [task.failure for task in tasks if task.failure]
    assert not failures, failures
    return contents_of(deployment)


def doubled(contents: Contents) -> Contents:
    """With every message twice, as SQS may give them."""
    twice = sorted(kept for kept in contents["queue"] for _ in range(2))
    return contents | {"queue": tuple(twice)}


def tick(name: str = "tick", segment: int = 0) -> Actor:
    """One invocation of the tick, which visits one segment."""

    def act(world: World) -> None:
        now = world.now()
        owner = world.deployment.entropy.new_id(now)
        ports = world.deployment.tick_ports
        look_ahead = world.deployment.options.look_ahead_minutes
        dispatcher = Dispatcher(ports, lease_owner=owner, look_ahead_minutes=look_ahead)
        dispatcher.tick([segment], (), now + timedelta(seconds=TICK_SECONDS))

    return Actor(name, act)


def executor(name: str = "executor", beginning: str = "", *, freezes: bool = True) -> Actor:
    """An executor that receives one message, handles it and acknowledges it.

    One that `freezes` wakes up even after its time; any other one is killed by then.
    """

    def act(world: World) -> None:
        kept: Kept | None = world.lanes.receive(beginning)
        if kept is None:
            return
        ends_at = world.now() + timedelta(seconds=FUNCTION_SECONDS)
        world.deployment.router.lane(kept.body, ends_at)
        if world.now() <= ends_at:
            world.lanes.delete(kept)

    return Actor(name, act, limit_seconds=None if freezes else FUNCTION_SECONDS)


def request(name: str, ask: Request) -> Actor:
    """A request to the API, which ends with it."""
    return Actor(name, lambda world: ask(world.api), tells=True, limit_seconds=API_SECONDS)


def race(
    starts_at: datetime, contents: Contents, actors: Sequence[Actor], **members: Any
) -> Setting:
    return Setting(
        at=starts_at,
        contents=contents,
        actors=actors,
        behave=members.pop("behave", succeeds),
        options=members.pop("options", OPTIONS),
        **members,
    )


def within(setting: Setting, crashes: int, losses: int) -> Setting:
    """The same with other numbers of faults."""
    return replace(setting, crashes=crashes, losses=losses)
