"""A run that a policy holds back: the message that comes again for it, and when."""

from dataclasses import replace
from datetime import datetime, timedelta

from shared.domain.decisions import Wait
from shared.domain.message import Message
from shared.domain.running import ceil_second

LONGEST_POLL_SECONDS = 30
"""Between two looks at something that may end at any time."""


def wait_until(message: Message, at: datetime, reason: str, *, rate_slot: bool) -> Wait:
    """Wait until `at`, in whole seconds; never before it.

    What its message stood for besides its own occurrence is recorded by now.
    """
    again = replace(
        message,
        wait_until=ceil_second(at),
        waits=message.waits + 1,
        has_rate_slot=rate_slot,
        slot_key="",
        missed=None,
    )
    return Wait(again, reason)


def poll(message: Message, now: datetime, reason: str, fraction: float = 0.0) -> Wait:
    """Look again in 1, 2, 4 ... 30 seconds; `fraction` in [0, 1) of that comes on top, so that
    many who wait do not all come at once."""
    seconds = min(LONGEST_POLL_SECONDS, 2 ** min(message.waits, 10)) * (1 + fraction)
    at = now + timedelta(seconds=seconds)
    return wait_until(message, at, reason, rate_slot=message.has_rate_slot)
