"""How far this machine's clock is from DynamoDB's, by the Date header of its answers."""

from email.utils import parsedate_to_datetime
from typing import Any

from carillon.clock import Clock

_HALF_A_SECOND = 0.5
"""The header has whole seconds: the middle of its second is the best guess (RFC 9110, 6.6.1)."""


class SkewMeter:
    """Keeps what the last answer told; exact to about half a second and the answer's way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: float | None = None

    def seconds(self) -> float | None:
        """This clock minus DynamoDB's; None before the first answer."""
        return self._seconds

    def observe(self, parsed: dict[str, Any], **_: object) -> None:
        """Take an answer, as botocore's event `after-call` gives it."""
        date = parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date is not None:
            elapsed = self._clock.now() - parsedate_to_datetime(date)
            self._seconds = elapsed.total_seconds() - _HALF_A_SECOND
