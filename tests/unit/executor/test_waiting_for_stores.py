"""Messages wait for stores ever longer; for a row that cannot be read no longer than a day."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.activity.results import Result
from carillon.domain.admission.state import PERMITS_ROW
from carillon.domain.events import EventType
from carillon.domain.execution import store_waits, transitions
from carillon.domain.job import JobState
from carillon.domain.message import Missed, decode, encode
from carillon.domain.operation import OperationKind
from carillon.domain.policies import CatchUp, Overlap
from carillon.domain.run import Completion, DeadReason, Run, RunKey, RunKind, RunStatus
from carillon.domain.targets import WebhookTarget
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.executor.batch import Handled, PartlyHandledError, Report
from carillon.schedules import CalendarRule
from carillon.services.redrive import Redriver
from tests.support.notification_kit import notify, said
from tests.support.operation_kit import begin, now_of, put_dead
from tests.support.world import FUNCTION_SECONDS, LIFETIME
from tests.unit.executor.kit import NOON, World

DAY = timedelta(days=1)
WAITS = [10, 20, 40, 80, 160, 300, 300, 300]


class Lane:
    """One message of a job, received again and again; each reception doubled, if asked for."""

    def __init__(self, **options: Any) -> None:
        self.world = World(segments=1)
        self.world.close("holidays", "2027-01-01")
        # All run, however late: no later occurrence stands for this one.
        options = {"catch_up": CatchUp.ALL, "schedule": "* * * * *"} | options
        self.job = self.world.create("job", options.pop("schedule"), **options)
        self.message = self.world.due(self.job)
        self.world.queue.send([self.message], [0])
        self.reports: list[Report] = []

    def receive(self) -> list[timedelta]:
        """Handle what is visible; how long what was deferred waits."""
        now = self.world.clock.now()
        for one in self.world.queue.receive(now, 100):
            ends_at = now + timedelta(seconds=FUNCTION_SECONDS)
            self.reports.append(self.world.executor.lane(one.body, ends_at))
            self.world.queue.delete(one.receipt)
        return [kept.visible_at - now for kept in self.world.queue.kept()]

    def receive_until(self, until: datetime) -> None:
        while (now := self.world.clock.now()) <= until and self.world.queue.kept():
            self.receive()
            if kept := self.world.queue.kept():
                self.world.clock.set(max(now, kept[0].visible_at))

    @property
    def run(self) -> Run | None:
        return self.world.runs.get(self.message.key)


def put_held(lane: Lane, **members: Any) -> Run:
    """The row of the run, claimed by an executor."""
    held = Run(
        key=lane.message.key, status=RunStatus.RUNNING, attempt=1, token=1, claim_id="1",
        generation_id=lane.message.generation_id, updated_at=NOON, expires_at=NOON + 9 * DAY,
        started_at=NOON, attempt_started_at=NOON, **members,
    )  # fmt: skip
    assert lane.world.runs.claim(held, None)
    return held


def fed(world: World) -> list[Result]:
    """What the activity feed has of runs that are no calls about others."""
    world.gathered.flush()
    results = [each for record in world.activity.all() for each in record.results]
    return [each for each in results if each.key.kind is RunKind.SCHEDULED]


def raising(error: Exception) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        raise error

    return call


ERRORS = [StoreUnavailableError("throttled"), UnreadableRowError("of a later version")]


@pytest.mark.parametrize("error", ERRORS, ids=["unavailable", "unreadable"])
@pytest.mark.parametrize(("port", "method"), [("jobs", "get"), ("runs", "claim")])
def test_a_message_waits_ever_longer(error: Exception, port: str, method: str) -> None:
    lane = Lane()
    waits = []
    with lane.world.failing(getattr(lane.world, port), method, error):
        for _ in WAITS:
            (wait,) = lane.receive()
            waits.append(wait.total_seconds())
            lane.world.clock.advance(wait.total_seconds())
    assert waits == WAITS
    assert lane.receive() == []
    assert lane.run is not None
    assert (lane.run.status, lane.run.attempt) == (RunStatus.SUCCEEDED, 1)


def test_a_store_that_is_away_is_waited_for_as_long_as_it_takes() -> None:
    lane = Lane()
    with lane.world.failing(lane.world.jobs, "get", StoreUnavailableError("away")):
        lane.receive_until(NOON + 3 * DAY)
    assert {report.handled for report in lane.reports} == {Handled.DEFERRED}
    assert len(lane.reports) < 3 * 300, "every five minutes"
    lane.receive()
    assert lane.run is not None
    assert lane.run.status is RunStatus.SUCCEEDED


@pytest.mark.parametrize("rows", ["jobs", "calendars", "admission_rows"])
def test_a_row_that_cannot_be_read_for_a_day_makes_a_dead_letter(
    rows: str,
) -> None:
    lane = Lane(calendar=("holidays", CalendarRule.SKIP), overlap=Overlap.SKIP)
    with lane.world.failing(
        getattr(lane.world, rows), "get", UnreadableRowError("of a later version")
    ):
        lane.receive_until(lane.message.due_at + DAY - timedelta(seconds=1))
        assert lane.run is None or not lane.run.is_final, "not before a day has passed"
        lane.receive_until(lane.message.due_at + DAY + timedelta(minutes=5))
    run = lane.run
    assert run is not None
    assert (run.status, run.reason) == (RunStatus.DEAD, DeadReason.UNREADABLE)
    assert run.error is not None
    assert "of a later version" in run.error.message
    (told,) = fed(lane.world)
    assert (told.key, told.job_name) == (run.key, "" if rows == "jobs" else lane.job.spec.name)
    assert run.is_dead_letter
    assert lane.world.targets.calls == []
    assert lane.world.queue.kept() == []
    world = lane.world
    redriver = Redriver(world.runs, world.indexer, world.clock, world.entropy, LIFETIME)
    redriver.redrive(run, lane.job, world.clock.now())
    lane.receive()
    again = world.runs.get(run.key.redriven)
    assert again is not None
    assert again.status is RunStatus.SUCCEEDED, "it can be redriven once the row is mended"


def test_a_run_whose_own_row_cannot_be_read_becomes_a_dead_letter_over_it() -> None:
    lane = Lane()
    put_held(lane)
    lane.world.runs.spoil(lane.message.key)
    lane.receive_until(lane.message.due_at + DAY + timedelta(minutes=6))
    run = lane.run
    assert run is not None
    assert (run.status, run.reason) == (RunStatus.DEAD, DeadReason.UNREADABLE)


def test_the_end_of_a_run_whose_own_row_cannot_be_read_is_told_and_followed() -> None:
    back = WebhookTarget(url="https://example.com/failed")
    lane = Lane(events=(EventType.RUN_DEAD,), on_failure=back)
    notify(lane.world)
    put_held(lane)
    lane.world.runs.spoil(lane.message.key)
    lane.receive_until(lane.message.due_at + DAY + timedelta(minutes=6))
    (event,) = lane.world.events.emitted
    assert (event.type, event.data["reason"]) == (EventType.RUN_DEAD, DeadReason.UNREADABLE)
    (told,) = fed(lane.world)
    assert (told.key, told.job_name) == (lane.message.key, "job")
    assert [body["summary"] for body in said(lane.world)] == ["job failed"]
    assert lane.world.runs.get(lane.message.key.callback) is not None


def test_the_end_of_a_run_whose_job_cannot_be_read_is_told_to_its_owner_by_its_id() -> None:
    lane = Lane(events=(EventType.RUN_DEAD,))
    notify(lane.world)
    notify(lane.world, "some", jobs="job")
    with lane.world.failing(lane.world.jobs, "get", UnreadableRowError("of a later version")):
        lane.receive_until(lane.message.due_at + DAY + timedelta(minutes=6))
    assert [body["summary"] for body in said(lane.world)] == [f"{lane.job.job_id} failed"]
    assert said(lane.world, "some") == [], "nobody knows its name"


def test_a_dead_letter_is_told_though_the_executor_that_recorded_it_died_before() -> None:
    lane = Lane()
    notify(lane.world)
    given_up = replace(lane.message, store_waits=9, unreadable_since=NOON)
    lane.world.clock.set(NOON + DAY)
    error = UnreadableRowError("of a later version")
    assert lane.world.runs.finish(transitions.unreadable(put_held(lane), str(error), NOON))
    with lane.world.failing(lane.world.jobs, "get", error):
        lane.world.executor._waiting.wait(given_up, error)
    lane.receive()
    assert [told.key for told in fed(lane.world)] == [lane.message.key]
    assert len(said(lane.world)) == 1


def test_a_dead_letter_is_counted_though_what_follows_from_it_fails() -> None:
    lane = Lane(pause_after_failures=3)
    given_up = replace(lane.message, store_waits=9, unreadable_since=NOON)
    lane.world.clock.set(NOON + DAY)
    away = StoreUnavailableError("away")
    with (
        lane.world.failing(lane.world.admission_rows, "get", away),
        pytest.raises(PartlyHandledError) as raised,
    ):
        lane.world.executor._waiting.wait(given_up, UnreadableRowError("of a later version"))
    assert raised.value.report.handled is Handled.RAN
    assert raised.value.report.run == lane.run


def test_a_run_whose_gate_cannot_be_read_is_a_dead_letter_though_it_has_kept_a_permit() -> None:
    lane = Lane()
    kept = Completion("1", NOON, 60, is_open=True, permits=(PERMITS_ROW,))
    put_held(lane, completion=kept)
    with lane.world.failing(
        lane.world.admission_rows, "get", UnreadableRowError("of a later version")
    ):
        lane.receive_until(lane.message.due_at + DAY + timedelta(minutes=6))
    assert lane.run is not None
    assert (lane.run.status, lane.run.reason) == (RunStatus.DEAD, DeadReason.UNREADABLE)
    assert fed(lane.world)[-1].status is RunStatus.DEAD


def test_a_run_that_has_ended_stays_as_it_is_though_nobody_can_read_it() -> None:
    lane = Lane()
    lane.receive()
    ended = lane.run
    assert ended is not None
    lane.world.runs.spoil(lane.message.key)
    lane.world.queue.send([replace(lane.message, waits=1)], [0])
    lane.receive_until(lane.message.due_at + DAY + timedelta(minutes=6))
    assert lane.reports[-1].handled is Handled.DROPPED
    assert lane.world.runs._rows[lane.message.key] == ended


def test_a_run_that_another_executor_has_is_given_up_once_that_has_lost_it() -> None:
    lane = Lane()
    lapses_at = NOON + DAY + timedelta(minutes=1)
    held = put_held(lane, lease_until=lapses_at)
    given_up = replace(lane.message, store_waits=9, unreadable_since=NOON)
    error = UnreadableRowError("of a later version")
    lane.world.clock.set(NOON + DAY)
    assert lane.world.executor._waiting.wait(given_up, error).handled is Handled.DEFERRED
    assert lane.run == held
    lane.world.clock.set(lapses_at)
    assert lane.world.executor._waiting.wait(given_up, error).handled is Handled.RAN
    assert lane.run is not None
    assert (lane.run.status, lane.run.reason) == (RunStatus.DEAD, DeadReason.UNREADABLE)


def test_a_run_that_has_ended_stays_as_it_is_though_nobody_can_read_its_job() -> None:
    lane = Lane()
    lane.receive()
    ended = lane.run
    given_up = replace(lane.message, waits=1, store_waits=9, unreadable_since=NOON)
    lane.world.clock.set(NOON + DAY)
    error = UnreadableRowError("of a later version")
    report = lane.world.executor._waiting.wait(given_up, error)
    assert (report.handled, report.run) == (Handled.DROPPED, ended)
    assert lane.run == ended


@pytest.mark.parametrize("has_run", [True, False])
def test_what_a_message_stands_for_is_recorded_though_it_is_given_up(has_run: bool) -> None:
    """No other message knows of the span."""
    lane = Lane()
    if has_run:
        lane.receive()
    missed = Missed(NOON - timedelta(hours=1), CatchUp.LATEST, lane.job.schedule)
    given_up = replace(lane.message, missed=missed, store_waits=9, unreadable_since=NOON)
    lane.world.clock.set(NOON + DAY)
    error = UnreadableRowError("of a later version")
    lane.world.executor._waiting.wait(given_up, error)
    (row,) = [run for run in lane.world.history(lane.job) if run.key.kind is RunKind.MISSED]
    minute = timedelta(minutes=1)
    assert row.covers_from == NOON - 59 * minute
    assert row.key.fire_at == lane.message.key.fire_at - minute


def test_an_operation_whose_step_meets_a_row_that_cannot_be_read_fails_after_a_day() -> None:
    world = World(segments=1)
    put_dead(world, world.create("job", "0 0 1 1 *"), 3)
    begun = begin(world, OperationKind.DISCARD, 20)
    (order,) = world.drain()
    held_up = replace(order, store_waits=9, unreadable_since=NOON)
    error = UnreadableRowError("of a later version")
    for after, state in ((timedelta(hours=23), "running"), (DAY, "failed")):
        world.clock.set(NOON + after)
        world.executor._waiting.wait(held_up, error)
        assert now_of(world, begun).state.value == state
    assert now_of(world, begun).note == "step 1: UnreadableRowError: of a later version"


def test_the_run_of_a_fixed_delay_is_never_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Lane(schedule="every 60s after finish")
    message = replace(lane.message, after_finish=True)
    lane.world.drain()
    lane.world.queue.send([message], [0])
    monkeypatch.setattr(lane.world.jobs, "get", raising(UnreadableRowError("of a later version")))
    lane.receive_until(NOON + 2 * DAY)
    assert {report.handled for report in lane.reports} == {Handled.DEFERRED}
    assert len(lane.world.queue.kept()) == 1


def test_the_end_of_a_pause_is_never_given_up() -> None:
    """The job would stay paused for good, though its row is mended."""
    lane = Lane()
    resumed_at = lane.message.due_at + timedelta(minutes=5)
    paused = lane.world.pause(lane.job, resumed_at)
    with lane.world.failing(lane.world.jobs, "get", UnreadableRowError("of a later version")):
        lane.receive_until(NOON + 2 * DAY)
    lane.receive_until(NOON + 2 * DAY + timedelta(minutes=5))
    assert lane.world.stored(paused).state is JobState.ACTIVE
    assert lane.world.stored(paused).generation.from_at == resumed_at - timedelta(seconds=1)


@pytest.mark.parametrize("kind", [RunKind.WATCH, RunKind.OPERATION])
def test_what_is_no_run_is_dropped_after_a_day(
    kind: RunKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane()
    key = RunKey(lane.job.owner, lane.job.job_id, kind, lane.message.key.fire_at)
    lane.world.drain()
    lane.world.queue.send([replace(lane.message, key=key)], [0])
    for store in (lane.world.jobs, lane.world.operations):
        monkeypatch.setattr(store, "get", raising(UnreadableRowError("of a later version")))
    lane.receive_until(NOON + DAY + timedelta(minutes=7))
    assert lane.reports[-1].handled is Handled.DROPPED
    assert lane.world.queue.kept() == []


def test_what_could_not_be_read_counts_from_the_first_time_and_is_forgotten_once_handled() -> None:
    message = Lane().message
    once = store_waits.held_up(message, NOON, is_unreadable=True)
    twice = store_waits.held_up(once, NOON + DAY, is_unreadable=False)
    assert (twice.store_waits, twice.unreadable_since) == (2, NOON)
    assert decode(encode(twice)) == twice
    assert store_waits.is_given_up(twice, NOON + DAY)
    assert not store_waits.is_given_up(twice, NOON + DAY - timedelta(seconds=1))
    assert store_waits.handled(twice) == message
