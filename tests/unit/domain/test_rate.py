"""Rates: no window holds more starts than the limit, and none is kept waiting without need."""

from bisect import bisect_left
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.domain.admission.limits import (
    is_in_time,
    needed_slot,
    take_slot,
    wait_for,
    with_slots_left,
)
from carillon.domain.admission.rate_line import forget, reserve
from carillon.domain.admission.state import AdmissionRow, first_admission
from carillon.domain.message import RateSlot
from carillon.domain.policies import Rate
from carillon.domain.run import Run, RunKind, RunStatus
from tests.unit.domain.samples import KEY, NOON, job, message, run

GATE = first_admission("owner", "rate/key")
DAY = timedelta(days=1)


def slots(rate: Rate, asked: list[datetime], gate: AdmissionRow = GATE) -> list[datetime]:
    """The slots of those who ask at these instants, in order."""
    found = []
    for number, now in enumerate(asked):
        gate = reserve(gate, rate, f"claim-{number}", now)
        assert gate.started_at is not None
        (line,) = gate.lines
        assert len(line.starts) <= 22, "the row stays small"
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


def test_who_finds_none_free_waits_for_the_one_reserved() -> None:
    taken = take_slot(GATE, Rate(1, 60), None, "claim-1", NOON)
    assert taken.slot == RateSlot(NOON, Rate(1, 60), "claim-1")
    assert taken.put is not None
    full = take_slot(taken.put, Rate(1, 60), None, "claim-2", NOON)
    assert full.slot.at == NOON + timedelta(seconds=60)
    wait = wait_for(message(slot_key="h0", rate_slot=full.slot), full.slot, full.slot.at, NOON)
    assert (wait.message.wait_until, wait.message.slot_key) == (full.slot.at, "")
    assert wait.reason == "1 starts in 60 s are reached, it may start at 2026-12-01T12:01:00Z"


def test_who_waits_longer_than_an_hour_looks_meanwhile() -> None:
    slot = RateSlot(NOON + timedelta(days=3), Rate(1, 86_400), "line")
    wait = wait_for(message(), slot, slot.at, NOON)
    assert wait.message.wait_until == NOON + timedelta(hours=1)


class TestLimitsOfOneKey:
    """Each start is judged by its own limit, over the starts of all."""

    SLOW, QUICK = Rate(1, 86_400, "key"), Rate(100, 60, "key")

    def ask(
        self, gate: AdmissionRow, rate: Rate, seconds: float = 0, count: int = 1
    ) -> AdmissionRow:
        for number in range(count):
            now = NOON + timedelta(seconds=seconds)
            gate = reserve(gate, rate, f"{rate.limit}-{seconds}-{number}", now)
        return gate

    def slot_seconds(self, gate: AdmissionRow) -> float:
        assert gate.started_at is not None
        return (gate.started_at - NOON).total_seconds()

    def test_a_slow_one_puts_the_other_into_no_debt(self) -> None:
        gate = self.ask(GATE, self.SLOW, count=50)
        assert self.slot_seconds(gate) == 49 * 86_400
        gate = self.ask(gate, self.QUICK, 5, count=99)
        assert self.slot_seconds(gate) == 5, "one of the 100 is the start at noon"
        assert self.slot_seconds(self.ask(gate, self.QUICK, 5)) >= 60

    def test_nor_does_the_quick_one_free_the_slow_one(self) -> None:
        """The mutant: the rate of the last passer resets the gate."""
        gate = self.ask(GATE, self.SLOW)
        for minute in range(1, 60):
            gate = self.ask(gate, self.QUICK, minute * 60)
            assert self.slot_seconds(gate) == minute * 60
        gate = self.ask(gate, self.SLOW, 3600)
        assert self.slot_seconds(gate) == 59 * 60 + 86_400
        assert self.slot_seconds(self.ask(gate, self.SLOW, 3600)) == 59 * 60 + 2 * 86_400
        assert max(len(line.starts) for line in gate.lines) <= 42, "the row stays small"

    # The quick one counts in parts of three seconds.
    @pytest.mark.parametrize(("limit", "expected"), [(10, 72), (30, 60), (31, 10)])
    def test_a_lowered_one_finds_what_was_started_under_the_other(
        self, limit: int, expected: int
    ) -> None:
        gate = self.ask(self.ask(GATE, self.QUICK, 0, 20), self.QUICK, 10, 10)
        assert self.slot_seconds(self.ask(gate, Rate(limit, 60, "key"), 10)) == expected

    @pytest.mark.parametrize("limit", [3, 50])
    def test_so_does_one_where_a_start_is_yet_to_come(self, limit: int) -> None:
        """Those that came at once do not count any more then, but do now."""
        gate = self.ask(GATE, Rate(limit, 86_400, "key"), 0, limit + 1)
        lowered = self.ask(gate, Rate(limit - 1, 86_400, "key"), 10)
        assert self.slot_seconds(lowered) == 86_400

    def test_what_was_granted_for_soon_counts_under_a_new_one_too(self) -> None:
        """Ten a minute were asked for three minutes ahead; one in five minutes holds from now."""
        gate = self.ask(GATE, Rate(10, 60, "key"), 0, 40)
        assert self.slot_seconds(gate) == 180
        assert self.slot_seconds(self.ask(gate, Rate(1, 300, "key"), 1)) == 180 + 300

    def test_a_gate_remembers_a_few_limits(self) -> None:
        gate = GATE
        for number in range(1, 30):
            gate = self.ask(gate, Rate(number, 60, "key"), number)
        assert [line.limit for line in gate.lines] == list(range(29, 21, -1))

    def test_a_line_in_which_nothing_counts_any_more_is_dropped(self) -> None:
        gate = self.ask(self.ask(GATE, self.QUICK), self.SLOW, 200)
        assert [line.limit for line in gate.lines] == [1]


