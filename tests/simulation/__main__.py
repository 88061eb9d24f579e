"""`python -m tests.simulation`: many seeds, or the replay of one."""

import argparse
import os
import sys
from collections.abc import Sequence
from time import perf_counter

from tests.simulation.worlds.pool import Result, results
from tests.simulation.worlds.report import command, figures_text, shrunk_text, violation_text
from tests.simulation.worlds.runner import Figures, run
from tests.simulation.worlds.scenario_file import world_of
from tests.simulation.worlds.scenario_parts import Chunks
from tests.simulation.worlds.shrinking import shrink


def main(arguments: Sequence[str] | None = None) -> int:
    """Answers the exit status: 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--shrink", type=int, default=3, help="so many violations at most")
    parser.add_argument("--seed", type=int, help="replay this one, with its whole trace")
    parser.add_argument(
        "--chunks",
        type=Chunks,
        choices=Chunks,
        help="have all deployments send chunks, none, or switch in the middle (default: by seed)",
    )
    given = parser.parse_args(arguments)
    if given.seed is not None:
        return _replay(given.seed, given.chunks)
    seeds = range(given.first, given.first + given.seeds)
    return _simulate(seeds, given.chunks, given.jobs, given.shrink)


def _replay(seed: int, wanted: Chunks | None) -> int:
    outcome = run(world_of(seed, wanted), trace=_say)
    _say(figures_text(outcome.figures))
    for violation in outcome.violations:
        _say(violation_text(seed, violation, wanted))
    return 1 if outcome.violations else 0


def _simulate(seeds: range, wanted: Chunks | None, processes: int, most_shrunk: int) -> int:
    began = perf_counter()
    figures, broken = Figures(), list[Result]()
    again = command(f"SEEDS={len(seeds)} FIRST={seeds.start}", wanted)
    _say(f"{len(seeds)} seeds: {again}")
    for number, result in enumerate(results(seeds, processes, wanted), 1):
        figures += result.figures
        if result.violations:
            broken.append(result)
            _say(violation_text(result.seed, result.violations[0], wanted))
        if number % 1000 == 0:
            _say(f"{number} seeds, {len(broken)} with violations, {perf_counter() - began:.0f} s")
    for result in broken[:most_shrunk]:
        first = result.violations[0]
        if first.invariant != "harness":
            shrunk = shrink(world_of(result.seed, wanted), first)
            _say(shrunk_text(shrunk, wanted))
    _say(figures_text(figures))
    _say(f"{'seeds with violations':24}{len(broken)}")
    _say(f"{'wall time':24}{perf_counter() - began:.1f} s with {processes} processes")
    return 1 if broken else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
