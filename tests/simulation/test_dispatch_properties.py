"""Whatever the schedule and whenever ticks come: dispatch yields exactly what the schedule does."""

from datetime import UTC, datetime, timedelta
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from shared.domain.job import CatchUp
from shared.domain.run import RunStatus
from shared.domain.wheel import entries_of, minute_end
from shared.recurrence import Schedule, parse_schedule
from tests.simulation.world import World
from tests.unit.recurrence.strategies import crons, everies, exact_and_slow

DENSE = st.sampled_from(
    ["* * * * *", "*/7 * * * *", "*/13 * * * * *", "every 37s", "every 61m"]
).map(parse_schedule)
TICK_GAPS = st.lists(st.integers(0, 400), min_size=1, max_size=12)
"""Seconds from one tick to the next: on time, doubled, late, missing."""


@exact_and_slow
@given(
    schedule=st.one_of(DENSE, crons, everies()),
    start=st.integers(0, 86_400 * 700).map(
        lambda s: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=s)
    ),
    gaps=TICK_GAPS,
    segments=st.integers(1, 3),
)
def test_any_ticks_dispatch_exactly_the_occurrences_of_the_span(
    schedule: Schedule, start: datetime, gaps: list[int], segments: int
) -> None:
    world = World(start, segments)
    job = world.create(
        "job", schedule.text, timezone=schedule.timezone, start_at=schedule.start_at,
        catch_up=CatchUp.ALL,
    )  # fmt: skip
    assert len(entries_of(job)) <= 60
    for seconds in accumulate(gaps):
        world.clock.set(start + timedelta(seconds=seconds))
        world.tick()
    control = world.filer.control(job.segment)
    dispatched_until = minute_end(control.watermark)
    expected = list(schedule.between(job.filing.from_at, dispatched_until))
    sent = {received.message.key.fire_at for received in world.queue.kept()}
    assert sorted(sent) == expected

    world.clock.set(dispatched_until + timedelta(seconds=1))
    world.execute()
    succeeded = [run for run in world.history(job) if run.status is RunStatus.SUCCEEDED]
    assert [run.key.fire_at for run in succeeded] == expected
    assert sorted(world.fired(job)) == expected, "each occurrence once, however often it was sent"
