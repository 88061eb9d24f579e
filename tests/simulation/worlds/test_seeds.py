"""Seeds as CI runs them: the first 50, and 50 that nobody has seen (more: `make simulate`). No
promise is broken, and everything has been broken."""

from collections.abc import Iterable

import pytest

from carillon.simulation.faults import Fault
from tests.simulation.worlds.fresh import first_of_commit
from tests.simulation.worlds.pool import simulated
from tests.simulation.worlds.report import figures_text, violation_text
from tests.simulation.worlds.runner import Figures

_COUNT = 50


def test_everything_is_broken_but_no_promise(capsys: pytest.CaptureFixture[str]) -> None:
    figures = _simulated(range(_COUNT))
    with capsys.disabled():
        print(f"\n{figures_text(figures)}")  # noqa: T201
    assert all(figures.faults[fault] for fault in Fault), figures.faults


def test_no_promise_is_broken_in_worlds_of_this_commit(capsys: pytest.CaptureFixture[str]) -> None:
    first = first_of_commit()
    with capsys.disabled():
        print(f"\nmake simulate SEEDS={_COUNT} FIRST={first}")  # noqa: T201
    _simulated(range(first, first + _COUNT))


def _simulated(seeds: Iterable[int]) -> Figures:
    """Simulate them; each violation is told with the line that replays its world."""
    figures, broken = Figures(), list[str]()
    for seed in seeds:
        result = simulated(seed)
        figures += result.figures
        broken += [violation_text(seed, violation) for violation in result.violations]
    assert not broken, "\n".join(broken)
    assert min(figures.occurrences, figures.acknowledged.total(), figures.faults.total()) > 100
    return figures