class TestSlotsThatAreHeld:
    SLOW, QUICK = Rate(1, 86_400), Rate(100, 60)

    def in_debt(self) -> tuple[AdmissionRow, RateSlot]:
        """Five days are reserved; the slot of the third."""
        gate, held = GATE, None
        for number in range(5):
            taken = take_slot(gate, self.SLOW, None, f"claim-{number}", NOON)
            assert taken.put is not None
            gate, held = taken.put, taken.slot if number == 2 else held
        assert held is not None
        return gate, held

    def test_it_is_kept_while_the_rate_is_the_same(self) -> None:
        gate, held = self.in_debt()
        taken = take_slot(gate, self.SLOW, held, "again", NOON + timedelta(hours=1))
        assert (taken.slot, taken.put) == (held, None)

    def test_under_another_rate_all_is_forgotten_that_was_reserved_with_it(self) -> None:
        gate, held = self.in_debt()
        now = NOON + timedelta(hours=1)
        taken = take_slot(gate, self.QUICK, held, "again", now)
        assert taken.slot.at == now
        assert taken.put is not None
        others = take_slot(taken.put, self.SLOW, replace(held, at=held.at + DAY), "other", now)
        assert others.slot.at == NOON + timedelta(hours=25), "a day after the start of now"
        lowered = take_slot(taken.put, self.SLOW, None, "new", now)
        assert lowered.slot.at == others.slot.at

    def test_once_its_time_has_come_it_is_used_whatever_the_rate(self) -> None:
        held = RateSlot(NOON, self.SLOW, "line")
        for late, asked, is_used in [(0, 1, 1), (10, 1, 1), (11, 1, 0), (20, 2, 1), (21, 2, 0)]:
            slot, now = replace(held, asked=asked), NOON + timedelta(seconds=late)
            assert is_in_time(message(rate_slot=slot), slot, now) == bool(is_used)
        assert not is_in_time(message(rate_slot=held), held, NOON - timedelta(seconds=1))

    def test_of_two_the_earlier_one_has_waited_for_the_later(self) -> None:
        later = RateSlot(NOON + timedelta(seconds=60), Rate(3, 60), "line")
        both = message(rate_slot=RateSlot(NOON, self.SLOW, "line"), owner_slot=later)
        assert both.rate_slot is not None
        assert is_in_time(both, both.rate_slot, later.at)

    def test_who_comes_too_late_asks_anew(self) -> None:
        gate, held = self.in_debt()
        late = take_slot(gate, self.SLOW, held, "late", held.at + timedelta(minutes=1))
        assert (late.slot.at, late.slot.asked) == (NOON + 5 * DAY, 2)


class TestWhoseSlotsTheyAre:
    SLOT = RateSlot(NOON, Rate(1, 60), "line")
    SLOTS = message(rate_slot=SLOT, owner_slot=SLOT, wait_until=NOON)

    @pytest.mark.parametrize(
        "over",
        [None, run(RunStatus.SCHEDULED, attempt=0), run(RunStatus.RETRYING)],
    )
    def test_of_a_message_that_waited_for_them(self, over: Run | None) -> None:
        assert with_slots_left(self.SLOTS, over) == self.SLOTS

    def test_not_after_an_executor_died_on_the_run(self) -> None:
        left = with_slots_left(self.SLOTS, run(RunStatus.RUNNING))
        assert left == replace(self.SLOTS, rate_slot=None, owner_slot=None)


@pytest.mark.parametrize("kind", RunKind)
def test_a_callback_counts_in_no_rate_of_its_job(kind: RunKind) -> None:
    asking = run(RunStatus.RUNNING, key=replace(KEY, kind=kind))
    counts = needed_slot(job(rate=Rate(1, 60)), asking) is not None
    assert counts == (kind is not RunKind.CALLBACK)


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_who_asks_once_starts_are_forgotten_finds_all_that_were_used(limit: int) -> None:
    """They came at once, so that they do not count any more at the first start to come."""
    gate, rate = GATE, Rate(limit, 86_400)
    for number in range(limit + 1):
        gate = reserve(gate, rate, f"claim-{number}", NOON)
    gate = forget(gate, gate.lines[0].line_id, "anew", NOON)
    for number in range(2):
        gate = reserve(gate, rate, f"later-{number}", NOON)
        assert gate.started_at is not None
        assert gate.started_at >= NOON + DAY
