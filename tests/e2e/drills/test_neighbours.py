"""A short form of `make drill-neighbours`: one owner's hanging webhooks beside another's jobs.

Nothing may be more than 10 s late, neither while the webhooks hang nor in the first half minute
after their deletion. The promised percentiles are the command's to hold: here other tests run.
"""

from datetime import timedelta

import pytest

from carillon.local.deployment import Deployment
from tests.e2e.conftest import person
from tests.e2e.drills.neighbours import drill

pytestmark = pytest.mark.e2e

MEASURED = timedelta(seconds=40)
ANNOUNCED = timedelta(seconds=30)
CULPRITS, BYSTANDERS = 80, 10
"""Each culprit hangs for 10 s of every 10: together they want twice the places of the lane."""


def test_hanging_webhooks_of_one_owner_hold_up_no_other(deployment: Deployment) -> None:
    with person(deployment, "culprit") as culprit, person(deployment, "bystander") as bystander:
        found = drill(culprit, bystander, MEASURED, CULPRITS, ANNOUNCED, BYSTANDERS)
    assert found.held_up_nobody, str(found)
