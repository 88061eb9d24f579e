"""The audit that operators run, of a simulated deployment."""

from collections.abc import Iterator
from datetime import datetime

from carillon.audit.auditing import UNDER_WAY, Audit
from carillon.audit.evidence import Violation
from carillon.simulation.deployment import Deployment
from tests.simulation.judging.checker_history import history_of


def audited(deployment: Deployment, since: datetime, until: datetime) -> Iterator[Violation]:
    """What `carillon admin audit` finds of a span; nothing where nothing is wrong."""
    audit = Audit(
        deployment.stores,  # type: ignore[arg-type]
        history_of(deployment),
        deployment.options.segments,
        since,
        until,
        rest_at=deployment.loop.instant() - UNDER_WAY,
    )
    for finding in audit.findings():
        yield Violation("audit", finding.job_id, f"{finding.promise}: {finding.text}")
