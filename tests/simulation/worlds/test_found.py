"""The worlds that once broke a promise, as they were drawn then: each holds now."""

import pytest

from tests.simulation.worlds.report import violation_text
from tests.simulation.worlds.runner import run
from tests.simulation.worlds.scenario import scenario_of
from tests.simulation.worlds.scenario_file import FOUND, dump, load, world_of

_TOO_LONG = {52002278, 77002749}
"""They hold, after 88 and 20 s of CPU: `make simulate SEED=52002278`."""
_SEEDS = sorted(int(path.stem) for path in FOUND.glob("*.json"))


@pytest.mark.parametrize("seed", [seed for seed in _SEEDS if seed not in _TOO_LONG])
def test_a_world_that_was_broken_holds(seed: int) -> None:
    found = run(world_of(seed)).violations
    assert not found, "\n".join(violation_text(seed, each) for each in found)


def test_a_scenario_is_read_as_it_was_written() -> None:
    for seed in range(40):
        assert load(dump(scenario_of(seed))) == scenario_of(seed)


def test_a_kept_world_goes_before_one_that_is_drawn() -> None:
    assert all(world_of(seed).seed == seed for seed in _SEEDS)
    assert world_of(1) == scenario_of(1)
