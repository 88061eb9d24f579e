"""A message that kills its executor, before any row of it stands: what it costs its neighbours."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from greenlet import GreenletExit

from carillon.domain.message import Message, decode
from carillon.domain.run import DeadReason, Run, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.executor import router
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Chaos, Faults
from carillon.simulation.loop import Loop
from carillon.simulation.services import Api, job_body
from carillon.simulation.targets import SimulatedTargets, TargetCall

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
OWNER = "owner"
KILLER = job_id_of(OWNER, "killer")
NEIGHBOURS = [f"beside-{number}" for number in range(9)]


class World:
    """Ten one-shots that are due at once, so that they come in one batch; reading the message of
    one of them kills the process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kills_the_consumer: bool) -> None:
        # Calls take their time, so that neighbours are under way when the process dies.
        self.loop = Loop(NOON, Chaos(0, Faults(), 50_000))
        self.calls: Counter[str] = Counter()
        targets = SimulatedTargets(self.loop, on_call=self._note)
        later = (NOON + timedelta(minutes=10), NOON + timedelta(days=30))
        self.deployment = Deployment(self.loop, Options(), targets, ticks_down=[later])
        api = Api.of(self.deployment)
        for name in ("killer", *NEIGHBOURS):
            self.deployment.invoke(f"create {name}", self._create(api, name))
        self.deployment.start()
        self.deaths: list[datetime] = []
        self._is_harmless = False
        monkeypatch.setattr(router, "decode", self._decode)
        if not kills_the_consumer:
            dead = self.deployment.router.dead
            monkeypatch.setattr(self.deployment.router, "dead", partial(self._safely, dead))

    def _create(self, api: Api, name: str) -> Callable[[], object]:
        target = {"type": "task", "name": "echo"}
        schedule = {"at": f"{NOON + timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"}
        body = job_body({"name": name, "schedule": schedule, "target": target})
        return lambda: api.jobs.create(OWNER, body, name)

    def _note(self, seen: TargetCall) -> None:
        if seen.ended_at is None:
            self.calls[seen.call.job_id] += 1

    def _safely(self, dead: Callable[..., object], body: str, ends_at: datetime) -> object:
        self._is_harmless = True
        return dead(body, ends_at)

    def _decode(self, body: str) -> Message:
        task, is_harmless = self.loop.current, self._is_harmless
        self._is_harmless = False
        if is_harmless or KILLER not in body or task is None:
            return decode(body)
        self.deaths.append(self.loop.instant())
        self.loop.sleep(0.02)  # meanwhile neighbours have claimed their runs
        self.loop.kill(task.process)
        raise GreenletExit

    def run_of(self, job_id: str) -> Run | None:
        page = self.deployment.stores.runs.list(OWNER, job_id, 10)
        return next((run for run in page.items if run.key.kind is RunKind.SCHEDULED), None)

    def run_until(self, until: datetime) -> None:
        self.loop.run(self.loop.us_of(until))


@pytest.mark.parametrize("kills_the_consumer", [False, True])
def test_a_message_that_kills_when_it_is_read_takes_few_attempts_of_its_neighbours(
    monkeypatch: pytest.MonkeyPatch, kills_the_consumer: bool
) -> None:
    world = World(monkeypatch, kills_the_consumer=kills_the_consumer)
    world.run_until(NOON + timedelta(hours=2))
    died = {name: world.run_of(job_id_of(OWNER, name)) for name in NEIGHBOURS}
    assert {run.status for run in died.values() if run} == {RunStatus.SUCCEEDED}
    attempts = [run.attempt - 1 for run in died.values() if run]
    assert 0 < max(attempts) <= 3
    assert len(world.deaths) > 3


def test_a_message_that_kills_when_it_is_read_ends_as_a_dead_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, kills_the_consumer=False)
    world.run_until(NOON + timedelta(days=10, hours=12))
    run = world.run_of(KILLER)
    assert run is not None
    assert (run.status, run.reason) == (RunStatus.DEAD, DeadReason.NEVER_STARTED)
    assert run.finished_at is not None
    assert run.finished_at > NOON + timedelta(days=10)
    assert KILLER not in world.calls
    assert world.deployment.lanes.kept() == world.deployment.dead_letter_queue.kept() == []


def test_a_message_that_kills_its_consumer_too_stays_in_the_dead_letter_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, kills_the_consumer=True)
    world.run_until(NOON + timedelta(hours=6))
    assert world.deployment.lanes.kept() == []
    assert any(KILLER in left.body for left in world.deployment.dead_letter_queue.kept())
    assert world.run_of(KILLER) is None
