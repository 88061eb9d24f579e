"""The cases of a model: variants that hold, and bugs that break it."""

from dataclasses import dataclass
from typing import Any

from tests.models.explorer import Explored, Model, explore


@dataclass(frozen=True, slots=True)
class Holds:
    """A variant that keeps all promises over at least so many states: fewer mean that the model has
    lost its moves. A `big` one is for `make models`."""

    name: str
    model: Model[Any]
    least_states: int
    big: bool = False


@dataclass(frozen=True, slots=True)
class Breaks:
    """A variant with a bug, and the promise that is broken by it first."""

    name: str
    model: Model[Any]
    promise: str
    big: bool = False


def explored_of(case: Holds | Breaks) -> Explored:
    return explore(case.model, first_only=isinstance(case, Breaks))


def wrong_with(case: Holds | Breaks, explored: Explored) -> str | None:
    """The reason why a case is not as it should be."""
    if isinstance(case, Breaks):
        broken = [*explored.violations]
        return None if case.promise in broken else f"broke {broken or 'nothing'}"
    if explored.violations:
        promise, trace = next(iter(explored.violations.items()))
        return "\n  ".join([f"{promise}:", *trace])
    if explored.states < case.least_states or not explored.ends:
        return f"explored {explored.states} states only, {explored.ends} ends"
    return None
