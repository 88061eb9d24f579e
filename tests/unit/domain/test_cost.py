import pytest

from shared.domain import cost
from shared.domain.cost import dollars_of_fires


def test_a_million_fires_stay_in_the_budget() -> None:
    # DESIGN section 7: two writes, their reads, three requests for ten messages, Lambda.
    assert dollars_of_fires(1_000_000) == pytest.approx(
        2 * 0.625 + 1.1 * 0.125 + 0.3 * 0.40 + 0.087, abs=0.001
    )
    assert dollars_of_fires(1_000_000) <= 1.80


def test_it_is_in_proportion_to_the_fires() -> None:
    assert dollars_of_fires(0) == 0
    assert dollars_of_fires(3) == pytest.approx(3 * cost.DOLLARS_PER_FIRE)
