"""A short form of `make drill-bad-items`: bad items in one segment beside jobs in all others."""

from datetime import timedelta

import pytest

from carillon.local.deployment import Deployment
from tests.e2e.conftest import person
from tests.e2e.drills.bad_items import drill

pytestmark = pytest.mark.e2e

MEASURED = timedelta(seconds=80)


def test_bad_items_in_one_segment_hold_up_no_other(deployment: Deployment) -> None:
    with person(deployment, "beside-bad-items") as bystander:
        found = drill(deployment, bystander, MEASURED)
    assert found.holds, str(found)
