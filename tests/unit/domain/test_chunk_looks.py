"""Chunks in which a run of a changed job may be, or may have run before."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.clock import SeededEntropy
from carillon.domain.chunks.looking import Look, looks_of, places_of, was_just_changed
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Generation, Job, Lane
from carillon.domain.wheel.entry import minute_of
from tests.unit.domain.samples import CURRENT, NOON, OLD, job, message

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def in_generation(before: Job, made_at: datetime, **changes: Any) -> Job:
    """The job under a generation made at that instant, with other settings."""
    generation = Generation(SeededEntropy(2).new_id(made_at), made_at)
    changed = before.in_new_generation(generation, made_at)
    return replace(changed, spec=changed.spec.model_copy(update=changes))


SETTLED = job(
    generation=Generation(OLD, NOON - 24 * HOUR),
    segment=3,
    spread_seconds=60,
    priority=Lane.HIGH,
)
LOOK = Look("job", OLD, 3, minute_of(NOON) + 1, (0, Lane.HIGH), 60)
"""At an occurrence at noon of that generation."""


class TestLooks:
    def test_a_job_that_was_never_changed_takes_none(self) -> None:
        assert list(looks_of(SETTLED, message())) == []

    @pytest.mark.parametrize(
        ("changed_at", "looks"),
        [
            (NOON - HOUR - SECOND, []),
            (NOON - HOUR, [LOOK]),
            (NOON, [LOOK]),
            (NOON + 10 * MINUTE, [LOOK]),
        ],
    )
    def test_it_looks_where_the_generation_before_may_have_run_it(
        self, changed_at: datetime, looks: list[Look]
    ) -> None:
        assert list(looks_of(in_generation(SETTLED, changed_at), message())) == looks

    def test_a_place_is_that_of_its_time(self) -> None:
        """The job has moved to another lane and another place in its window since."""
        changed = replace(in_generation(SETTLED, NOON, priority=Lane.LOW), spread_seconds=7)
        assert list(looks_of(changed, message())) == [LOOK]

    def test_each_generation_counts_until_the_next_one_was_made(self) -> None:
        twice = in_generation(in_generation(SETTLED, NOON - HOUR - SECOND), NOON)
        (look,) = looks_of(twice, message())
        assert look.generation_id == twice.replaced[0].generation_id
        late = in_generation(in_generation(SETTLED, NOON - MINUTE), NOON)
        assert list(looks_of(late, message())) == [LOOK], "the one between was not settled"

    def test_generations_that_went_alone_take_none(self) -> None:
        alone = in_generation(replace(SETTLED, spec=job(grace=5).spec), NOON, grace=None)
        assert list(looks_of(alone, message())) == []
        unsettled = in_generation(replace(SETTLED, generation=Generation(CURRENT, NOON)), NOON)
        assert list(looks_of(unsettled, message())) == []

    def test_a_generation_has_settled_an_hour_before_its_place_in_the_window(self) -> None:
        generation = Generation(SeededEntropy(3).new_id(NOON - 59 * MINUTE), NOON)
        settled = in_generation(replace(SETTLED, generation=generation), NOON)
        (look,) = looks_of(settled, message())
        assert look == replace(LOOK, generation_id=generation.generation_id)

    def test_the_plan_says_which_chunk_it_is(self) -> None:
        plan = Plan(3, LOOK.minute, "salt", NOON, {LOOK.group: 7})
        bucket = plan.bucket_of(LOOK.group, "job")
        assert bucket is not None
        assert LOOK.key_by(plan) == ChunkKey(3, LOOK.minute, 0, Lane.HIGH, bucket)
        assert LOOK.key_by(replace(plan, chunks={(1, Lane.HIGH): 7})) is None
        assert LOOK.key_by(None) is None


class TestChanges:
    def test_a_job_is_just_changed_from_an_hour_before_its_occurrence_on(self) -> None:
        assert not was_just_changed(in_generation(SETTLED, NOON - HOUR - SECOND), NOON)
        assert was_just_changed(in_generation(SETTLED, NOON - HOUR), NOON)

    def test_a_new_job_is_not(self) -> None:
        """Its occurrences cost no look."""
        assert not was_just_changed(replace(SETTLED, generation=Generation(CURRENT, NOON)), NOON)


class TestPlaces:
    """Where a history looks: the instant may be long past."""

    def test_that_of_the_generation_that_counts(self) -> None:
        assert list(places_of(SETTLED, NOON)) == [LOOK]

    def test_those_of_all_that_are_remembered(self) -> None:
        changed = in_generation(SETTLED, NOON - 2 * HOUR, priority=Lane.LOW)
        own = Look("job", changed.generation.generation_id, 3, LOOK.minute, (0, Lane.LOW), 60)
        assert list(places_of(changed, NOON)) == [own, LOOK]

    def test_none_of_those_that_were_not_settled_or_went_alone(self) -> None:
        young = in_generation(SETTLED, NOON - 58 * MINUTE)
        assert [each.generation_id for each in places_of(young, NOON)] == [OLD], (
            "due a minute later, still within the hour"
        )
        settled = in_generation(SETTLED, NOON - 59 * MINUTE)
        own = settled.generation.generation_id
        assert [each.generation_id for each in places_of(settled, NOON)] == [own, OLD]
        assert list(places_of(replace(SETTLED, spec=job(grace=5).spec), NOON)) == []
