"""The activity of a simulated deployment, as its feed has it and as summaries count it."""

from datetime import timedelta
from typing import Any

from carillon.clock import ManualClock
from carillon.domain.activity.summary import Counted
from carillon.services.activity import Activity
from carillon.services.history import History
from carillon.services.summing import Summing
from carillon.simulation.deployment import Deployment


def activity_of(deployment: Deployment) -> dict[str, Any]:
    """The members of Evidence that tell of it."""
    stores = deployment.stores
    records = stores.activity.all()
    results = [result for record in records for result in record.results]
    counted: list[Counted] = []
    if results:
        now = deployment.loop.instant()
        begin = min(result.key.fire_at for result in results) - timedelta(hours=2)
        summing = Summing(
            Activity(stores.activity),
            History(stores.runs),
            stores.calendars,
            ManualClock(now),
            threads=1,
        )
        for owner in sorted({record.owner for record in records}):
            jobs = stores.jobs.list(owner, 1000).items
            counted += summing.of(owner, jobs, begin, now).counted
    lost = frozenset(result.identity for result in deployment.activity.lost)
    return {"activity": results, "activity_lost": lost, "summed": counted}
