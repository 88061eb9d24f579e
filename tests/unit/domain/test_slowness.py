"""When a job is served apart, and when as before: pure decisions."""

from datetime import timedelta

import pytest

from carillon.domain.admission.slowness import (
    BEHAVED,
    has_behaved,
    mark,
    may_have_behaved,
    redirected,
    share_of_an_owner,
    weight_of,
    with_slow_attempt,
)
from carillon.domain.admission.state import AdmissionRow, first_admission
from carillon.domain.job import Job, Lane, Slow
from carillon.domain.run import Run, RunError, RunStatus
from carillon.schedules import parse_schedule
from tests.unit.domain.samples import KEY, NOON, job, message, run

SLOW = Slow(NOON, "attempts keep lasting longer than 2 s")
TIMEOUT = RunError("timeout", "no answer within 5 s")
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def attempt(seconds: float, error: RunError | None = None, after: timedelta = timedelta()) -> Run:
    """The run whose attempt ended `seconds` after it began, `after` NOON, its fire time."""
    began_at = NOON + after
    return run(
        RunStatus.SUCCEEDED if error is None else RunStatus.RETRYING,
        key=KEY.__class__(KEY.owner, KEY.job_id, KEY.kind, began_at),
        attempt_started_at=began_at,
        updated_at=began_at + seconds * SECOND,
        error=error,
    )


def after_attempts(served: Job, *attempts: Run) -> AdmissionRow:
    gate = first_admission("owner", "job/job")
    for each in attempts:
        weight = weight_of(each, 2)
        gate = with_slow_attempt(gate, each, served, weight) if weight else gate
    return gate


@pytest.mark.parametrize(
    ("seconds", "error", "weight"),
    [
        (2, None, 0),
        (2.001, None, 1),
        (5, TIMEOUT, 2),
        (5, RunError("http_503", "busy"), 1),
        (1, TIMEOUT, 0),
    ],
)
def test_an_attempt_counts_by_its_seconds_whatever_its_limit(
    seconds: float, error: RunError | None, weight: int
) -> None:
    assert weight_of(attempt(seconds, error), 2) == weight


def test_three_slow_attempts_within_ten_minutes_make_a_slow_job() -> None:
    often = job(schedule=parse_schedule("every 10s"))
    attempts = [attempt(3, after=n * 4 * MINUTE) for n in range(3)]
    assert mark(after_attempts(often, *attempts[:2]), attempts[1], 2) is None
    slow = mark(after_attempts(often, *attempts), attempts[2], 2)
    assert slow is not None
    assert slow.since == attempts[2].updated_at
    assert "longer than 2 s" in slow.reason
    assert attempts[2].key.run_id in slow.reason


def test_two_that_timed_out_are_enough_but_one_is_not() -> None:
    often = job(schedule=parse_schedule("every 10s"))
    first, second = attempt(5, TIMEOUT), attempt(5, TIMEOUT, 10 * SECOND)
    assert mark(after_attempts(often, first), first, 2) is None
    assert mark(after_attempts(often, first, second), second, 2) is not None


def test_what_is_older_than_ten_minutes_counts_no_more() -> None:
    often = job(schedule=parse_schedule("every 10s"))
    attempts = [attempt(3), attempt(3, after=MINUTE), attempt(3, after=11 * MINUTE)]
    assert mark(after_attempts(often, *attempts), attempts[2], 2) is None


@pytest.mark.parametrize("schedule", ["every 1h", "every 1h after finish"])
def test_of_a_rarer_job_the_last_five_occurrences_count(schedule: str) -> None:
    rare = job(schedule=parse_schedule(schedule))
    within = [attempt(3, after=n * HOUR) for n in (0, 2, 4)]
    assert mark(after_attempts(rare, *within), within[2], 2) is not None
    beyond = [attempt(3, after=n * HOUR) for n in (0, 3, 6)]
    assert mark(after_attempts(rare, *beyond), beyond[2], 2) is None


def test_in_lane_slow_the_gate_notes_the_last_slow_attempt_once_a_minute() -> None:
    marked = job(slow=SLOW)
    gate = after_attempts(marked, attempt(3))
    assert gate.slow_at == (NOON + 3 * SECOND,)
    assert with_slow_attempt(gate, attempt(3, after=30 * SECOND), marked, 1) is gate
    later = with_slow_attempt(gate, attempt(3, after=2 * MINUTE), marked, 1)
    assert later.slow_at == (NOON + 2 * MINUTE + 3 * SECOND,)


def test_a_job_comes_back_when_its_last_slow_attempt_is_an_hour_old() -> None:
    marked = job(slow=SLOW)
    gate = after_attempts(marked, attempt(3, after=10 * MINUTE))
    assert not may_have_behaved(attempt(0.1, after=50 * MINUTE), marked)
    early, late = attempt(0.1, after=65 * MINUTE), attempt(0.1, after=71 * MINUTE)
    assert may_have_behaved(early, marked)
    assert not has_behaved(gate, early)
    assert has_behaved(gate, late)
    assert has_behaved(None, late), "a gate that has expired names nothing newer"
    assert BEHAVED == HOUR
    assert not may_have_behaved(late, job())


def test_a_message_goes_to_the_lane_of_its_job_as_it_is() -> None:
    sent = redirected(message(slot_key="0#h#1", waits=3, in_time=True), job(slow=SLOW))
    assert sent.message == message(lane=Lane.SLOW, waits=3, in_time=True)
    assert "lane slow" in sent.reason
    back = redirected(message(lane=Lane.SLOW), job(priority=Lane.HIGH))
    assert back.message.lane is Lane.HIGH


def test_the_mark_says_the_lane_and_leaves_the_priority() -> None:
    marked = job(priority=Lane.HIGH, slow=SLOW)
    assert (marked.lane, marked.spec.priority) == (Lane.SLOW, Lane.HIGH)
    assert job(priority=Lane.HIGH).lane is Lane.HIGH


def test_the_mark_outlives_what_an_owner_changes() -> None:
    marked = job(slow=SLOW)
    generation = marked.generation
    for changed in (marked.paused(NOON), marked.in_new_generation(generation, NOON)):
        assert changed.slow == SLOW


def test_an_owner_holds_a_quarter_of_the_places_at_most() -> None:
    assert [share_of_an_owner(places) for places in (2, 4, 7, 8, 100)] == [1, 1, 1, 2, 25]
