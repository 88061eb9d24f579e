"""Mutants: planted bugs, each of which the simulation must find.

`python -m tests.simulation.mutants [--most 300] [--jobs N] [names ...]`
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from os import cpu_count

from carillon.audit.evidence import Violation
from carillon.garbage import spare_what_is_loaded
from tests.simulation.mutants.activity import FEED
from tests.simulation.mutants.chunk_steps import CHUNK_STEPS
from tests.simulation.mutants.chunks import CHUNKS
from tests.simulation.mutants.completions import COMPLETIONS
from tests.simulation.mutants.handing_over import HANDING_OVER
from tests.simulation.mutants.indexing import GENERATIONS, GONE
from tests.simulation.mutants.kit import Mutant, swapped
from tests.simulation.mutants.notices import NOTICES
from tests.simulation.mutants.owners import ISOLATION, OWNERS_APART
from tests.simulation.mutants.packing import PACKING
from tests.simulation.mutants.pauses import TIMED_PAUSES
from tests.simulation.mutants.policies import LATE, RATES, SLOW_LANE
from tests.simulation.mutants.receptions import RECEPTIONS
from tests.simulation.mutants.results import RESULTS
from tests.simulation.mutants.runs import RUNS
from tests.simulation.mutants.stopping import STOPS
from tests.simulation.mutants.successors import SUCCESSORS
from tests.simulation.mutants.ticks import TICKS
from tests.simulation.worlds.runner import Outcome, run
from tests.simulation.worlds.scenario import scenario_of

MUTANTS: tuple[Mutant, ...] = (
    *FEED,
    *GENERATIONS,
    *TICKS,
    *RUNS,
    *STOPS,
    *RECEPTIONS,
    *ISOLATION,
    *SLOW_LANE,
    *LATE,
    *RATES,
    *GONE,
    *HANDING_OVER,
    *TIMED_PAUSES,
    *OWNERS_APART,
    *SUCCESSORS,
    *COMPLETIONS,
    *RESULTS,
    *NOTICES,
    *CHUNKS,
    *CHUNK_STEPS,
    *PACKING,
)
MOST_SEEDS = 300
_SETTLE_MINUTES = 60


@dataclass(frozen=True, slots=True)
class Hunt:
    """How a mutant was hunted: `violation` is what gave it away at `seed`, None if nothing did."""

    name: str
    seeds: int
    violation: Violation | None
    seed: int
    seconds: float


def outcome_of(mutant: Mutant, seed: int, *, planted: bool) -> Outcome:
    """A seed's scenario, shaped for the mutant, run with its bug or without."""
    scenario = mutant.reshape(replace(scenario_of(seed), settle_minutes=_SETTLE_MINUTES))
    with swapped((*mutant.world, *(mutant.swaps if planted else ()))):
        return run(scenario)


def hunt(mutant: Mutant, most: int = MOST_SEEDS, first: int = 0) -> Hunt:
    """Run seed after seed until a violation appears that the code without the bug does not have.

    Only one of an invariant that the sound code keeps at this seed counts.
    """
    began = time.perf_counter()
    for seed in range(first, first + most):
        found = outcome_of(mutant, seed, planted=True).violations
        if not found:
            continue
        sound = {each.invariant for each in outcome_of(mutant, seed, planted=False).violations}
        wanted = set(mutant.breaks) - sound
        fresh = [each for each in found if each.invariant in wanted and not _is_crash(each)]
        if fresh:
            seconds = time.perf_counter() - began
            return Hunt(mutant.name, seed - first + 1, fresh[0], seed, seconds)
    return Hunt(mutant.name, most, None, -1, time.perf_counter() - began)


def hunt_all(
    mutants: Sequence[Mutant], most: int, jobs: int, tell: Callable[[Hunt], None]
) -> list[Hunt]:
    """Hunt each, on several cores; `tell` is called in the mutants' order."""
    names = [(mutant.name, most) for mutant in mutants]
    found = []
    with get_context("spawn").Pool(jobs, spare_what_is_loaded) as pool:
        for each in pool.imap(_hunt_by_name, names):
            found.append(each)
            tell(each)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants")
    parser.add_argument("names", nargs="*", help="of the mutants; all if none is given")
    parser.add_argument("--most", type=int, default=MOST_SEEDS, help="seeds for each at most")
    parser.add_argument("--jobs", type=int, default=cpu_count() or 1, help="processes")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - set(BY_NAME)
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [each for each in MUTANTS if not given.names or each.name in given.names]
    hunts = hunt_all(chosen, given.most, given.jobs, lambda each: _tell(line_of(each)))
    missed = [each for each in hunts if each.violation is None]
    lost = [each.name for each in missed if not BY_NAME[each.name].cannot_break]
    rest = f"; not found: {', '.join(lost)}" if lost else ""
    _tell(f"\n{len(hunts) - len(missed)} of {len(hunts)} mutants found{rest}")
    return 1 if lost else 0


def line_of(hunted: Hunt) -> str:
    """What there is to say about one mutant, in a line."""
    took = f"{hunted.seconds:5.1f} s"
    violation = hunted.violation
    if violation is None:
        reason = BY_NAME[hunted.name].cannot_break
        why = f"cannot break anything: {reason}" if reason else "NOT FOUND"
        return f"{hunted.name:<28} {hunted.seeds:>4} seeds {took}  {why}"
    return (
        f"{hunted.name:<28} {hunted.seeds:>4} seeds {took}  found at seed {hunted.seed}: "
        f"{violation.invariant}  {violation.text}"
    )


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _is_crash(violation: Violation) -> bool:
    """Whether it tells of an exception: that would be a bug of the mutant, and of nothing else."""
    return " crashed: " in violation.text


def _hunt_by_name(named: tuple[str, int]) -> Hunt:
    name, most = named
    return hunt(BY_NAME[name], most)


BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
