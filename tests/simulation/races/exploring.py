"""The exhaustive part: small races of the real code, in every order, with a crash at any point.

`python -m tests.simulation.races` explores all; `--crashes` and `--losses` set larger bounds, and
names choose some.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from tests.simulation.races.cases import RACES
from tests.simulation.races.ending import Closures, judge, watch
from tests.simulation.races.exploration import Exploration, State
from tests.simulation.races.kit import Race, within


@dataclass(frozen=True, slots=True)
class Violation:
    """What was broken, and the shortest way to it."""

    text: str
    trace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What one race has shown. `ends` are the states in which nobody was left, `closures` the
    different contents from which a healthy system went on."""

    name: str
    states: int
    moves: int
    deaths: int
    ends: int
    closures: int
    violations: tuple[Violation, ...]
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.name:<28} states {self.states:>8,}  moves {self.moves:>9,}  crashes "
            f"{self.deaths:>8,}  ends {self.ends:>7,}  closures {self.closures:>6,}  violations "
            f"{len(self.violations)}  {self.seconds:6.1f} s"
        )


def explore(
    race: Race, crashes: int | None = None, losses: int | None = None, *, stop: bool = False
) -> Findings:
    """Explore one race; `stop`: at the first violation."""
    began = perf_counter()
    crashes = race.crashes if crashes is None else crashes
    losses = race.losses if losses is None else losses
    exploration = Exploration(within(race.setting(), crashes, losses), watch)
    closures = Closures(exploration, race.minutes)
    judged: dict[object, list[str]] = {}
    wrong: dict[str, State] = {}
    ends = 0
    for state in exploration.ends():
        ends += 1
        key = (state.contents, state.us, exploration.told(state))
        if key not in judged:
            ending = closures.after(state)
            judged[key] = [*judge(ending, race.allowed)]
            judged[key] += race.check(ending) if race.check else ()
        for text in judged[key]:
            wrong.setdefault(text, state)
        if stop and (wrong or exploration.wrong):
            break
    found = [(text, exploration.trace(*way)) for text, way in exploration.wrong.items()]
    found += [(text, exploration.trace(state)) for text, state in wrong.items()]
    return Findings(
        name=race.name,
        states=len(exploration.parents),
        moves=exploration.moves,
        deaths=exploration.deaths,
        ends=ends,
        closures=closures.count,
        violations=tuple(Violation(text, tuple(trace)) for text, trace in found),
        seconds=perf_counter() - began,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.races", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of races (default: all)")
    parser.add_argument("--crashes", type=int, help="of processes, at any point")
    parser.add_argument("--losses", type=int, help="of answers, whose effect was had")
    chosen = parser.parse_args(arguments)
    total, seconds, broken = 0, 0.0, 0
    races = [race for race in RACES if any(name in race.name for name in chosen.names)]
    for race in races if chosen.names else RACES:
        findings = explore(race, chosen.crashes, chosen.losses)
        _print(str(findings))
        for violation in findings.violations:
            _print(f"    {violation.text}")
            for line in violation.trace:
                _print(f"        {line}")
        total += findings.states
        seconds += findings.seconds
        broken += len(findings.violations)
    _print(f"{total:,} states, {broken} violations, {seconds:.1f} s")
    return 1 if broken else 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
