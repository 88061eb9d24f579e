"""An owner's limit of concurrent runs: pure decisions."""

from datetime import timedelta

from carillon.domain.admission.limits import are_used_up, wait_for_permit
from carillon.domain.admission.state import PERMITS_ROW, AdmissionRow, PermitHolder
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
