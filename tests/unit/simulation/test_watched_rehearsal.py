"""A rehearsal that somebody watches: in step with the wall, and ended before its end."""

from datetime import datetime, timedelta

import pytest

from carillon.cli.commands.simulation.live import fast_forward, replay
from carillon.clock import utc_text
from carillon.simulation.run import Plan, Simulation
from tests.support.manifests import workload_of
from tests.unit.simulation.test_rehearsal import HOUR, MIDNIGHT, job


def test_a_replay_keeps_pace_with_the_wall() -> None:
    simulation = Simulation(workload_of([job()]), Plan(MIDNIGHT, MIDNIGHT + HOUR))
    local_time = 1000.0
    seen: list[datetime] = []

    def sleep(seconds: float) -> None:
        nonlocal local_time
        local_time += seconds
        seen.append(simulation.now)

    replay(simulation, 60.0, lambda: True, lambda: local_time, sleep)

    assert seen[100] - seen[50] == timedelta(seconds=50 * 0.1 * 60)
    assert local_time == pytest.approx(1060, abs=0.5)
    assert simulation.summary()["fires"] == 12


@pytest.mark.parametrize("speed", [1e300, float("inf")])
def test_no_speed_is_too_great(speed: float) -> None:
    simulation = Simulation(workload_of([job()]), Plan(MIDNIGHT, MIDNIGHT + HOUR))
    local_time = iter(range(1000))

    replay(simulation, speed, lambda: True, lambda: float(next(local_time)), lambda seconds: None)

    assert simulation.summary()["fires"] == 12


def test_the_end_does_not_wait_once_nobody_wants_it_to() -> None:
    down = (MIDNIGHT, MIDNIGHT + 2 * HOUR)
    simulation = Simulation(
        workload_of([job()]), Plan(MIDNIGHT, MIDNIGHT + HOUR, ticks_down=[down])
    )

    fast_forward(simulation, lambda: simulation.now < MIDNIGHT + HOUR + timedelta(minutes=3))

    assert simulation.now <= MIDNIGHT + HOUR + timedelta(minutes=4)


def test_an_end_before_the_end_tells_what_was_so_far() -> None:
    simulation = Simulation(workload_of([job()]), Plan(MIDNIGHT, MIDNIGHT + 24 * HOUR))

    fast_forward(simulation, lambda: simulation.now < MIDNIGHT + HOUR)

    summary = simulation.summary()
    assert 12 <= summary["fires"] <= 13
    assert (summary["to"], summary["due"]) == (utc_text(simulation.now), None)
