"""The notifications of a simulated deployment, and the messages that were decided."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from carillon.audit.evidence import JobVersion
from carillon.domain.run import RunKind
from carillon.services.notices import Notices
from carillon.simulation.deployment import Deployment
from tests.simulation.judging.evidence import Recorded

_MOST = 100


def notices_of(
    deployment: Deployment, owners: frozenset[str], put_at: Mapping[str, datetime]
) -> dict[str, Any]:
    """The members of Evidence that tell of them; as versions, what deliveries are runs of. `put_at`
    has by their batches when records of the feed were put."""
    stores, options = deployment.stores, deployment.options
    notifications = [
        each for owner in sorted(owners) for each in stores.notifications.list(owner, _MOST).items
    ]
    if not notifications:
        return {}
    records, lanes = stores.idempotency_records, stores.ports.queue
    notices = Notices(records, lanes, deployment.clock, options.run_lifetime)
    bodies = {}
    for notification in notifications:
        job_id = notification.as_job().job_id
        for row in stores.runs.list(notification.owner, job_id, 10_000).items:
            body = notices.get(row.key)
            if row.key.kind is RunKind.NOTICE and body is not None:
                bodies[row.key.run_id] = body
    recorded = [
        Recorded(record.recorded_at, put_at[record.batch_id], result)
        for record in stores.activity.all()
        for result in record.results
    ]
    windows = [stores.windows.get(each.owner, each.name) for each in notifications]
    jobs = [each.as_job() for each in notifications]
    return {
        "versions": {job.job_id: [JobVersion(job.created_at, job)] for job in jobs},
        "notifications": notifications,
        "notices": bodies,
        "recorded": recorded,
        "untold": deployment.untold,
        "windows": {(each.owner, each.name): each for each in windows if each is not None},
        "settle": deployment.executor_ports.settle,
        "may_stand_still": bool(deployment.loop.chaos.faults.paused),
    }
