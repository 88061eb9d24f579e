"""Each model keeps its promises, and each bug breaks them."""

from dataclasses import dataclass

import pytest

from tests.models.cases import EVERYTHING
from tests.models.explorer import NO_END, Explored, explore
from tests.models.kit import Breaks, Holds, explored_of, wrong_with

CASES = [
    pytest.param(case, id=f"{title}: {case.name}")
    for title, cases in EVERYTHING.items()
    for case in cases
    if not case.big
]


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_as_it_should_be(case: Holds | Breaks) -> None:
    assert wrong_with(case, explored_of(case)) is None


def test_no_two_cases_have_one_name() -> None:
    for cases in EVERYTHING.values():
        names = [each.name for each in cases]
        assert len({*names}) == len(names)


@dataclass(frozen=True, slots=True)
class _Counting:
    """Counts to 3, from where it ends, or (`turns`) goes back to 1 from 2 on."""

    turns: bool = False

    def start(self) -> int:
        return 0

    def moves(self, state: int) -> list[tuple[str, int]]:
        if self.turns and state == 2:
            return [("turns", 1)]
        return [("counts", state + 1)] if state < 3 else []

    def wrong(self, state: int) -> list[str]:
        return ["two is reached"] if state == 2 and not self.turns else []

    def unfinished(self, end: int) -> list[str]:
        return ["three is the end"]


def test_what_is_wrong_has_its_trace() -> None:
    found = explore(_Counting())
    assert found.violations == {
        "two is reached": ["counts"] * 2,
        "three is the end": ["counts"] * 3,
    }
    assert (found.states, found.moves, found.ends) == (4, 3, 1)
    assert explore(_Counting(), first_only=True).states == 3


def test_going_round_for_ever_is_a_violation() -> None:
    assert explore(_Counting(turns=True)).violations == {NO_END: []}


def test_a_variant_that_explores_too_little_is_wrong() -> None:
    case = Holds("idle", _Counting(turns=True), least_states=4)
    assert wrong_with(case, Explored(states=3, ends=1)) is not None
    assert wrong_with(case, Explored(states=4, ends=0)) is not None
    assert wrong_with(case, Explored(states=4, ends=1)) is None
