"""Playing a simulation, at a speed that people can watch, or as fast as possible."""

import time
from collections.abc import Callable
from datetime import timedelta

from carillon.simulation.run import Rehearsal

_FRAME_SECONDS = 0.1
_SLICE = timedelta(minutes=1)


def hurry(rehearsal: Rehearsal, go_on: Callable[[], bool]) -> None:
    """Go to the end of the plan; `go_on` is asked at each virtual minute."""
    while not rehearsal.is_over and go_on():
        rehearsal.advance(rehearsal.now + _SLICE)
    if rehearsal.is_over and go_on():
        rehearsal.settle(go_on)


def replay(
    rehearsal: Rehearsal,
    speed: float,
    go_on: Callable[[], bool],
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Go to the end of the plan at `speed` virtual seconds a second; `go_on` is asked each frame.

    What cannot be simulated as fast as that takes longer.
    """
    began, from_at = now(), rehearsal.now
    ceil_second = (rehearsal.plan.until_at - from_at).total_seconds()
    while not rehearsal.is_over and go_on():
        sleep(_FRAME_SECONDS)
        passed_seconds = min((now() - began) * speed, ceil_second)
        rehearsal.advance(from_at + timedelta(seconds=passed_seconds))
    if rehearsal.is_over and go_on():
        rehearsal.settle(go_on)
