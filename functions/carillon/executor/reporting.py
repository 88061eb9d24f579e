"""What the executor tells: one line for what an operator looks for, metrics for the rest."""

import logging
from collections import Counter
from collections.abc import Sequence

from carillon.domain.canary import is_canary
from carillon.domain.run import Run, RunStatus
from carillon.executor.reports import Handled, Report
from carillon.telemetry import Action, Metric, Telemetry

_ACTIONS = {
    RunStatus.RETRYING: Action.RUN_RETRYING,
    RunStatus.DEAD: Action.RUN_DEAD,
    RunStatus.TIMED_OUT: Action.RUN_TIMED_OUT,
    RunStatus.SKIPPED: Action.RUN_SKIPPED,
    RunStatus.MISSED: Action.RUN_MISSED,
}
_METRICS = {
    RunStatus.SUCCEEDED: Metric.RUNS_SUCCEEDED,
    RunStatus.RETRYING: Metric.RUNS_RETRIED,
    RunStatus.DEAD: Metric.RUNS_DEAD,
    RunStatus.TIMED_OUT: Metric.RUNS_DEAD,
    RunStatus.SKIPPED: Metric.RUNS_SKIPPED,
    RunStatus.MISSED: Metric.RUNS_MISSED,
}


def tell(telemetry: Telemetry, reports: Sequence[Report], failures: int) -> None:
    """Log a batch: a line for each run that did not succeed, and one for the batch as a whole,
    with its metrics.

    A line per successful run would cost more than the run itself (PEERS: logs at 1 KB a job).
    """
    reports = [*reports, *(report.instead for report in reports if report.instead is not None)]
    for report in reports:
        if report.handled in (Handled.RAN, Handled.SKIPPED) and report.run is not None:
            _tell_run(telemetry, report.run)
        elif report.handled is Handled.DROPPED:
            run_id = report.message.key.run_id
            telemetry.record(Action.MESSAGE_DROPPED, run_id=run_id, reason=report.reason)
        elif report.handled is Handled.SENT_BACK:
            run_id, returns = report.message.key.run_id, report.message.returns
            telemetry.record(
                Action.MESSAGE_SENT_BACK, logging.WARNING, run_id=run_id, returns=returns
            )
        if report.completes:
            telemetry.record(Action.JOB_COMPLETED, job_id=report.message.key.job_id)
    handled = Counter(report.handled.value for report in reports)
    telemetry.finish(Action.BATCH_FINISHED, failed=failures, **handled)


def _tell_run(telemetry: Telemetry, run: Run) -> None:
    telemetry.measure(_METRICS[run.status])
    if run.attempt == 1 and run.lag_seconds is not None:
        telemetry.measure(Metric.RUN_LAG, max(run.lag_seconds, 0))
    if run.status is RunStatus.SUCCEEDED and is_canary(run.key.owner, run.key.job_id):
        telemetry.measure(Metric.CANARY_LAG, max(run.lag_seconds or 0, 0))
    if run.status is not RunStatus.SUCCEEDED:
        dead = run.status in (RunStatus.DEAD, RunStatus.TIMED_OUT, RunStatus.MISSED)
        telemetry.record(
            _ACTIONS[run.status],
            logging.ERROR if dead else logging.INFO,
            run_id=run.key.run_id,
            attempt=run.attempt,
            reason=run.reason,
            error=None if run.error is None else f"{run.error.kind}: {run.error.message}",
        )
