"""A short form of `make drill-neighbours`: one owner's hanging webhooks beside another's jobs.

It asks for the whole promise while the webhooks hang, and that nothing is more than 10 s late in
the first half minute after their deletion. That all is as before once what was announced of them is
over, three minutes later, the command sees.
"""

from datetime import timedelta

import pytest

from carillon.local.deployment import Deployment
from tests.e2e.conftest import person
from tests.e2e.drills.neighbours import CULPRITS, drill

pytestmark = pytest.mark.e2e

MEASURED = timedelta(seconds=40)
ANNOUNCED = timedelta(seconds=30)


def test_hanging_webhooks_of_one_owner_hold_up_no_other(deployment: Deployment) -> None:
    with person(deployment, "culprit") as culprit, person(deployment, "bystander") as bystander:
        found = drill(culprit, bystander, MEASURED, CULPRITS, ANNOUNCED)
    assert found.holds, str(found)
