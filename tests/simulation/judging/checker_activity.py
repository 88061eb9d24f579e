"""The activity feed and its sums, by the rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from carillon.audit.evidence import Violation
from carillon.domain.run import NO_RUNS, Run, RunKind, RunStatus
from tests.simulation.judging.known import Known

_ORDINARY = frozenset({RunKind.SCHEDULED, RunKind.AFTER, RunKind.CALLBACK})
_Attempt = tuple[str, int]
_TOLD_WITHIN = timedelta(seconds=10)
"""A report is followed by a message that comes after it."""


def in_the_feed(known: Known) -> Iterator[Violation]:
    """Each deviation is in the feed as its row has it, unless the store took no record with it, and
    nothing else is. Lenient: of runs that were cancelled before their message came."""
    if known.evidence.activity is None:
        return
    shown: dict[_Attempt, RunStatus] = {}
    for result in known.evidence.activity:
        if result.is_final or result.identity not in shown:
            shown[result.identity] = result.status
    wanted: dict[_Attempt, RunStatus] = {}
    for rows in known.rows.values():
        for row in rows:
            ends = dict(_ends_of(row))
            wanted |= ends
            for attempt, status in ends.items():
                is_lost = attempt in known.evidence.activity_lost
                # The executor that tells of it may have yet to come.
                told_by = max(row.key.fire_at, row.updated_at + _TOLD_WITHIN)
                is_lost = is_lost or told_by > known.evidence.until
                if _deviates(row, attempt, status) and not is_lost and attempt not in shown:
                    text = f"attempt {attempt[1]} of {attempt[0]} is {status}, and not in the feed"
                    yield Violation("feed", row.key.job_id, text, row.key.fire_at)
    for each, status in shown.items():
        if wanted.get(each) is not status and each not in known.evidence.activity_lost:
            text = f"the feed has {each} as {status}, its row as {wanted.get(each)}"
            yield Violation("feed", each[0].partition("_")[0], text)


def _ends_of(row: Run) -> Iterator[tuple[_Attempt, RunStatus]]:
    run_id = row.key.run_id
    for record in row.attempts:
        if not row.is_final or record.attempt < row.attempt:
            yield (run_id, record.attempt), RunStatus.RETRYING
    if row.is_final:
        yield (run_id, row.attempt), row.status


def _deviates(row: Run, attempt: _Attempt, status: RunStatus) -> bool:
    if status is RunStatus.CANCELLED and row.started_at is None:
        return False
    is_ordinary = row.key.kind in _ORDINARY and not row.key.redrive and attempt[1] == 1
    return status is not RunStatus.SUCCEEDED or not is_ordinary


def summed(known: Known) -> Iterator[Violation]:
    """Summaries count what the rows show: no success without its row, and of jobs that never
    changed each run under its status."""
    by_job: dict[str, Counter[tuple[datetime, str]]] = {}
    for each in known.evidence.summed:
        by_job.setdefault(each.job_id, Counter())[each.fire_at, each.outcome] += each.count
    for job_id, counts in by_job.items():
        rows = known.rows.get(job_id, ())
        lost = known.evidence.activity_lost
        last = list(_last(rows))
        expected = Counter((row.key.fire_at, row.status.value) for row in last)
        unsure = {row.key.fire_at for row in last if (row.key.run_id, row.attempt) in lost}
        versions = known.evidence.versions.get(job_id, ())
        is_constant = len(versions) == 1 and versions[0].job.revision == 1
        for (fire_at, outcome), count in counts.items():
            there = expected[fire_at, outcome]
            if outcome == "succeeded" and count > there:
                text = f"{count} successes at {fire_at} are summed up, rows show {there}"
                yield Violation("feed", job_id, text)
        for (fire_at, outcome), there in expected.items() if is_constant else ():
            # A day that is closed later moves occurrences to before the job: none is due there.
            is_due = fire_at > versions[0].job.generation.from_at
            if is_due and fire_at not in unsure and counts[fire_at, outcome] != there:
                text = f"{there} {outcome} at {fire_at}, {counts[fire_at, outcome]} are summed up"
                yield Violation("feed", job_id, text)


def _last(rows: Sequence[Run]) -> Iterator[Run]:
    """Of each run the last redrive: those that have ended, and count."""
    last: dict[tuple[object, ...], Run] = {}
    for row in rows:
        key = row.key
        name = (key.kind, key.fire_at, key.request_id)
        is_counted = key.kind not in NO_RUNS and key.kind is not RunKind.CALLBACK
        # Before its message has come, or as the mark of a discarded dead letter.
        is_counted = is_counted and (row.status is not RunStatus.CANCELLED or row.attempt > 0)
        if is_counted and (name not in last or last[name].key.redrive < key.redrive):
            last[name] = row
    return (row for row in last.values() if row.is_final)
