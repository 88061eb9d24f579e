"""The clock's distance from DynamoDB's."""

from datetime import UTC, datetime

import pytest

from carillon.clock import ManualClock
from carillon.stores.dynamo import SkewMeter

DATE = {"ResponseMetadata": {"HTTPHeaders": {"date": "Tue, 01 Dec 2026 12:00:00 GMT"}}}


@pytest.mark.parametrize(("second", "skew"), [(0, -0.5), (30, 29.5)])
def test_the_skew_is_measured_against_the_middle_of_the_headers_second(
    second: int, skew: float
) -> None:
    meter = SkewMeter(ManualClock(datetime(2026, 12, 1, 12, 0, second, tzinfo=UTC)))
    assert meter.seconds() is None
    meter.observe(parsed=DATE)
    assert meter.seconds() == skew


def test_an_answer_without_the_header_tells_nothing() -> None:
    meter = SkewMeter(ManualClock(datetime(2026, 12, 1, 12, tzinfo=UTC)))
    meter.observe(parsed={"ResponseMetadata": {"HTTPHeaders": {}}})
    assert meter.seconds() is None
