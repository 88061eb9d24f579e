"""The delays of messages, and the time at which a tick sends: queues delay by whole seconds only.

A message that appears early makes an executor wait, which is paid for. So delays are rounded such
that a little lateness costs no second, and a tick that has time sends just before a whole second:
then the delays of what is due at whole seconds end just before that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor

from carillon.domain.chunks.message import Order
from carillon.domain.message import LONGEST_DELAY_SECONDS

ROUNDED_UP_SECONDS = 0.1
"""A delay is rounded up by less than this: a message sent this late after a second starts that
late."""
_SENT_AT_FRACTION = 0.97
"""A message sent this much after the end of a second is that late, below a tenth."""
_SOON = timedelta(seconds=3)
"""A message that is due within this is sent at once."""
_MOST_MESSAGES = 500
"""Of one tick: more are not sent within a tenth of a second."""
_ALIGNING = timedelta(seconds=2)
"""A tick may wait this long from its beginning: it reads its segments first."""


def whole_delay(seconds: float) -> int:
    """The whole seconds that a queue is to delay a message which may start after `seconds`."""
    return floor(seconds + ROUNDED_UP_SECONDS)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The number of messages that one segment may keep waiting for the last tenth of a second, and
    the end of the wait. The visits of a tick wait side by side, for the same tenth."""

    most_messages: int
    until: datetime

    @classmethod
    def of_tick(cls, began_at: datetime, deadline: datetime, segments: int) -> "Alignment":
        """The share of each of the segments that one tick visits."""
        return cls(_MOST_MESSAGES // max(1, segments), min(began_at + _ALIGNING, deadline))

    def wait_seconds(self, messages: Sequence[Order], now: datetime) -> float:
        """The wait before these are sent, less than a second. None where there are many, where one
        is due soon, or where the time is over."""
        if not 0 < len(messages) <= self.most_messages:
            return 0.0
        if min(message.starts_at for message in messages) - now <= _SOON:
            return 0.0
        fraction = now.microsecond / 1e6
        if fraction >= _SENT_AT_FRACTION or fraction < ROUNDED_UP_SECONDS:
            return 0.0
        seconds = _SENT_AT_FRACTION - fraction
        return seconds if now + timedelta(seconds=seconds) <= self.until else 0.0


def check_delays(messages: Sequence[Order], delays: Sequence[float]) -> None:
    """Raises ValueError unless each message has one delay from 0 to 900 seconds."""
    if len(messages) != len(delays):
        raise ValueError(f"{len(messages)} messages with {len(delays)} delays")
    for delay in delays:
        if not 0 <= delay <= LONGEST_DELAY_SECONDS:
            raise ValueError(f"a delay of {delay} s is not between 0 and {LONGEST_DELAY_SECONDS}")
