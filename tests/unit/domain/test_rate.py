"""Rates: no window holds more starts than the limit, and none is kept waiting without need."""

from bisect import bisect_left
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.domain.decisions import Go, Wait
from shared.domain.gate import Gate, first_gate
from shared.domain.policies import Rate
from shared.domain.rate import (
    needed_slot,
    reserve,
    take_slot,
    with_fresh_slots,
    with_slots_left,
)
from shared.domain.run import Run, RunKind, RunStatus
from shared.domain.waiting import wait_until
from tests.unit.domain.samples import KEY, NOON, job, message, run

GATE = first_gate("owner", "rate/key")


def slots(rate: Rate, asked: list[datetime], gate: Gate = GATE) -> list[datetime]:
    """The slots of those who ask at these instants, in order."""
    found = []
    for number, now in enumerate(asked):
        gate = reserve(gate, rate, f"claim-{number}", now)
        assert gate.started_at is not None
        assert len(gate.starts) <= 22, "the row stays small"
        found.append(gate.started_at)
    return found


def most_in_a_window(instants: list[datetime], seconds: int) -> int:
    """The most instants in any half-open window of this length."""
    length = timedelta(seconds=seconds)
    ordered = sorted(instants)
    return max(bisect_left(ordered, at + length) - n for n, at in enumerate(ordered))


@given(
    st.sampled_from([1, 2, 7, 20, 21, 25]),
    st.sampled_from([1, 7, 60, 86_400]),
    st.lists(st.integers(0, 90_000), min_size=1, max_size=80),
)
def test_no_window_holds_more_than_the_limit_and_nobody_is_early(
    limit: int, per_seconds: int, gaps: list[int]
) -> None:
    asked = [NOON]
    for gap in gaps:
        asked.append(asked[-1] + timedelta(milliseconds=gap))
    found = slots(Rate(limit, per_seconds), asked)
    assert most_in_a_window(found, per_seconds) <= limit
    assert all(slot >= at for slot, at in zip(found, asked, strict=True))
    assert found == sorted(found), "in the order of the asking"
    assert all(
        slot == at or slot.microsecond == 0 for slot, at in zip(found, asked, strict=True)
    ), "who waits does so in whole seconds"


def test_after_a_pause_the_limit_starts_at_once_then_each_as_a_window_leaves_it() -> None:
    found = slots(Rate(3, 60), [NOON] * 7)
    seconds = [(slot - NOON).total_seconds() for slot in found]
    assert seconds == [0, 0, 0, 60, 60, 60, 120]


@pytest.mark.parametrize("limit", [1, 10, 60, 600])
def test_a_flood_gets_nearly_the_whole_rate(limit: int) -> None:
    found = slots(Rate(limit, 60), [NOON] * (limit * 10))
    assert most_in_a_window(found, 60) == limit
    assert found[-1] - NOON <= timedelta(minutes=9 * 1.05)


def test_a_steady_load_below_the_rate_never_waits() -> None:
    asked = [NOON + timedelta(seconds=1.1 * n) for n in range(300)]
    assert slots(Rate(60, 60), asked) == asked


def test_jobs_with_limits_of_their_own_share_what_a_key_counts() -> None:
    after = reserve(GATE, Rate(1, 60), "claim-1", NOON)
    wider = reserve(after, Rate(2, 60), "claim-2", NOON)
    assert wider.started_at == NOON
    narrow = reserve(wider, Rate(1, 60), "claim-3", NOON)
    assert narrow.started_at is not None
    assert narrow.started_at >= NOON + timedelta(seconds=60)


@pytest.mark.parametrize(("limit", "last_seconds"), [(1, 86_400 * 90), (100, 86_400)])
def test_a_gate_lasts_as_long_as_the_slots_it_has_granted(limit: int, last_seconds: int) -> None:
    gate = GATE
    for number in range(90):
        gate = reserve(gate, Rate(limit, 86_400), f"claim-{number}", NOON)
    assert gate.expires_at >= NOON + timedelta(seconds=last_seconds)


def test_two_who_ask_at_once_never_write_the_same_row() -> None:
    """A store takes a row that stands already for one's own, written by a lost answer."""
    first, second = (reserve(GATE, Rate(9, 60), claim, NOON) for claim in ("a", "b"))
    assert first != second


def test_who_has_a_slot_starts_and_who_has_none_waits_for_the_one_reserved() -> None:
    taken = take_slot(GATE, Rate(1, 60), message(), "claim-1", NOON)
    assert taken.outcome == Go()
    assert taken.put is not None
    slotted = message(slot_key="h0", has_rate_slot=True)
    full = take_slot(taken.put, Rate(1, 60), slotted, "claim-2", NOON)
    assert isinstance(full.outcome, Wait)
    waiting = full.outcome.message
    assert full.put is not None
    assert waiting.wait_until == full.put.started_at
    assert (waiting.has_rate_slot, waiting.slot_key) == (True, "")
    assert full.outcome.reason == "1 starts in 60 s are reached"


class TestWhoseSlotsTheyAre:
    SLOTS = message(has_rate_slot=True, has_owner_slot=True, wait_until=NOON)

    @pytest.mark.parametrize(
        "over",
        [None, run(RunStatus.SCHEDULED, attempt=0), run(RunStatus.RETRYING)],
    )
    def test_of_a_message_that_waited_for_them(self, over: Run | None) -> None:
        assert with_slots_left(self.SLOTS, over) == self.SLOTS

    def test_not_after_an_executor_died_on_the_run(self) -> None:
        left = with_slots_left(self.SLOTS, run(RunStatus.RUNNING))
        assert left == replace(self.SLOTS, has_rate_slot=False, has_owner_slot=False)

    @pytest.mark.parametrize(("seconds", "is_kept"), [(2, True), (3, False)])
    def test_they_are_lost_by_waiting_for_something_else(self, seconds: int, is_kept: bool) -> None:
        wait = wait_until(self.SLOTS, NOON + timedelta(seconds=seconds), "the key is held")
        kept = with_fresh_slots(wait, NOON)
        assert kept.reason == wait.reason
        assert kept.message.wait_until == wait.message.wait_until
        assert (kept.message.has_rate_slot, kept.message.has_owner_slot) == (is_kept, is_kept)


@pytest.mark.parametrize("kind", RunKind)
def test_a_callback_counts_in_no_rate_of_its_job(kind: RunKind) -> None:
    asking = run(RunStatus.RUNNING, key=replace(KEY, kind=kind))
    counts = needed_slot(job(rate=Rate(1, 60)), asking) is not None
    assert counts == (kind is not RunKind.CALLBACK)
