"""Delta debugging, on scenarios whose violation is known."""

from collections.abc import Sequence

import pytest

from carillon.audit.evidence import Violation
from tests.simulation.worlds.runner import run
from tests.simulation.worlds.scenario import scenario_of
from tests.simulation.worlds.shrinking import kind_of, least, shrink


@pytest.mark.parametrize("needed", [{3}, {0, 19}, {4, 5, 11}, set(range(20))])
def test_the_least_part_that_breaks_is_found(needed: set[int]) -> None:
    assert set(least(range(20), lambda left: needed <= set(left))) == needed


def test_nothing_is_needed_where_nothing_breaks_it_too() -> None:
    assert least(range(20), lambda left: True) == ()


def test_few_questions_are_asked() -> None:
    asked: list[Sequence[int]] = []

    def breaks(left: Sequence[int]) -> bool:
        asked.append(left)
        return 77 in left

    assert least(range(500), breaks) == (77,)
    assert len(asked) < 40


def test_a_violation_keeps_its_kind_whatever_run_it_names() -> None:
    first = Violation("I2", "", "2poz2ghvmye2oqjvoxdirygifd_20261201T165858Z_manual_0 succeeded 2x")
    other = Violation("I2", "", "ru3w5z7bt6jyffn5udywmbjcbl_20261202T000000Z_manual_1 succeeded 3x")
    assert kind_of(first) == kind_of(other)
    assert kind_of(first) != kind_of(Violation("I1", "", first.text))


def test_a_scenario_without_the_violation_is_told() -> None:
    with pytest.raises(ValueError, match="seed 1 has no violation"):
        shrink(scenario_of(1), Violation("I2", "", "never heard of"), most_reruns=1)


def test_reruns_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(scenario_of(7))
    violation = Violation("I2", "", "whatever is done")
    broken = type(whole)(whole.scenario, [violation], whole.figures, whole.strikes, whole.evidence)
    monkeypatch.setattr("tests.simulation.worlds.shrinking.run", lambda scenario, only: broken)
    shrunk = shrink(scenario_of(7), violation, most_reruns=4)
    assert shrunk.reruns == 4
