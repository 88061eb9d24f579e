"""Seeds as CI runs them: the first 150, and 50 that nobody has seen (more: `make simulate`). No
promise is broken, and everything has been broken."""

from collections.abc import Iterable

import pytest

from carillon.simulation.faults import Fault
from tests.simulation.worlds.fresh import first_of_commit
from tests.simulation.worlds.pool import simulated
from tests.simulation.worlds.report import figures_text, violation_text
from tests.simulation.worlds.runner import Figures

_CHUNK = 50
_CHUNKS = 3
_FRESH_CHUNKS = 1

_seen: dict[int, Figures] = {}


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_no_promise_is_broken(chunk: int) -> None:
    _seen[chunk] = _keep_waiting(range(chunk * _CHUNK, (chunk + 1) * _CHUNK))


@pytest.mark.parametrize("chunk", range(_FRESH_CHUNKS))
def test_no_promise_is_broken_in_worlds_of_this_commit(
    chunk: int, capsys: pytest.CaptureFixture[str]
) -> None:
    first = first_of_commit() + chunk * _CHUNK
    with capsys.disabled():
        print(f"\nmake simulate SEEDS={_CHUNK} FIRST={first}")  # noqa: T201
    _keep_waiting(range(first, first + _CHUNK))


def _keep_waiting(seeds: Iterable[int]) -> Figures:
    """Simulate them; each violation is told with the line that replays its world."""
    figures, broken = Figures(), list[str]()
    for seed in seeds:
        result = simulated(seed)
        figures += result.figures
        broken += [violation_text(seed, violation) for violation in result.violations]
    assert not broken, "\n".join(broken)
    assert min(figures.occurrences, figures.acknowledged.total(), figures.faults.total()) > 100
    return figures


def test_every_kind_of_fault_has_struck(capsys: pytest.CaptureFixture[str]) -> None:
    if len(_seen) < _CHUNKS:
        pytest.skip("needs the figures of all chunks")
    figures = sum(_seen.values(), Figures())
    with capsys.disabled():
        print(f"\n{figures_text(figures)}")  # noqa: T201
    assert all(figures.faults[fault] > 3 for fault in Fault), figures.faults
