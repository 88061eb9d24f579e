"""An owner's limit of concurrent runs: pure decisions."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.admission.limits import are_used_up, hold_back, wait_for_permit
from carillon.domain.admission.state import PERMITS_ROW, AdmissionRow, PermitHolder, QueuedRun
from tests.unit.domain.samples import NOON, message

MINUTE = timedelta(minutes=1)
GATE = AdmissionRow(
    "owner",
    PERMITS_ROW,
    1,
    NOON + 5 * MINUTE,
    holders=(PermitHolder("one", NOON + MINUTE), PermitHolder("two", NOON + 2 * MINUTE)),
)


def test_nobody_holds_a_permit_of_a_gate_that_is_not_there() -> None:
    assert not are_used_up(None, 1, NOON)


def test_permits_are_used_up_from_the_limit_on() -> None:
    assert [are_used_up(GATE, limit, NOON) for limit in (1, 2, 3)] == [True, True, False]


def test_an_executor_that_died_frees_its_permit_with_its_lease() -> None:
    ends = [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    assert [are_used_up(GATE, 2, now) for now in ends] == [True, False, False]
    assert [are_used_up(GATE, 1, now) for now in ends] == [True, True, False]


def test_a_run_that_waits_says_why_and_looks_again_ever_later() -> None:
    waits = [wait_for_permit(message(waits=waits), 5, NOON, 0.0) for waits in (0, 1, 9)]
    seconds = [((each.message.wait_until or NOON) - NOON).total_seconds() for each in waits]
    assert seconds == [16, 32, 150]
    assert {each.reason for each in waits} == {"5 runs of its owner last longer than 2 s"}


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
    held = hold_back(replace(GATE, turns=turns), limit, waiting, NOON, 0.0)
    assert (held is not None) is answer


@pytest.mark.parametrize(
    ("waits", "behind_its_row_seconds", "seconds"),
    [(0, 0, 16), (1, 0, 64), (1, 100, 200), (1, 500, 300)],
)
def test_what_is_held_back_comes_ever_later(
    waits: int, behind_its_row_seconds: int, seconds: int
) -> None:
    at = NOON - timedelta(seconds=behind_its_row_seconds)
    waiting = replace(message(waits=waits), due_at=at, wait_until=at if waits else None)
    ahead = tuple(QueuedRun(name, at - MINUTE, NOON + MINUTE) for name in "ab")
    held = hold_back(replace(GATE, turns=ahead), 2, waiting, NOON, 0.0)
    assert held is not None
    assert held.at == NOON + timedelta(seconds=seconds)


def test_what_has_no_row_yet_is_held_back_once() -> None:
    assert hold_back(GATE, 2, message(), NOON, 0.0) is not None
    assert hold_back(GATE, 2, replace(message(), wait_until=NOON), NOON, 0.0) is None
    assert hold_back(None, 2, message(), NOON, 0.0) is None, "nobody has a permit"
