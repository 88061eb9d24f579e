"""The worlds that once broke a promise, as they were drawn then: each holds now."""

from collections.abc import Iterator

import pytest

from tests.simulation.worlds.report import violation_text
from tests.simulation.worlds.runner import run
from tests.simulation.worlds.scenario import scenario_of
from tests.simulation.worlds.scenario_file import FOUND, dump, load, world_of
from tests.simulation.worlds.scenario_parts import Chunks

_TOO_LONG = {52002278, 77002749}
"""They hold, after 88 and 20 s of CPU: `make simulate SEED=52002278`."""


def _kept() -> Iterator[tuple[int, Chunks | None]]:
    for path in sorted(FOUND.glob("*.json")):
        seed, _, wanted = path.stem.partition("-")
        yield int(seed), Chunks(wanted) if wanted else None


@pytest.mark.parametrize(("seed", "wanted"), [each for each in _kept() if each[0] not in _TOO_LONG])
def test_a_world_that_was_broken_holds(seed: int, wanted: Chunks | None) -> None:
    found = run(world_of(seed, wanted)).violations
    assert not found, "\n".join(violation_text(seed, each, wanted) for each in found)


def test_a_scenario_is_read_as_it_was_written() -> None:
    for seed in range(40):
        assert load(dump(scenario_of(seed))) == scenario_of(seed)


def test_a_kept_world_goes_before_one_that_is_drawn() -> None:
    assert all(world_of(*each).seed == each[0] for each in _kept())
    assert world_of(26, Chunks.SWITCH).switched_at is not None
    assert world_of(26) == scenario_of(26)
