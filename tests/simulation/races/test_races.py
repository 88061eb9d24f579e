"""The exhaustive part: no race breaks an invariant, and each finds the bug planted in it."""

import pytest

from tests.simulation.races.bugs import planted
from tests.simulation.races.cases import RACES
from tests.simulation.races.exploring import explore
from tests.simulation.races.kit import Race

LEAST_STATES = 200


def _name(race: Race) -> str:
    return race.name


@pytest.mark.parametrize("race", RACES, ids=_name)
def test_no_order_of_a_race_breaks_anything(race: Race, capsys: pytest.CaptureFixture[str]) -> None:
    findings = explore(race)
    with capsys.disabled():
        print(f"\n{findings}", end="")  # noqa: T201
    assert findings.violations == ()
    assert findings.states > LEAST_STATES, "or it explores nothing"
    assert findings.deaths or not race.crashes
    assert findings.closures


@pytest.mark.parametrize("race", RACES, ids=_name)
def test_the_bug_planted_in_a_race_is_found(race: Race) -> None:
    with planted(race.planted):
        findings = explore(race, stop=True)
    assert findings.violations
    assert all(violation.trace for violation in findings.violations)
