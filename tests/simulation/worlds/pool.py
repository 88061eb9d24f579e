"""Seeds after seeds, side by side: a module of its own, since new processes import it by name."""

import gc
import traceback
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

from carillon.audit.evidence import Violation
from carillon.garbage import spare_what_is_loaded
from tests.simulation.worlds.runner import Figures, run
from tests.simulation.worlds.scenario_file import world_of
from tests.simulation.worlds.scenario_parts import Chunks

_SEEDS_OF_A_TASK = 10
_MOST_TASKS = 20
"""Then a process is replaced: with its caches grows the time that each collection takes."""


class Result(NamedTuple):
    """What came of a seed."""

    seed: int
    profile: str
    figures: Figures
    violations: Sequence[Violation]


def simulated(seed: int, wanted: Chunks | None = None) -> Result:
    """Run a seed; whatever goes wrong in it is a violation, too."""
    scenario = world_of(seed, wanted)
    try:
        outcome = run(scenario)
    except Exception:
        broken = Violation("harness", "", traceback.format_exc())
        return Result(seed, scenario.profile, Figures(seeds=1), (broken,))
    finally:
        gc.collect()
    return Result(seed, scenario.profile, outcome.figures, tuple(outcome.violations))


def results(seeds: Sequence[int], processes: int, wanted: Chunks | None = None) -> Iterator[Result]:
    """One for each seed, in their order however the processes take turns."""
    simulate = partial(simulated, wanted=wanted)
    if processes <= 1:
        _collect_after_each_seed()
        yield from map(simulate, seeds)
        return
    spawn = get_context("spawn")
    with spawn.Pool(processes, _collect_after_each_seed, maxtasksperchild=_MOST_TASKS) as pool:
        yield from pool.imap(simulate, seeds, chunksize=_SEEDS_OF_A_TASK)


def _collect_after_each_seed() -> None:
    """A world's garbage is less than 20 MB; to collect it meanwhile takes a fifth of the CPU."""
    spare_what_is_loaded()
    gc.disable()
