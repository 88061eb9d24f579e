"""Occurrences that a calendar moves: each ends once, whatever changes meanwhile."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.job import Job, JobState
from carillon.domain.message import decode, encode
from carillon.domain.policies import CatchUp, OnComplete, Overlap
from carillon.domain.run import RunKind, RunStatus
from carillon.domain.wheel.entry import entries_of, message_of
from carillon.executor.batch import Handled
from carillon.schedules import CalendarRule, SlotKind
from tests.simulation.stories.story import MINUTE, row_of, succeeded
from tests.simulation.stories.time.test_calendars import day, jump, over_nines
from tests.support.world import World

SKIP = CalendarRule.SKIP
NEXT = CalendarRule.NEXT_BUSINESS_DAY
PREVIOUS = CalendarRule.PREVIOUS_BUSINESS_DAY


def outcomes(world: World, job: Job) -> list[tuple[datetime, str]]:
    """Each row of the history: its fire time, and its reason or else its status."""
    return [(run.key.fire_at, run.reason or run.status.value) for run in world.history(job)]


def test_a_day_closed_after_the_day_before_is_over_runs_at_its_nominal_time() -> None:
    world = World(day(24, 8), segments=1)
    job = world.create("job", "0 9 25 12 *", calendar=("holidays", PREVIOUS))
    over_nines(world, 24)
    world.close("holidays", "2026-12-25")
    over_nines(world, 25, 26)
    assert outcomes(world, job) == [(day(24), "succeeded")]


@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.SKIP])
@pytest.mark.parametrize("later", ["2026-12-31", "2027-12-25"])
def test_what_is_postponed_runs_though_its_day_is_opened_again(
    later: str, overlap: Overlap
) -> None:
    world = World(day(25, 8), segments=1)
    world.close("holidays", "2026-12-25")
    once = "at 2026-12-25T09:00:00"
    ends = {"overlap": overlap, "on_complete": OnComplete.DELETE}
    job = world.create("job", once, calendar=("holidays", NEXT), **ends)
    over_nines(world, 25)
    world.close("holidays", later)
    over_nines(world, 26, 27)
    assert outcomes(world, job) == [(day(26), "succeeded")]
    assert row_of(world, job).state is JobState.COMPLETED


@pytest.mark.parametrize("rule", [SKIP, NEXT, PREVIOUS])
def test_a_day_closed_after_its_run_does_not_run_a_second_time(rule: CalendarRule) -> None:
    world = World(day(25, 8), segments=1)
    job = world.create("job", "0 9 25 12 *", calendar=("holidays", rule))
    over_nines(world, 25)
    world.close("holidays", "2026-12-25")
    over_nines(world, 26, 27)
    assert outcomes(world, job) == [(day(25), "succeeded")]


def test_an_occurrence_before_the_generation_is_not_moved_into_it() -> None:
    """The 25th is a Friday; its occurrence was over before the job was made."""
    world = World(day(25, 12), segments=1)
    world.close("holidays", "2026-12-25", weekdays=[5, 6])
    job = world.create("job", "0 9 * * FRI", calendar=("holidays", NEXT), max_runs=1)
    over_nines(world, 26, 27, 28)
    assert outcomes(world, job) == []


def test_what_is_moved_on_again_is_moved_from_its_own_day() -> None:
    world = World(day(25, 8), segments=1)
    world.close("holidays", "2026-12-25")
    job = world.create(
        "job", "0 9 25 12 *", calendar=("holidays", NEXT), window="10m", fraction=0.5
    )
    over_nines(world, 25)
    world.close("holidays", "2026-12-26", "2026-12-27")
    over_nines(world, 26, 27, 28)
    (run,) = world.history(job)
    assert (run.key.fire_at, run.status) == (day(28), RunStatus.SUCCEEDED)
    assert run.effective_at == day(28) + timedelta(minutes=5)
    assert run.note == "moved from 2026-12-25 by calendar holidays"


def test_the_end_of_thirty_one_closed_days_is_recorded() -> None:
    world = World(day(25, 8), segments=1)
    world.close("never", weekdays=range(7))
    job = world.create("job", "0 9 25 12 *", calendar=("never", NEXT))
    over_nines(world, 25)
    (run,) = world.history(job)
    assert (run.key.fire_at, run.reason) == (day(25), "calendar")
    note = "2026-12-25 is closed in calendar never, as all of 31 days around it"
    assert run.note == note


def test_a_pause_after_the_earlier_day_adds_no_row_for_the_closed_one() -> None:
    world = World(day(24, 8), segments=1)
    world.close("holidays", "2026-12-25")
    job = world.create("job", "0 9 25 12 *", calendar=("holidays", PREVIOUS))
    over_nines(world, 24)
    world.pause(job)
    over_nines(world, 25, 26)
    assert outcomes(world, job) == [(day(24), "succeeded")]


def test_what_runs_early_completes_its_job_on_its_own_day() -> None:
    """Until then the day may be opened again; what has no earlier day left is yet to run."""
    world = World(day(24, 12), segments=1)
    world.close("holidays", "2026-12-25", "2026-12-26")
    schedule = "*/30 9-15 25 12 *"
    made = {"calendar": ("holidays", PREVIOUS), "on_complete": OnComplete.DELETE}
    job = world.create("job", schedule, end_at=day(25, 15), **made)
    for hour in (14, 15):
        world.leap_to(day(24, hour, 57 if hour == 14 else 27))
        jump(world, day(24, 15, 3 if hour == 14 else 33))
    for number in range(13):
        at = day(25) + timedelta(minutes=30 * number)
        assert row_of(world, job).state is JobState.ACTIVE
        world.leap_to(at - 3 * MINUTE)
        jump(world, at + 3 * MINUTE)
    assert row_of(world, job).state is JobState.COMPLETED
    assert succeeded(world, job) == [day(24) + timedelta(minutes=30 * n) for n in range(13)]


def test_a_fixed_delay_closed_after_its_dispatch_goes_on_to_a_later_day() -> None:
    world = World(day(24, 23, 40), segments=1)
    job = world.create("delay", "every 25m after finish", calendar=("holidays", PREVIOUS))
    jump(world, day(25, 0, 3))
    world.close("holidays", "2026-12-25")
    jump(world, day(25, 0, 8))
    world.leap_to(day(26, 0, 0))
    jump(world, day(26, 0, 40))
    fired = world.fired(job)
    assert fired[0] == day(26, 0, 5), "not on the 24th, which is over"
    assert fired[1] >= fired[0] + timedelta(minutes=25)


@pytest.mark.parametrize("policy", [CatchUp.LATEST, CatchUp.SKIP])
def test_an_outage_at_the_closed_day_passes_over_nothing_that_is_moved_out_of_it(
    policy: CatchUp,
) -> None:
    world = World(day(25, 8), segments=1)
    world.close("holidays", "2026-12-25")
    made = {"catch_up": policy, "calendar": ("holidays", NEXT)}
    later = world.create("later", "0 9 25 12 *", **made)
    made["calendar"] = ("holidays", PREVIOUS)
    earlier = world.create("earlier", "0 9 25 12 *", **made)
    jump(world, day(25, 8, 5))
    world.clock.set(day(25, 12))
    jump(world, day(25, 12, 5))
    over_nines(world, 26)
    assert outcomes(world, later) == [(day(26), "succeeded")]
    assert outcomes(world, earlier) == [(day(24), "succeeded")]


@pytest.mark.parametrize("policy", CatchUp)
def test_what_is_moved_out_of_an_outage_runs_though_its_job_is_paused_and_resumed_by_then(
    policy: CatchUp,
) -> None:
    world = World(day(25, 8), segments=1)
    world.close("holidays", "2026-12-25", "2026-12-26")
    job = world.create("job", "0 9 25 12 *", catch_up=policy, calendar=("holidays", NEXT))
    jump(world, day(25, 8, 5))
    world.clock.set(day(25, 12))
    jump(world, day(25, 12, 5))
    world.leap_to(day(26, 12))
    world.new_generation(world.pause(job))
    over_nines(world, 27, 28)
    assert outcomes(world, job) == [(day(27), "succeeded")]


def test_what_is_moved_out_of_an_outage_runs_though_its_schedule_was_changed_in_it() -> None:
    """The entries of before stand until what they send is met."""
    world = World(day(25, 8), segments=1)
    world.close("holidays", "2026-12-25")
    job = world.create("job", "0 9 * * *", calendar=("holidays", NEXT))
    jump(world, day(25, 8, 5))
    world.clock.set(day(25, 10))
    world.new_generation(job, "0 18 * * *")
    world.clock.set(day(25, 12))
    jump(world, day(25, 12, 5))
    over_nines(world, 26)
    assert outcomes(world, job) == [(day(26), "succeeded")]


@pytest.mark.parametrize("policy", [CatchUp.LATEST, CatchUp.SKIP])
def test_what_an_outage_passed_over_for_a_later_day_does_not_run_on_that_day(
    policy: CatchUp,
) -> None:
    """That of the 25th belongs to the 24th, 09:00, at which time the ticks were down."""
    world = World(day(24, 8), segments=1)
    world.close("holidays", "2026-12-25")
    daily = {"catch_up": policy, "calendar": ("holidays", PREVIOUS)}
    job = world.create("job", ["0 9 25 12 *", "0 10 24 12 *"], **daily)
    jump(world, day(24, 8, 5))
    world.clock.set(day(24, 12))
    jump(world, day(24, 12, 5))
    over_nines(world, 25, 26)
    own = "succeeded" if policy is CatchUp.LATEST else "catch_up"
    rows = [
        (run.key.fire_at, run.reason or run.status.value)
        for run in world.history(job)
        if run.key.kind is not RunKind.MISSED
    ]
    assert rows == [(day(24), "catch_up"), (day(24, 10), own)]


def test_rare_schedules_that_move_on_are_filed_one_by_one() -> None:
    world = World(day(24), segments=1)
    rare = world.new_job("rare", "0 9 25 12 *", calendar=("holidays", NEXT))
    assert [entry.slot.kind for entry in entries_of(rare)] == [SlotKind.DATED]
    back = world.new_job("back", "0 9 25 12 *", calendar=("holidays", PREVIOUS))
    assert [entry.slot.kind for entry in entries_of(back)] == [SlotKind.DAILY]


def test_a_message_keeps_where_it_was_moved_from() -> None:
    job = World(day(24), segments=1).new_job("job", "0 9 * * *")
    message = replace(message_of(job, day(28)), moved_from=day(25))
    assert decode(encode(message)) == message
    assert message.nominal_at == day(25)
    assert decode(encode(message_of(job, day(28)))).moved_from is None


FIRST, LAST = datetime(2026, 12, 1, tzinfo=UTC), 9
SCHEDULES = ["0 9 * * *", "0 9,15 * * *", "0 9 * * MON,THU", "0 15 4,5,6 12 *"]


class Days:
    """One job through some days, of which any may be closed and opened, and its pauses."""

    def __init__(self, seed: int, rule: CalendarRule) -> None:
        self.random = random.Random(seed)
        self.world = World(FIRST, segments=1, seed=seed)
        self.edits: list[datetime] = []
        self.edit()
        schedule = self.random.choice(SCHEDULES)
        self.job = self.world.create("job", schedule, calendar=("days", rule))
        self.active: list[tuple[datetime, datetime | None]] = [(self.job.generation.from_at, None)]

    def edit(self) -> None:
        closed = [f"2026-12-{n:02}" for n in range(1, LAST + 1) if self.random.random() < 0.4]
        self.world.close("days", *closed)
        self.edits.append(self.world.clock.now())

    def pause_or_resume(self) -> None:
        since, until = self.active[-1]
        if until is None:
            self.job = self.world.pause(self.job)
            self.active[-1] = (since, self.world.clock.now())
        else:
            self.job = self.world.new_generation(self.job)
            self.active.append((self.job.generation.from_at, None))

    def maybe(self) -> None:
        if self.random.random() < 0.06:
            self.edit()
        if self.random.random() < 0.02:
            self.pause_or_resume()

    def run(self) -> None:
        for number in range(LAST + 4):
            for hour in (9, 15):
                due = FIRST + timedelta(days=number, hours=hour)
                self.world.leap_to(due - 4 * MINUTE)
                while self.world.clock.now() < due + 3 * MINUTE:
                    if number < LAST:
                        self.maybe()
                    self.world.tick()
                    self.world.execute()
                    self.world.clock.advance(60)

    def ends(self) -> dict[datetime, set[datetime]]:
        """The fire times of the rows in which the occurrences ended, by their nominal times."""
        ended: dict[datetime, set[datetime]] = {}
        places: dict[datetime, tuple[datetime, str]] = {}
        for report in self.world.reports:
            message, nominal_at = report.message, report.message.nominal_at
            # The wheel keeps one message of those that are moved to the same instant.
            place = places.get(nominal_at)
            together = {at for at, other in places.items() if other == place} | {nominal_at}
            for at in together:
                if report.handled is Handled.DEFERRED:
                    places[at] = (message.key.fire_at, message.generation_id)
                elif report.run is not None:
                    ended.setdefault(at, set()).add(report.run.key.fire_at)
        return ended


@pytest.mark.parametrize("rule", [SKIP, NEXT, PREVIOUS])
@pytest.mark.parametrize("seeds", [range(0, 30), range(30, 60)])
def test_every_nominal_occurrence_ends_in_one_row(rule: CalendarRule, seeds: range) -> None:
    for seed in seeds:
        days = Days(seed, rule)
        days.run()
        ends, now = days.ends(), days.world.clock.now()
        history = days.world.history(days.job)
        assert all(run.is_final for run in history)
        nominal = [
            fire_at
            for since, until in days.active
            for fire_at in days.job.schedule.between(since, until or now)
        ]
        for fire_at in nominal:
            assert len(ends.get(fire_at, ())) == 1, (seed, fire_at, ends.get(fire_at))
        # What ran early may be of a day at which the job was paused.
        every = days.job.schedule.between(FIRST - MINUTE, now)
        explained = {at for fire_at in every for at in ends.get(fire_at, ())}
        for fire_at in succeeded(days.world, days.job):
            # What ran a day early, and whose day was opened or closed otherwise after that.
            is_changed = rule is PREVIOUS and days.edits[-1] > fire_at
            assert fire_at in explained or is_changed, (seed, fire_at)
        fired = days.world.fired(days.job)
        assert sorted(fired) == succeeded(days.world, days.job), "no row has two calls"
