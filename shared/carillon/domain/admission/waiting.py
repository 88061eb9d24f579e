"""A run that a policy holds back: the message that comes again for it, and when."""

from dataclasses import replace
from datetime import datetime

from carillon.clock import ceil_second, seconds_after
from carillon.domain.decisions import Wait
from carillon.domain.message import Message

LONGEST_POLL_SECONDS = 30
"""Between two looks at something that may end at any time."""
_FIRST_FOR_A_SHARE_SECONDS, _LONGEST_FOR_A_SHARE_SECONDS = 32, 300
"""Between two looks at a share that is taken: whoever overloads his share has many that look."""


def wait_until(message: Message, at: datetime, reason: str) -> Wait:
    """Wait for an instant that is known, in whole seconds; never less."""
    return _wait(message, ceil_second(at), reason)


def poll(
    message: Message,
    now: datetime,
    reason: str,
    fraction: float,
    most_seconds: int = LONGEST_POLL_SECONDS,
) -> Wait:
    """Look again after up to 2, 2, 4, 8 ... 30 seconds, or `most_seconds`, half of it at least,
    the longer the more often the message has waited: `fraction` in [0, 1) says how much, so that
    many who wait do not all come at once."""
    growing_seconds = 2 ** min(max(message.waits, 1), 10)
    longest_seconds = min(LONGEST_POLL_SECONDS, most_seconds, growing_seconds)
    return _wait(message, seconds_after(now, longest_seconds * (1 + fraction) / 2), reason)


def wait_for_share(message: Message, now: datetime, reason: str, fraction: float) -> Wait:
    """Look again at a run whose owner's share is taken: the longer, the more often it has waited.
    `fraction` in [0, 1) is the jitter."""
    growing_seconds = _FIRST_FOR_A_SHARE_SECONDS * 2 ** min(message.waits, 10)
    longest_seconds = min(_LONGEST_FOR_A_SHARE_SECONDS, growing_seconds)
    return _wait(message, seconds_after(now, longest_seconds * (1 + fraction) / 2), reason)


def _wait(message: Message, at: datetime, reason: str) -> Wait:
    """What the message stood for besides its own occurrence is recorded by now."""
    again = replace(message, wait_until=at, slot_key="", missed=None)
    return Wait(again, reason)
