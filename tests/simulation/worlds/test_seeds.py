"""The first 300 seeds, as CI runs them: no promise is broken, and everything has been broken."""

import pytest

from shared.simulation.faults import Fault
from tests.simulation.worlds.pool import simulated
from tests.simulation.worlds.report import figures_text, violation_text
from tests.simulation.worlds.runner import Figures

_CHUNK = 50
_CHUNKS = 6

_seen: dict[int, Figures] = {}


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_no_promise_is_broken(chunk: int, capsys: pytest.CaptureFixture[str]) -> None:
    figures, broken = Figures(), list[str]()
    for seed in range(chunk * _CHUNK, (chunk + 1) * _CHUNK):
        result = simulated(seed)
        figures += result.figures
        broken += [violation_text(seed, violation) for violation in result.violations]
    _seen[chunk] = figures
    assert not broken, "\n".join(broken)
    assert min(figures.occurrences, figures.acknowledged.total(), figures.faults.total()) > 100


def test_every_kind_of_fault_has_struck(capsys: pytest.CaptureFixture[str]) -> None:
    if len(_seen) < _CHUNKS:
        pytest.skip("needs the figures of all chunks")
    figures = sum(_seen.values(), Figures())
    with capsys.disabled():
        print(f"\n{figures_text(figures)}")  # noqa: T201
    assert all(figures.faults[fault] > 10 for fault in Fault), figures.faults
