"""Rules about rows by themselves, whoever wrote them, and whatever was called."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from carillon.audit.evidence import Violation
from carillon.audit.known import Known
from carillon.domain.decisions import SkipReason
from carillon.domain.run import NO_RUNS, DeadReason, Resolution, Run, RunKey, RunStatus

_DEAD = frozenset({RunStatus.DEAD, RunStatus.TIMED_OUT})
_REASONS = frozenset(SkipReason)


def succeeded_again(known: Known) -> Iterator[Violation]:
    """At most one run of an occurrence, its redrives included, has succeeded."""
    for job_id, rows in known.rows.items():
        succeeded: defaultdict[RunKey, list[Run]] = defaultdict(list)
        for row in rows:
            if row.status is RunStatus.SUCCEEDED:
                succeeded[replace(row.key, redrive=0)].append(row)
        for key, found in succeeded.items():
            if len(found) > 1:
                names = " and ".join(sorted(row.key.run_id for row in found))
                text = f"{names} have succeeded: one run of an occurrence may"
                yield Violation("I2", job_id, text, key.fire_at)


def impossible(known: Known) -> Iterator[Violation]:
    """Rows to which no way of the transition table leads."""
    for job_id, rows in known.rows.items():
        for row in rows:
            fault = _contradiction(row)
            if fault:
                text = f"{row.key.run_id} is {row.status.value}, and {fault}"
                yield Violation("I4", job_id, text, row.key.fire_at)


def _contradiction(row: Run) -> str | None:
    """The contradiction in a row; None where it has none."""
    status, numbers = row.status, [record.attempt for record in row.attempts]
    if row.key.kind in NO_RUNS:
        return f"its attempt is {row.attempt}" if row.attempt else None
    if status is RunStatus.RUNNING and (row.lease_until is None or not row.token):
        return f"nobody holds it: token {row.token}, lease until {row.lease_until}"
    if status is RunStatus.RETRYING and (row.next_attempt_at is None or not row.attempt):
        return f"nothing is to be retried: attempt {row.attempt}, next at {row.next_attempt_at}"
    if status is RunStatus.SUCCEEDED and (row.started_at is None or row.finished_at is None):
        return f"it began at {row.started_at} and ended at {row.finished_at}"
    if numbers != sorted(set(numbers)) or (numbers and numbers[-1] > row.attempt):
        return f"its failed attempts are {numbers}, and it is at {row.attempt}"
    if row.settled is not None and status not in _DEAD:
        return f"it is {row.settled.value}, as only dead letters are"
    return None


def dead_without_reason(known: Known) -> Iterator[Violation]:
    """Dead letters have a reason."""
    reasons = {reason.value for reason in DeadReason}
    for rows in known.rows.values():
        for row in rows:
            if row.status in _DEAD and row.reason not in reasons:
                text = f"{row.key.run_id} is {row.status.value} for {row.reason!r}"
                yield Violation("dead", row.key.job_id, text, row.key.fire_at)


def unreasoned(known: Known) -> Iterator[Violation]:
    """Skips without a reason of the closed list."""
    for rows in known.rows.values():
        for row in rows:
            if row.status is RunStatus.SKIPPED and row.reason not in _REASONS:
                text = f"{row.key.run_id} is skipped for {row.reason!r}"
                yield Violation("skip", row.key.job_id, text, row.key.fire_at)


def resolved_otherwise(known: Known) -> Iterator[Violation]:
    """Dead letters settled otherwise than the runs that were made of them show: one that was
    redriven has its new run; one that was discarded has none, or a cancelled one.

    A write may change how it is settled: of two who are at it at once the new run's row decides.
    """
    rest_at = known.evidence.rest_at
    for rows in known.rows.values():
        for row in rows:
            if rest_at is not None and row.updated_at > rest_at:
                continue  # its redrive may be under way
            made = known.by_run_id.get(row.key.redriven.run_id) if row.settled else None
            is_gone = made is None or made.status is RunStatus.CANCELLED
            if row.settled is Resolution.REDRIVEN and made is None:
                text = f"{row.key.run_id} is redriven, and there is no {row.key.redriven.run_id}"
            elif row.settled is Resolution.DISCARDED and not is_gone and made is not None:
                text = f"{row.key.run_id} is discarded, and {made.key.run_id} {made.status.value}"
            else:
                continue
            yield Violation("settled", row.key.job_id, text, row.key.fire_at)
