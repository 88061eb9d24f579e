"""Whole-second delays, and the tenth of a second in which a tick sends."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.domain.message import Message
from carillon.domain.wheel.delaying import ROUNDED_UP_SECONDS, Alignment, whole_delay
from tests.contract.samples import a_message

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
ALIGNMENT = Alignment.of_tick(NOON, NOON + timedelta(seconds=52), segments=4)


def due(seconds: float, count: int = 1) -> list[Message]:
    """Messages due so long after noon."""
    at = NOON + timedelta(seconds=seconds)
    return [a_message("owner", due_at=at) for _ in range(count)]


@given(st.integers(0, 899), st.integers(0, 999_999))
def test_rounding_makes_nothing_later_than_a_tenth_of_a_second(second: int, us: int) -> None:
    """Nor is anything earlier than it would be rounded down."""
    asked = second + us / 1e6
    assert asked - 1 < whole_delay(asked) <= asked + ROUNDED_UP_SECONDS


@pytest.mark.parametrize(("fraction", "waits"), [
    (0.0, 0.0), (0.05, 0.0), (0.0999, 0.0), (0.1, 0.87), (0.5, 0.47), (0.9, 0.07), (0.97, 0.0),
    (0.999, 0.0),
])  # fmt: skip
def test_an_ordinary_minute_leaves_in_the_last_tenth_of_a_second(
    fraction: float, waits: float
) -> None:
    now = NOON + timedelta(seconds=fraction)
    seconds = ALIGNMENT.wait_seconds(due(90), now)
    assert seconds == pytest.approx(waits, abs=1e-6)
    sent_at = now + timedelta(seconds=seconds)
    early = 90 - whole_delay(due(90)[0].delay_seconds(sent_at)) - (sent_at - NOON).total_seconds()
    assert -ROUNDED_UP_SECONDS <= early <= 0.03 + 1e-6, "whoever receives it waits no longer"


@pytest.mark.parametrize(
    ("messages", "second"),
    [
        ([], 0.5),
        (due(90, 126), 0.5),  # a herd: 4 x 125 are the most
        ([*due(90), *due(3.4)], 0.5),
        ([*due(90), *due(-60)], 0.5),
        (due(90), 2.1),  # the tick has waited, or read, for long
    ],
)
def test_what_goes_at_once(messages: list[Message], second: float) -> None:
    assert ALIGNMENT.wait_seconds(messages, NOON + timedelta(seconds=second)) == 0.0
    assert ALIGNMENT.wait_seconds(due(90, 125), NOON + timedelta(seconds=0.5)) > 0.0


def test_a_tick_without_time_does_not_wait() -> None:
    hasty = Alignment.of_tick(NOON, NOON + timedelta(seconds=0.9), segments=1)
    assert hasty.wait_seconds(due(90), NOON + timedelta(seconds=0.5)) == 0.0
