"""From a scenario that breaks a promise to the least of it that still does."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from carillon.audit.evidence import Violation
from carillon.simulation.faults import Strike
from tests.simulation.worlds.runner import Outcome, run
from tests.simulation.worlds.scenario import Scenario

MOST_RERUNS = 300

_T = TypeVar("_T")
_PARTICULARS = re.compile(r"\b[0-9a-z]{26}\w*|\d+|\b(True|False|None)\b")


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What is left: a scenario, the `strikes` of its faults, and what came of these in the end.

    `violation` is of the same kind as the one that was looked for.
    """

    scenario: Scenario
    strikes: tuple[Strike, ...]
    violation: Violation
    outcome: Outcome
    reruns: int


def kind_of(violation: Violation) -> tuple[str, str]:
    """What is the same about violations: the invariant, and the text without its particulars."""
    return violation.invariant, _PARTICULARS.sub("", violation.text)[:40]


def shrink(scenario: Scenario, violation: Violation, most_reruns: int = MOST_RERUNS) -> Shrunk:
    """Leave out whatever can be: jobs, requests and outages, faults, latency, minutes.

    Raises ValueError when the scenario has no violation of this kind.
    """
    return _Shrinking(scenario, violation, most_reruns).least()


class _Shrinking:
    def __init__(self, scenario: Scenario, violation: Violation, most_reruns: int) -> None:
        self._kind = kind_of(violation)
        self._most = most_reruns
        self._reruns = 0
        self._scenario = scenario
        self._only: frozenset[Strike] | None = None
        self._best: tuple[Outcome, Violation] | None = None
        if not self._breaks(scenario, None):
            raise ValueError(f"seed {scenario.seed} has no violation as {violation}")

    def least(self) -> Shrunk:
        self._fewer_parts()
        self._take(self._scenario, frozenset(self._strikes()))
        self._fewer_strikes()
        self._plainer()
        self._fewer_parts()
        self._fewer_minutes()
        self._fewer_strikes()
        assert self._best is not None
        outcome, found = self._best
        return Shrunk(self._scenario, self._strikes(), found, outcome, self._reruns)

    def _fewer_parts(self) -> None:
        parts = self._scenario.parts()
        whole = self._scenario

        def breaks(left: Sequence[str]) -> bool:
            less = whole.without(frozenset(parts) - frozenset(left))
            return self._take(less, self._only)

        least(parts, breaks)

    def _fewer_strikes(self) -> None:
        least(self._strikes(), lambda left: self._take(self._scenario, frozenset(left)))

    def _fewer_minutes(self) -> None:
        for minutes in (1, 2, 3, 5, 8, 12, 18):
            if minutes >= self._scenario.minutes:
                return
            if self._take(replace(self._scenario, minutes=minutes), self._only):
                return

    def _plainer(self) -> None:
        self._take(replace(self._scenario, most_latency_us=0), self._only)
        plain = tuple(replace(job, seconds=0.05, failures=0.0) for job in self._scenario.jobs)
        self._take(replace(self._scenario, jobs=plain), self._only)

    def _strikes(self) -> tuple[Strike, ...]:
        assert self._best is not None
        return tuple(dict.fromkeys(struck.strike for struck in self._best[0].strikes))

    def _take(self, scenario: Scenario, only: frozenset[Strike] | None) -> bool:
        """Go on with these, if they break the promise too."""
        if not self._breaks(scenario, only):
            return False
        self._scenario, self._only = scenario, only
        return True

    def _breaks(self, scenario: Scenario, only: frozenset[Strike] | None) -> bool:
        if self._reruns >= self._most:
            return False
        self._reruns += 1
        outcome = run(scenario, only=only)
        for found in outcome.violations:
            if kind_of(found) == self._kind:
                self._best = outcome, found
                return True
        return False


def least(items: Sequence[_T], breaks: Callable[[Sequence[_T]], bool]) -> Sequence[_T]:
    """A small part of the items for which `breaks` still holds: delta debugging (Zeller,
    Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002), complements only."""
    if items and breaks(()):
        return ()
    pieces = 2
    while len(items) > 1:
        size = -(-len(items) // pieces)
        for begin in range(0, len(items), size):
            rest = (*items[:begin], *items[begin + size :])
            if rest and breaks(rest):
                items, pieces = rest, max(2, pieces - 1)
                break
        else:
            if size == 1:
                return items
            pieces = min(len(items), 2 * pieces)
    return items
