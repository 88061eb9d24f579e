"""The places of what is late: in turns, none twice, none unused, none before now."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carillon.domain.wheel.pace import BUCKETS, bucket_of
from carillon.domain.wheel.segment import Control, first_control, placed, shared_out
from tests.unit.domain.samples import NOON

MINUTE = timedelta(minutes=1)
OWNERS = {bucket_of(f"owner-{number}"): f"owner-{number}" for number in range(500)}
"""One for each bucket."""
SHARE = 60
A_SECOND = MINUTE / SHARE


def counted(*counts: int) -> Control:
    padded = (*counts, *(0,) * (BUCKETS - len(counts)))
    return shared_out(first_control(0, NOON), padded, 0, NOON, SHARE)


def places(control: Control, order: list[int]) -> list[float]:
    """Seconds after noon of the places that messages of these buckets take, one by one."""
    found = []
    for bucket in order:
        control, place = placed(control, OWNERS[bucket], NOON, SHARE)
        found.append((place - NOON).total_seconds())
    return found


def test_owners_are_spread_over_all_buckets_for_ever() -> None:
    assert set(OWNERS) == set(range(BUCKETS))
    assert [bucket_of(owner) for owner in ("a", "b", "ü")] == [14, 30, 11]


def test_one_alone_has_the_whole_share() -> None:
    assert places(counted(3), [0, 0, 0]) == [0, 1, 2]


def test_who_comes_last_has_its_turns_all_the_same() -> None:
    """All of the greedy one's have their places before any of the other's is met."""
    assert places(counted(5, 2), [0, 0, 0, 0, 0, 1, 1]) == [0, 2, 4, 5, 6, 1, 3]


def test_what_was_not_counted_comes_behind_all_that_was() -> None:
    assert places(counted(2, 1), [0, 0, 0, 2, 1]) == [0, 2, 3, 4, 1]


def test_without_a_count_there_is_one_row() -> None:
    assert places(first_control(0, NOON), [0, 1, 0]) == [0, 1, 2]


def test_the_next_outage_comes_behind_the_places_that_were_given() -> None:
    control = counted(3)
    later = shared_out(control, control.shares.counts if control.shares else (), 9, NOON, SHARE)
    assert places(later, [0]) == [3]


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.integers(0, 6), min_size=BUCKETS, max_size=BUCKETS),
    seed=st.randoms(use_true_random=False),
)
def test_every_place_is_taken_once(counts: list[int], seed: object) -> None:
    order = [bucket for bucket, count in enumerate(counts) for _ in range(count)]
    seed.shuffle(order)  # type: ignore[attr-defined]
    assert sorted(places(counted(*counts), order)) == list(range(len(order)))


@settings(max_examples=50, deadline=None)
@given(mine=st.integers(1, 40), others=st.lists(st.integers(0, 60), max_size=6))
def test_no_others_can_hold_one_up_by_more_than_their_number(mine: int, others: list[int]) -> None:
    """The n-th message of one starts by n times as many places as there are owners."""
    order = [n for n, count in enumerate(others) for _ in range(count)] + [BUCKETS - 1] * mine
    padded = [*others, *[0] * (BUCKETS - 1 - len(others)), mine]
    owners = sum(1 for count in padded if count)
    own = places(counted(*padded), order)[-mine:]
    assert all(place < (n + 1) * owners for n, place in enumerate(own))


def late_places(control: Control, order: list[int]) -> tuple[list[float], Control]:
    """Seconds after noon of the places that they take when ten seconds are over."""
    found = []
    for bucket in order:
        control, place = placed(control, OWNERS[bucket], NOON + 10 * A_SECOND, SHARE)
        found.append((place - NOON).total_seconds())
    return found, control


def test_who_comes_late_takes_the_turns_that_are_left_and_as_many_more() -> None:
    """A tick died when it had placed the first owner's: those lie ahead, and stay."""
    control = counted(20, 4)
    for _ in range(20):
        control, _ = placed(control, OWNERS[0], NOON, SHARE)
    found, control = late_places(control, [1, 1, 1, 1])
    assert found == [11, 13, 15, 17]
    assert control.throttled_until == NOON + (24 + 5) * A_SECOND


@pytest.mark.parametrize("before", [[], [0], [0, 1, 0]])
def test_after_an_outage_all_that_is_left_has_places_from_now_on(before: list[int]) -> None:
    """A tick died, and the next one came when all places that it had given were past."""
    control, left = counted(3, 3), [0, 0, 0, 1, 1, 1]
    for bucket in before:
        control, _ = placed(control, OWNERS[bucket], NOON, SHARE)
        left.remove(bucket)
    found, control = late_places(control, left)
    assert sorted(found) == list(range(10, 10 + len(left)))
    assert control.throttled_until == NOON + (10 + len(left)) * A_SECOND


def test_nobody_starts_before_now() -> None:
    control, now = counted(9, 9), NOON + timedelta(minutes=3)
    for bucket in (0, 1, 0, 1):
        control, place = placed(control, OWNERS[bucket], now, SHARE)
        assert place >= now
    assert replace(control).shares is not None
