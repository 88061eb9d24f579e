"""The activity feed and its sums, by the rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from carillon.audit.evidence import JobVersion, Violation
from carillon.domain.job import JobState
from carillon.domain.run import NO_RUNS, Run, RunKind, RunStatus
from carillon.services.summing import MOST_READ_OF_A_JOB
from tests.simulation.judging.known import Known

_UNCOUNTED = NO_RUNS | {RunKind.CALLBACK, RunKind.NOTICE}
_ORDINARY = frozenset({RunKind.SCHEDULED, RunKind.AFTER, RunKind.CALLBACK})
_Attempt = tuple[str, int]
_ROWS_PUT_WITHIN = timedelta(seconds=5)
"""A chunk that ends as the world does has yet to put the rows of its runs."""
TOLD_WITHIN = timedelta(seconds=10)
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
                is_lost = attempt in known.evidence.activity_lost or _is_untold(known, row)
                if _deviates(row, attempt, status) and not is_lost and attempt not in shown:
                    text = f"attempt {attempt[1]} of {attempt[0]} is {status}, and not in the feed"
                    yield Violation("feed", row.key.job_id, text, row.key.fire_at)
    wanted = _taken_along(known) | wanted
    for each, status in shown.items():
        if wanted.get(each) is not status and each not in known.evidence.activity_lost:
            text = f"the feed has {each} as {status}, its row as {wanted.get(each)}"
            yield Violation("feed", each[0].partition("_")[0], text)


def _taken_along(known: Known) -> dict[_Attempt, RunStatus]:
    """The attempts of the rows that a closed day took along, as it moved their runs."""
    ends: dict[_Attempt, RunStatus] = {}
    for write in known.evidence.writes:
        if write.before is not None and known.is_taken_along(write):
            ends |= _ends_of(write.before)
    return ends


def _is_untold(known: Known, row: Run) -> bool:
    """True if the executor that tells of a run may have yet to come; or if the check of a run may
    have put its row and died, and its job was deleted then, to be revived perhaps."""
    if max(row.key.fire_at, row.updated_at + TOLD_WITHIN) > known.evidence.until:
        return True
    versions = known.evidence.versions.get(row.key.job_id, ())
    gone = (each.at for each in versions if each.job.state is JobState.DELETED)
    return row.key.kind is RunKind.WATCH and any(at >= row.updated_at for at in gone)


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
    """Summaries count what the rows show: of jobs that are still there each run under its status,
    no success without its row, and no skip more often than it was recorded."""
    there = [job_id for job_id, all_of in known.evidence.versions.items() if _is_there(all_of)]
    for begin, counted in known.evidence.summed.items():
        by_job: dict[str, Counter[tuple[datetime, str]]] = {job_id: Counter() for job_id in there}
        for each in counted:
            by_job.setdefault(each.job_id, Counter())[each.fire_at, each.outcome] += each.count
        for job_id, counts in by_job.items():
            yield from _misjudged(known, job_id, begin, counts)


def _is_there(versions: Sequence[JobVersion]) -> bool:
    return not versions[-1].job.is_tombstone and _is_due_as_ever(versions)


def _is_due_as_ever(versions: Sequence[JobVersion]) -> bool:
    """Lenient: a change of a calendar takes occurrences away from where they have fired, and to
    where they have not."""
    job = versions[-1].job
    return job.spec.calendar is None or job.revision == 1


def _misjudged(
    known: Known, job_id: str, begin: datetime, counts: Counter[tuple[datetime, str]]
) -> Iterator[Violation]:
    rows = [row for row in known.rows.get(job_id, ()) if row.key.fire_at >= begin]
    last, lost = list(_last(rows)), known.evidence.activity_lost
    expected = Counter((row.key.fire_at, row.status.value) for row in last)
    for (fire_at, outcome), count in counts.items():
        there = expected[fire_at, outcome]
        is_young = fire_at > known.evidence.until - _ROWS_PUT_WITHIN
        if outcome == "succeeded" and count > there and not is_young:
            text = f"{count} successes at {fire_at} are summed up, rows show {there}"
            yield Violation("feed", job_id, text)
    versions = known.evidence.versions.get(job_id, ())
    covers = [row.covers_count for row in rows if row.key.kind is RunKind.MISSED]
    skipped = sum(n for (_, outcome), n in counts.items() if outcome == "skipped")
    most = sum(n for (_, status), n in expected.items() if status == "skipped")
    is_known = None not in covers and (not versions or _is_due_as_ever(versions))
    if is_known and skipped > most + sum(each or 0 for each in covers):
        yield Violation("feed", job_id, f"{skipped} skips since {begin} are summed up: too many")
    if not versions or not _is_there(versions) or len(rows) > MOST_READ_OF_A_JOB:
        return  # of more, a summary leaves out the oldest, and says so
    unsure = {row.key.fire_at for row in last if (row.key.run_id, row.attempt) in lost}
    unsure |= {
        row.key.fire_at
        for row in last
        if _is_covered(row, rows) or _is_untold(known, row) or _has_outlived(known, row)
    }
    # What was cancelled before its message came is counted once that has come.
    unbegun = Counter(row.key.fire_at for row in rows if _is_unbegun(row))
    job = versions[-1].job
    for (fire_at, outcome), there in expected.items():
        # A day that is closed later moves occurrences to before the job: none is due there.
        is_due = job.spec.calendar is None or fire_at > job.generation.from_at
        more = unbegun[fire_at] if outcome == RunStatus.CANCELLED else 0
        is_right = there <= counts[fire_at, outcome] <= there + more
        if is_due and fire_at not in unsure and not is_right:
            text = f"{there} {outcome} at {fire_at}, {counts[fire_at, outcome]} are summed up"
            yield Violation("feed", job_id, text)


def _has_outlived(known: Known, row: Run) -> bool:
    """True if a change, by another clock, ended the run's generation before its fire time when its
    executor had read the job: nothing is due then, and the feed shows no ordinary success."""
    generations = known.generations.get(row.key.job_id, ())
    yielding = [each for each in generations if each.yields(row.key.fire_at)]
    is_ordinary = row.key.kind is RunKind.SCHEDULED and row.status is RunStatus.SUCCEEDED
    return is_ordinary and bool(yielding) and not any(e.covers(row.key.fire_at) for e in yielding)


def _is_covered(run: Run, rows: Sequence[Run]) -> bool:
    """True if a catch-up of another generation covers it, too, which is all that the feed shows of
    an ordinary success."""
    return any(
        row.covers_from is not None and row.covers_from <= run.key.fire_at <= row.key.fire_at
        for row in rows
        if row.key.kind is RunKind.MISSED
    )


def _last(rows: Sequence[Run]) -> Iterator[Run]:
    """Of each run the last redrive that has begun: those that have ended, and count."""
    last: dict[tuple[object, ...], Run] = {}
    for row in rows:
        key = row.key
        name = (key.kind, key.fire_at, key.request_id)
        has_begun = not _is_unbegun(row) and row.status is not RunStatus.SCHEDULED
        is_counted = key.kind not in _UNCOUNTED and has_begun
        if is_counted and (name not in last or last[name].key.redrive < key.redrive):
            last[name] = row
    return (row for row in last.values() if row.is_final)


def _is_unbegun(row: Run) -> bool:
    """True if it was cancelled before its message came, or is the mark of a discarded dead
    letter."""
    return row.status is RunStatus.CANCELLED and row.attempt == 0
