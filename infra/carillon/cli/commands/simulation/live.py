"""Playing a simulation, at a speed that people can watch, or as fast as possible."""

import time
from collections.abc import Callable
from datetime import timedelta

from carillon.simulation.run import Simulation

_FRAME_SECONDS = 0.1
_SLICE = timedelta(minutes=1)


def fast_forward(simulation: Simulation, go_on: Callable[[], bool]) -> None:
    """Go to the end of the plan; `go_on` is asked at each virtual minute."""
    while not simulation.is_over and go_on():
        simulation.advance(simulation.now + _SLICE)
    if simulation.is_over and go_on():
        simulation.settle(go_on)


def replay(
    simulation: Simulation,
    speed: float,
    go_on: Callable[[], bool],
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Go to the end of the plan at `speed` virtual seconds a second; `go_on` is asked each frame.

    What cannot be simulated as fast as that takes longer.
    """
    began, from_at = now(), simulation.now
    ceil_second = (simulation.plan.until_at - from_at).total_seconds()
    while not simulation.is_over and go_on():
        sleep(_FRAME_SECONDS)
        passed_seconds = min((now() - began) * speed, ceil_second)
        simulation.advance(from_at + timedelta(seconds=passed_seconds))
    if simulation.is_over and go_on():
        simulation.settle(go_on)
