"""LaneQueue."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from carillon.domain.calendar import CalendarUse
from carillon.domain.job import Lane
from carillon.domain.message import Message, Missed
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind
from carillon.schedules import CalendarRule, Schedule, parse_schedule
from tests.contract.kit import Kit, contend
from tests.contract.samples import (
    FIRE_AT,
    a_bounded_schedule,
    a_combined_schedule,
    a_key,
    a_message,
)


def _numbered(owner: str, count: int, lane: Lane = Lane.NORMAL) -> list[Message]:
    keys = [a_key(owner, FIRE_AT + timedelta(seconds=number)) for number in range(count)]
    return [a_message(owner, lane, key=key) for key in keys]


def _unordered(messages: list[Message]) -> set[Message]:
    assert len(set(messages)) == len(messages)
    return set(messages)


def test_nothing_to_send_is_nothing_sent(kit: Kit) -> None:
    kit.queue.send([], [])
    assert [kit.receive(lane) for lane in Lane] == [[]] * len(Lane)


def test_a_message_comes_back_whole(kit: Kit) -> None:
    owner = kit.new_owner()
    message = a_message(
        owner,
        Lane.HIGH,
        key=a_key(owner, kind=RunKind.MANUAL, request_id="ü", redrive=1),
        attempt=3,
        slot_key="h17",
        missed=Missed(
            FIRE_AT - timedelta(hours=1),
            CatchUp.LATEST,
            parse_schedule("every 25m offset 2m", "Europe/Riga", FIRE_AT - timedelta(days=1)),
        ),
    )
    kit.queue.send([message], [0])
    assert kit.receive(Lane.HIGH) == [message]


@pytest.mark.parametrize("schedule", [a_bounded_schedule, a_combined_schedule])
def test_what_was_missed_comes_back_whole(kit: Kit, schedule: Callable[[], Schedule]) -> None:
    missed = Missed(
        FIRE_AT - timedelta(hours=1),
        CatchUp.SKIP,
        schedule(),
        CalendarUse("Feiertage/ü", CalendarRule.PREVIOUS_BUSINESS_DAY),
    )
    message = a_message(kit.new_owner(), missed=missed)
    kit.queue.send([message], [0])
    assert kit.receive(Lane.NORMAL) == [message]


def test_a_message_knows_its_nominal_and_its_effective_time(kit: Kit) -> None:
    due_at = FIRE_AT + timedelta(seconds=299)
    message = a_message(kit.new_owner(), due_at=due_at, after_finish=True)
    kit.queue.send([message], [0])
    (received,) = kit.receive(Lane.NORMAL)
    assert (received.key.fire_at, received.due_at, received.after_finish) == (FIRE_AT, due_at, True)


def test_each_message_goes_to_its_lane(kit: Kit) -> None:
    owner = kit.new_owner()
    sent = {lane: _numbered(owner, 2, lane) for lane in Lane}
    mixed = [message for pair in zip(*sent.values(), strict=True) for message in pair]
    kit.queue.send(mixed, [0] * len(mixed))
    assert {lane: _unordered(kit.receive(lane)) for lane in Lane} == {
        lane: set(messages) for lane, messages in sent.items()
    }


def test_more_than_a_request_can_take(kit: Kit) -> None:
    messages = _numbered(kit.new_owner(), 47)
    kit.queue.send(messages, [0] * 47)
    assert _unordered(kit.receive(Lane.NORMAL)) == set(messages)


def test_a_message_is_hidden_until_its_delay_is_over(kit: Kit) -> None:
    now, soon, later = _numbered(kit.new_owner(), 3)
    kit.queue.send([now, soon, later], [0, 2, 4])
    assert kit.receive(Lane.NORMAL) == [now]
    kit.wait(2.1)
    assert kit.receive(Lane.NORMAL) == [soon]
    kit.wait(2.1)
    assert kit.receive(Lane.NORMAL) == [later]


@pytest.mark.parametrize("delay", [-1, 901])
def test_a_delay_that_no_queue_takes_is_refused_before_anything_is_sent(
    kit: Kit, delay: int
) -> None:
    with pytest.raises(ValueError, match="delay"):
        kit.queue.send(_numbered(kit.new_owner(), 2), [0, delay])
    assert kit.receive(Lane.NORMAL) == []


def test_each_message_has_one_delay(kit: Kit) -> None:
    with pytest.raises(ValueError, match="2 messages with 1 delays"):
        kit.queue.send(_numbered(kit.new_owner(), 2), [0])


def test_many_send_at_once(threaded_kit: Kit) -> None:
    messages = _numbered(threaded_kit.new_owner(), 16 * 12)
    contend(lambda n: threaded_kit.queue.send(messages[n * 12 : n * 12 + 12], [0] * 12))
    assert _unordered(threaded_kit.receive(Lane.NORMAL)) == set(messages)
