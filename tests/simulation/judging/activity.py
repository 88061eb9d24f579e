"""The activity of a simulated deployment, as its feed has it and as summaries count it."""

from datetime import datetime, timedelta
from typing import Any

from carillon.clock import ManualClock
from carillon.domain.activity.summary import Counted
from carillon.services.activity import MOST_SUMMED, Activity
from carillon.services.summing import Summing
from carillon.simulation.deployment import Deployment
from tests.simulation.judging.checker_history import history_of


def activity_of(deployment: Deployment, owners: frozenset[str]) -> dict[str, Any]:
    """The members of Evidence that tell of it."""
    stores = deployment.stores
    records = stores.activity.all()
    results = [result for record in records for result in record.results]
    summed: dict[datetime, list[Counted]] = {}
    if results and len(records) <= MOST_SUMMED:  # of more a summary leaves some out, and says so
        now = deployment.loop.instant()
        fired = sorted(result.key.fire_at for result in results)
        summing = Summing(
            Activity(stores.activity),
            history_of(deployment),
            stores.calendars,
            ManualClock(now),
            threads=1,
        )
        # Of everything, and from the middle of things on.
        for begin in (fired[0] - timedelta(hours=2), fired[len(fired) // 2]):
            counted = summed[begin] = []
            for owner in sorted(owners):
                jobs = stores.jobs.list(owner, 1000).items
                counted += summing.of(owner, jobs, begin, now).counted
    lost = frozenset(result.identity for result in deployment.activity.lost)
    return {"activity": results, "activity_lost": lost, "summed": summed}
