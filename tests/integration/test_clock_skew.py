"""The clock's distance from the store's, over a real connection."""

import uuid
from datetime import timedelta

import pytest

from carillon.clock import ManualClock, SystemClock
from carillon.stores.dynamo import open_stores
from tests.support.tables import create_deployment

pytestmark = pytest.mark.ministack


@pytest.mark.parametrize("ahead_seconds", [0, 90])
def test_every_answer_tells_how_far_the_clocks_are_apart(
    ministack: str, ahead_seconds: int
) -> None:
    clock = ManualClock(SystemClock().now() + timedelta(seconds=ahead_seconds))
    stores = open_stores(create_deployment(f"skew-{uuid.uuid4().hex[:8]}"), clock)
    assert stores.skew_seconds() is None
    clock.set(SystemClock().now() + timedelta(seconds=ahead_seconds))
    stores.wheel.get_control(0)
    skew = stores.skew_seconds()
    assert skew is not None
    assert abs(skew - ahead_seconds) < 2
