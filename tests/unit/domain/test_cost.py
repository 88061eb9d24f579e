from collections.abc import Callable

import pytest

from carillon.schedules.insight.cost import (
    DEFAULT,
    MONTH_MINUTES,
    PRICES,
    Deployment,
    Line,
    Usage,
    dollars_of_fires,
    fires,
    idle,
    queue_units,
    read_units,
    write_units,
)


@pytest.mark.parametrize(
    ("rule", "unit"), [(write_units, 1024), (read_units, 4096), (queue_units, 64 * 1024)]
)
def test_a_unit_is_begun_with_the_first_byte_beyond_the_last_one(
    rule: Callable[[int], int], unit: int
) -> None:
    sizes = (0, 1, unit - 1, unit, unit + 1, 2 * unit, 2 * unit + 1)
    assert [rule(size) for size in sizes] == [1, 1, 1, 1, 2, 2, 3]


def test_every_line_has_a_price_with_its_source() -> None:
    assert set(PRICES) == set(Line)
    assert all(price.dollars > 0 and "pricing" in price.source for price in PRICES.values())


def test_dollars_are_amounts_times_prices() -> None:
    usage = Usage({Line.WRITES: 2_000_000, Line.ALARMS: 3}) + Usage({Line.WRITES: 1_000_000})
    assert usage.dollars_by_line == pytest.approx({Line.WRITES: 1.875, Line.ALARMS: 0.3})
    assert (usage - usage).dollars == 0
    assert (usage * 2).dollars == pytest.approx(2 * 2.175)


def test_fuller_batches_make_a_fire_cheaper() -> None:
    full, two, one = (fires(1_000_000, batch).dollars for batch in (10, 2, 1))
    assert full < two < one
    # Two writes at 0.625 and a read at 0.125 a million, however full.
    assert full > 1.375


def test_the_price_is_in_proportion_to_the_fires() -> None:
    assert dollars_of_fires(0) == 0
    assert dollars_of_fires(3) == pytest.approx(3 * fires(1, 1).dollars)


def test_recovery_is_paid_for_by_those_who_want_it() -> None:
    plain, recovered = fires(1_000_000), fires(1_000_000, deployment=Deployment(recover_runs=True))
    assert plain.of(Line.RECOVERY) == 0
    more = recovered.dollars - plain.dollars
    assert more == pytest.approx(plain.dollars_by_line[Line.STORAGE] * 0.20 / 0.25)


def test_an_idle_month_follows_the_segments_and_the_queues() -> None:
    default = idle(MONTH_MINUTES)
    twice = idle(MONTH_MINUTES, Deployment(segments=2 * DEFAULT.segments))
    assert twice.of(Line.WRITES) == 2 * default.of(Line.WRITES) == 2 * 2 * 4 * 43_200
    assert default.of(Line.EMPTY_RECEIVES) == 3 * 43_200 * (4 * 5 + 2)
    assert idle(MONTH_MINUTES / 2).dollars == pytest.approx(default.dollars / 2)
