"""History as lists show it, against the outcomes that were seen."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from carillon.audit.evidence import Violation
from carillon.domain.run import Run
from carillon.services.history import History
from carillon.simulation.deployment import Deployment
from carillon.stores.cursors import pages
from tests.simulation.judging.known import Known

_PAGE = 20


def history_of(deployment: Deployment) -> History:
    """The history as it is, without anything of the loop's in between."""
    lifetime = deployment.options.run_lifetime
    return History.of(deployment.stores, deployment.clock, lifetime)  # type: ignore[arg-type]


def listed_of(deployment: Deployment, jobs: Mapping[str, str]) -> dict[str, Sequence[Run]]:
    """The runs of jobs, which are given with their owners, as their lists show them page by
    page."""
    history = history_of(deployment)
    listed: dict[str, Sequence[Run]] = {}
    for job_id, owner in jobs.items():
        found = pages(partial(history.page, owner, job_id, _PAGE))
        listed[job_id] = [run for page in found for run in page.whole]
    return listed


def untold(known: Known) -> Iterator[Violation]:
    """Runs that lists leave out, show twice or otherwise than they have ended, or that never
    were."""
    until = known.evidence.until
    for job_id, listed in known.evidence.listed.items():
        shown = [run for run in listed if run.key.fire_at <= until]
        by_key = {run.key: run for run in shown}
        rows = {row.key: row for row in known.rows.get(job_id, ()) if row.key.fire_at <= until}
        keys = [run.key.sort_key for run in listed]
        if keys != sorted(set(keys)):
            yield Violation("history", job_id, "its runs are not listed once each, newest first")
        for key in sorted(by_key.keys() | rows.keys(), key=lambda key: key.sort_key):
            fault = _fault(by_key.get(key), rows.get(key))
            if fault:
                yield Violation("history", job_id, f"{key.run_id} {fault}", key.fire_at)


def _fault(shown: Run | None, row: Run | None) -> str | None:
    if shown is None or row is None:
        return f"is listed as {_said(shown)}, and is {_said(row)}"
    if shown.status is not row.status:
        return f"is listed as {shown.status.value}, and is {row.status.value}"
    return None if _told(shown) == _told(row) else f"is listed as {shown}, and is {row}"


def _told(run: Run) -> tuple[object, ...]:
    return run.started_at, run.finished_at, run.result, run.attempt, run.effective_at


def _said(run: Run | None) -> str:
    return "absent" if run is None else run.status.value
