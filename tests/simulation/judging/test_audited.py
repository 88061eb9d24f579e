"""Worlds are audited as operators audit a deployment."""

import pytest

from carillon.stores.memory.wheel import MemoryWheelStore
from tests.simulation.worlds.runner import run
from tests.simulation.worlds.scenario import scenario_of


def test_a_job_that_no_tick_would_find_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that was due has ended well, and nothing fires any more."""
    world = scenario_of(1)
    assert run(world).violations == []
    monkeypatch.setattr(MemoryWheelStore, "holds", lambda *_: False)
    found = run(world).violations
    assert {each.invariant for each in found} == {"audit"}
    assert "is indexed nowhere" in found[0].text
