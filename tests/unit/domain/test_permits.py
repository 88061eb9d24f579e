"""An owner's limit of concurrent runs: pure decisions."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from carillon.domain.admission.limits import Places, hold_back, wait_for_share
from carillon.domain.admission.state import PERMITS_ROW, AdmissionRow, PermitHolder, QueuedRun
from carillon.domain.message import Message
from tests.unit.domain.samples import NOON, message

MINUTE = timedelta(minutes=1)
GATE = AdmissionRow(
    "owner",
    PERMITS_ROW,
    1,
    NOON + 5 * MINUTE,
    holders=(PermitHolder("one", NOON + MINUTE), PermitHolder("two", NOON + 2 * MINUTE)),
)


def places(limit: int) -> Places:
    return Places(limit, "its owner's permits", is_share=True)


def are_used_up(gate: AdmissionRow | None, limit: int, now: datetime) -> bool:
    return wait_for_share(gate, places(limit), message(), now, 0.0) is not None


def test_nobody_holds_a_permit_of_a_gate_that_is_not_there() -> None:
    assert not are_used_up(None, 1, NOON)


def test_permits_are_used_up_from_the_limit_on() -> None:
    assert [are_used_up(GATE, limit, NOON) for limit in (1, 2, 3)] == [True, True, False]


def test_an_executor_that_died_frees_its_permit_with_its_lease() -> None:
    ends = [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    assert [are_used_up(GATE, 2, now) for now in ends] == [True, False, False]
    assert [are_used_up(GATE, 1, now) for now in ends] == [True, True, False]


@pytest.mark.parametrize(
    ("first_waited_seconds", "seconds"),
    [(None, (16, 32)), (60, (76, 92)), (100, (116, 132)), (600, (150, 300))],
)
def test_a_run_that_waits_says_why_and_checks_again_after_the_wait_of_the_first_in_turn(
    first_waited_seconds: int | None, seconds: tuple[int, int]
) -> None:
    first, second = (QueuedRun(each, NOON - MINUTE / 2, NOON + MINUTE) for each in "ab")
    if first_waited_seconds is not None:
        first = replace(first, due_at=NOON - timedelta(seconds=first_waited_seconds))
    over = QueuedRun("gone", NOON - 20 * MINUTE, NOON)
    turns = (over,) if first_waited_seconds is None else (second, first, over)
    for fraction, expected in zip((0.0, 1.0), seconds, strict=True):
        wait = wait_for_share(replace(GATE, turns=turns), places(2), message(), NOON, fraction)
        assert wait is not None
        assert wait.message.wait_until == NOON + timedelta(seconds=expected)
        assert wait.reason == "waits for its owner's permits, held by 2 runs"


@pytest.mark.parametrize(
    ("limit", "waited_seconds", "behind_its_row_seconds", "ahead", "answer"),
    [
        (2, 20, 0, 0, True),
        (3, 20, 0, 0, False),
        (2, 40, 0, 0, False),
        (2, 40, 0, 1, False),
        (2, 40, 0, 2, True),
        (2, 1000, 900, 2, True),
        (2, 1000, 901, 2, False),
    ],
    ids=[
        "used up",
        "one is free",
        "its turn has come",
        "or is the next",
        "two are ahead",
        "its row is as good as right",
        "its row says what is long past",
    ],
)
def test_what_would_wait_on_is_held_back(
    limit: int, waited_seconds: int, behind_its_row_seconds: int, ahead: int, answer: bool
) -> None:
    due_at = NOON - timedelta(seconds=waited_seconds)
    waiting = replace(
        message(waits=1), due_at=due_at, wait_until=NOON - timedelta(seconds=behind_its_row_seconds)
    )
    turns = tuple(QueuedRun(f"r{n}", due_at - MINUTE, NOON + MINUTE) for n in range(ahead))
    held = hold_back(replace(GATE, turns=turns), places(limit), waiting, NOON, 0.0)
    assert (held is not None) is answer


def test_what_has_no_row_yet_is_held_back_once_and_only_if_it_is_on_time() -> None:
    def is_held_back(new: Message, gate: AdmissionRow | None = GATE) -> bool:
        return hold_back(gate, places(2), new, NOON, 0.0) is not None

    new = message(due_at=NOON - timedelta(seconds=29))
    assert is_held_back(new)
    assert not is_held_back(new, None), "nobody has a permit"
    assert not is_held_back(replace(new, wait_until=NOON))
    late = replace(new, due_at=NOON - timedelta(seconds=30))
    assert not is_held_back(late), "an executor may have died on it"
