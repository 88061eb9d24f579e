"""The simulation itself: it repeats itself to the letter, it breaks everything, it sees bugs."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.run import Run
from carillon.simulation.faults import Fault
from carillon.stores.memory.runs import MemoryRunStore
from tests.simulation.__main__ import main
from tests.simulation.worlds.pool import results, simulated
from tests.simulation.worlds.runner import run
from tests.simulation.worlds.scenario import scenario_of
from tests.simulation.worlds.scenario_faults import OF_SHARES
from tests.simulation.worlds.scenario_parts import Chunks
from tests.simulation.worlds.shrinking import shrink

_REPLAYED = (3, 10)


def claim_unconditionally(store: MemoryRunStore, run: Run, over: Run | None) -> bool:
    """As `claim`, whatever is stored."""
    return store._put(run, store.get(run.key), allowed=True)


@pytest.mark.parametrize("seed", _REPLAYED)
def test_a_replay_in_another_process_is_the_same_to_the_byte(seed: int) -> None:
    first, second = (_replayed(seed, hash_seed) for hash_seed in ("1", "4711"))
    assert first == second
    assert first.count(b"\n") > 100


def test_another_seed_is_another_world() -> None:
    assert scenario_of(1).jobs != scenario_of(2).jobs
    assert scenario_of(1) == scenario_of(1)


def test_each_kind_of_fault_has_seeds_of_its_own_and_happens_in_storms() -> None:
    alone: Counter[str] = Counter(scenario_of(seed).profile for seed in range(300))
    assert {fault.value for fault in Fault if fault not in OF_SHARES} <= alone.keys()
    assert sum(count for profile, count in alone.items() if "storm" in profile) > 100
    assert alone["calm"] > 5


def test_a_fourth_of_the_seeds_have_ticks_that_share_their_minutes_and_each_fault_of_those() -> (
    None
):
    scenarios = [scenario_of(seed) for seed in range(300)]
    shared = [each for each in scenarios if each.options.tick_workers > 1]
    assert 50 < len(shared) < 100
    assert all(each.options.tick_workers <= each.options.segments for each in shared)
    for fault in OF_SHARES:
        assert 10 < sum(each.faults.of(fault) > 0 for each in shared) < len(shared)
        assert not any(each.faults.of(fault) for each in scenarios if each not in shared)


def test_chunks_are_mixed_by_seed_unless_it_is_said_which() -> None:
    drawn = [scenario_of(seed) for seed in range(200)]
    assert 20 < sum(each.switched_at is not None for each in drawn) < 60
    assert 40 < sum(each.options.chunks for each in drawn) < 100
    for seed in range(40):
        on, off, switch = (scenario_of(seed, each) for each in Chunks)
        assert (on.options.chunks, on.switched_at) == (True, None)
        assert (off.options.chunks, off.switched_at) == (False, None)
        assert switch.switched_at is not None
        assert switch.start < switch.switched_at < switch.calm_at
        assert drawn[seed] in (on, off, switch) or not drawn[seed].options.chunks
    assert {scenario_of(seed, Chunks.SWITCH).options.chunks for seed in range(40)} == {True, False}


@pytest.mark.parametrize("wanted", Chunks)
def test_a_world_has_the_chunks_that_are_wanted_and_says_how_to_see_it_again(
    wanted: Chunks, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--seeds", "2", "--first", "2", "--jobs", "1", "--chunks", wanted.value]) == 0
    told = capsys.readouterr().out
    assert f"make simulate SEEDS=2 FIRST=2 CHUNKS={wanted.value}" in told
    assert main(["--seed", "2", "--chunks", wanted.value]) == 0
    assert ("chunks.claim(" in capsys.readouterr().out) == (wanted is not Chunks.OFF)


def test_what_is_left_out_changes_nothing_of_the_rest() -> None:
    scenario = scenario_of(7)
    less = scenario.without(frozenset({scenario.jobs[0].name}))
    assert less.jobs == scenario.jobs[1:]
    assert less.requests == tuple(
        request for request in scenario.requests if request.job != scenario.jobs[0].name
    )


def test_processes_side_by_side_give_the_same_results_in_the_same_order() -> None:
    seeds = range(3)
    assert list(results(seeds, 2)) == [simulated(seed) for seed in seeds]


def test_a_claim_without_condition_is_found_and_shrinks_to_few_faults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryRunStore, "claim", claim_unconditionally)
    found = next(
        (seed, broken[0]) for seed in range(50) if (broken := run(scenario_of(seed)).violations)
    )
    seed, violation = found
    shrunk = shrink(scenario_of(seed), violation)
    assert shrunk.violation.invariant == violation.invariant
    assert len(shrunk.strikes) <= 4
    assert len(shrunk.scenario.jobs) == 1


def _replayed(seed: int, hash_seed: str) -> bytes:
    command = [sys.executable, "-m", "tests.simulation", "--seed", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_a_world_that_does_not_come_to_rest_is_ended_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.simulation.worlds.runner._MOST_STEPS", 200)
    found = run(scenario_of(7)).violations
    assert [each.invariant for each in found] == ["runaway"]
    assert "more than 200 steps by" in found[0].text


def test_a_world_that_floods_its_lanes_is_ended_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.worlds.runner._MOST_MESSAGES", 0)
    found = run(scenario_of(7)).violations
    assert [each.invariant for each in found] == ["runaway"]
    assert "messages in flight at" in found[0].text


def test_a_catch_up_has_the_time_that_it_takes_at_its_pace() -> None:
    """Seed 9988006788: the world was over before an outage was made up for."""
    scenario = scenario_of(50, Chunks.OFF)
    calm = scenario.without(frozenset({scenario.jobs[0].name}))
    slow = replace(
        calm,
        ticks_down=((calm.start + timedelta(minutes=2), calm.calm_at),),
        options=replace(calm.options, catch_up_per_minute=1),
        settle_minutes=3,
    )
    assert run(slow).violations == []


def test_ticks_that_begin_a_minute_in_vain_are_no_runaway() -> None:
    """Seed 9999006265: the queue took a part of each batch."""
    assert run(scenario_of(9999006265, Chunks.OFF)).violations == []
