"""How long messages are delayed, and when a tick sends them: queues delay by whole seconds only.

A message that appears early is waited for inside of an executor, which is paid for. So the delay is
rounded such that a little lateness costs no second, and a tick that has time sends just before a
whole second: then the delays of what is due at whole seconds end just before that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor

from carillon.domain.message import Message

ROUNDED_UP_SECONDS = 0.1
"""A delay is rounded up by less than this: what is sent so late after a second is so late."""
_SENT_AT_FRACTION = 0.97
"""Of a second: what is sent a little later than its end is late by that, below a tenth."""
_SOON = timedelta(seconds=3)
"""What is due within this is sent at once."""
_MOST_MESSAGES = 500
"""Of one tick: more are not sent within a tenth of a second."""
_ALIGNING = timedelta(seconds=2)
"""From its begin on a tick may wait so long: it reads its segments first."""


def whole_delay(seconds: float) -> int:
    """The whole seconds that a queue is to delay a message which may start after `seconds`."""
    return floor(seconds + ROUNDED_UP_SECONDS)


@dataclass(frozen=True, slots=True)
class Alignment:
    """How many messages one segment may keep waiting for the last tenth of a second, and until
    when. The visits of a tick wait side by side, for the same tenth."""

    most_messages: int
    until: datetime

    @classmethod
    def of_tick(cls, began_at: datetime, deadline: datetime, segments: int) -> "Alignment":
        """For each of so many segments that one tick visits."""
        return cls(_MOST_MESSAGES // max(1, segments), min(began_at + _ALIGNING, deadline))

    def wait_seconds(self, messages: Sequence[Message], now: datetime) -> float:
        """How long to wait before these are sent, less than a second: not at all where there are
        many, where one is due soon, or where the time is over."""
        if not 0 < len(messages) <= self.most_messages:
            return 0.0
        if min(message.starts_at for message in messages) - now <= _SOON:
            return 0.0
        fraction = now.microsecond / 1e6
        if fraction >= _SENT_AT_FRACTION or fraction < ROUNDED_UP_SECONDS:
            return 0.0
        seconds = _SENT_AT_FRACTION - fraction
        return seconds if now + timedelta(seconds=seconds) <= self.until else 0.0
