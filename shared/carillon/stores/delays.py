"""What every lane queue asks of delays."""

from collections.abc import Sequence

from carillon.domain.message import LONGEST_DELAY_SECONDS, Message


def check_delays(messages: Sequence[Message], delays: Sequence[float]) -> None:
    """Raises ValueError unless each message has one delay from 0 to 900 seconds."""
    if len(messages) != len(delays):
        raise ValueError(f"{len(messages)} messages with {len(delays)} delays")
    for delay in delays:
        if not 0 <= delay <= LONGEST_DELAY_SECONDS:
            raise ValueError(f"a delay of {delay} s is not between 0 and {LONGEST_DELAY_SECONDS}")
