"""A run that is stopped during its call: when the call ends, and when the next one begins."""

from datetime import datetime
from typing import Any

from carillon.domain.run import Run, RunStatus
from carillon.executor.targets import Call, Success
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Chaos, Draws, Faults
from carillon.simulation.loop import Loop, Task
from carillon.simulation.services import Api, job_body
from carillon.simulation.targets import Behaviour, SimulatedTargets, TargetCall
from carillon.stores.ports import Page
from tests.simulation.stories.story import NOON, SECOND

OWNER = "owner-1"
FIRST_AT = NOON + 10 * SECOND


class Story:
    """A job of every ten seconds, whose first call would last for 40 s; it is stopped in its eighth
    second. Calls of stores take a millisecond at most."""

    def __init__(self, stopped_at: datetime | None = NOON + 17 * SECOND, **members: Any) -> None:
        self.loop = Loop(NOON, Chaos(1, Faults(), 500))
        self.calls: dict[datetime, TargetCall] = {}
        self.looks: list[datetime] = []
        self.loop.observers.append(self._observe)
        targets = SimulatedTargets(self.loop, self._behave, self._note)
        self.deployment = Deployment(self.loop, Options(), targets)
        body = job_body(
            {"name": "j", "schedule": "every 10s", "target": {"type": "task", "name": "echo"}}
            | {"timeout_seconds": 50}
            | members
        )
        api = Api.of(self.deployment)
        made = self.deployment.invoke("create", lambda: api.jobs.create(OWNER, body, "j"))
        if stopped_at is not None:
            self.deployment.invoke("stop", lambda: self._stop(api), at=stopped_at)
        self.deployment.start()
        self.loop.run(self.loop.us_of(NOON + 60 * SECOND))
        assert made.failure is None
        self.runs = {run.key.fire_at: run for run in self._rows().items}

    def _rows(self) -> Page[Run]:
        (job,) = self.deployment.stores.jobs.list(OWNER, 9).items
        return self.deployment.stores.runs.list(OWNER, job.job_id, 99)

    def _stop(self, api: Api) -> None:
        key = next(run.key for run in self._rows().items if run.key.fire_at == FIRST_AT)
        api.runs.cancel(OWNER, key.job_id, key.run_id)

    def _behave(self, target: object, call: Call, draws: Draws) -> Behaviour:
        return Behaviour(40 if call.fire_at == FIRST_AT else 0.1, Success(None))

    def _note(self, seen: TargetCall) -> None:
        self.calls[seen.call.fire_at] = seen

    def _observe(
        self, task: Task | None, port: str, method: str, args: tuple[Any, ...], answer: object
    ) -> None:
        if task is not None and " every " in task.name:
            assert (port, method) == ("runs", "get")
            self.looks.append(self.loop.instant())

    @property
    def first(self) -> TargetCall:
        return self.calls[FIRST_AT]

    @property
    def ended_at(self) -> datetime:
        assert self.first.ended_at is not None
        return self.first.ended_at


def test_its_call_ends_soon_and_nobody_is_skipped_for_it_any_more() -> None:
    story = Story(overlap="skip")
    assert story.runs[FIRST_AT].status is RunStatus.CANCELLED
    assert NOON + 18 * SECOND < story.ended_at < NOON + 18.5 * SECOND
    others = {run.status for fire_at, run in story.runs.items() if fire_at > FIRST_AT}
    assert others == {RunStatus.SUCCEEDED}


def test_the_run_that_waits_for_it_begins_before_its_call_has_ended() -> None:
    story = Story(NOON + 27 * SECOND, overlap="queue_one")
    waited = story.calls[NOON + 20 * SECOND]
    assert NOON + 27 * SECOND < waited.begun_at < story.ended_at
    assert story.ended_at - waited.begun_at < 4 * SECOND


def test_under_a_concurrency_key_it_begins_when_the_call_has_ended() -> None:
    story = Story(concurrency={"key": "k", "limit": 1})
    begun = [call.begun_at for fire_at, call in story.calls.items() if fire_at > FIRST_AT]
    assert min(begun) > story.ended_at


def test_the_row_is_read_every_two_seconds_of_the_call() -> None:
    story = Story()
    seconds = [(at - story.first.begun_at).total_seconds() for at in story.looks]
    assert [round(each) for each in seconds] == [2, 4, 6, 8]


def test_a_call_that_nobody_stops_is_looked_at_to_its_end() -> None:
    story = Story(None)
    assert story.runs[FIRST_AT].status is RunStatus.SUCCEEDED
    assert len(story.looks) == 19
