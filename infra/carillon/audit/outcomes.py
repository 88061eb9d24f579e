"""I1: every occurrence has exactly one outcome, and nothing else has one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from carillon.audit.evidence import Gap, Violation
from carillon.audit.known import Indexed, Known
from carillon.clock import ceil_second
from carillon.domain.execution.start_decision import FAR_BACK
from carillon.domain.job import JobState
from carillon.domain.policies import CatchUp
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.schedules import Delay
from carillon.schedules.base import seconds_down

_I1 = "I1"
_SECOND = timedelta(seconds=1)


def lost(known: Known) -> Iterator[Violation]:
    """Occurrences without a row of their own that no row of a catch-up covers.

    An occurrence belongs to a generation by its nominal time, and is due at its effective one.
    Lenient:

    - Fixed delays and calendars that move occurrences: their fire times follow from runs, or from
      the calendar at the time of each; `broken_sequences` and `unfinished` judge them.
    - A row and a covering row at once: the row counts (`passing_over.passed_over_row`).
    """
    for job_id, generations in known.generations.items():
        rows = {row.key.fire_at for row in known.rows.get(job_id, ()) if row.key.is_occurrence}
        covering = _covering(known.rows.get(job_id, ()))
        for indexed in generations:
            if not indexed.is_computable:
                continue
            spans = covering.get(indexed.generation_id, ())
            for fire_at in indexed.occurrences(known.evidence.until, known.evidence.since):
                if fire_at in rows or any(a <= fire_at <= b for a, b in spans):
                    continue
                if _waits_for_ticks(known, fire_at + indexed.spread):
                    continue
                text = (
                    f"the occurrence of {indexed.job.schedule.text!r} at {fire_at} has no row, and"
                    f" no catch-up of its generation {_span(indexed)} covers it"
                )
                yield Violation(_I1, job_id, text, fire_at)


def _waits_for_ticks(known: Known, effective_at: datetime) -> bool:
    """True if a running deployment, of which these are the gaps of one segment, has yet to dispatch
    what is due then."""
    gaps = [gap for gap in known.evidence.gaps if gap.cleared_at is None]
    return known.evidence.rest_at is not None and in_gap(gaps, effective_at)


def unexpected(known: Known) -> Iterator[Violation]:
    """Scheduled runs at instants that are no occurrences.

    Lenient: runs that were cancelled while an executor found out that they are none; those of a
    generation of which nobody could tell any more whether it had ever counted; and in a running
    deployment rows of other generations than the ones that are known.
    """
    for job_id, generations in known.generations.items():
        if not all(indexed.is_computable for indexed in generations):
            continue
        names = {indexed.generation_id for indexed in generations}
        for row in known.rows.get(job_id, ()):
            is_known = known.evidence.rest_at is None or row.generation_id in names
            if row.key.is_occurrence and is_known:
                yield from _unexpected(known, row, generations)


def _unexpected(known: Known, row: Run, generations: Sequence[Indexed]) -> Iterator[Violation]:
    job_id, fire_at, run_id = row.key.job_id, row.key.fire_at, row.key.run_id
    if any(indexed.yields(fire_at) for indexed in generations):
        return
    if row.status is RunStatus.CANCELLED and not known.was_called(run_id):
        return  # an executor had it, and would have dropped it
    if row.status is RunStatus.SKIPPED and row.note == FAR_BACK:
        return
    # One that is for later than the end, and was not called, may be dropped yet.
    is_under_way = fire_at > known.evidence.until and not known.was_called(run_id)
    if row.is_final or not (is_under_way or known.is_forsaken(row)):
        text = f"{run_id} is {row.status.value}, but no generation of its job yields {fire_at}"
        yield Violation(_I1, job_id, text, fire_at)


def passed_over(known: Known) -> Iterator[Violation]:
    """Rows of catch-ups: they cover all occurrences in their span, counted right; their job does
    not run all; and the one that follows ran, or is where another such row begins.

    Lenient where there is a calendar: closed days are covered, too, and occurrences move.
    """
    for job_id, rows in known.rows.items():
        own = {row.key.fire_at for row in rows if row.key.kind is RunKind.SCHEDULED}
        # A reindexing from an earlier instant covers what is before such a row.
        own |= {row.covers_from for row in rows if row.covers_from is not None}
        for row in rows:
            if row.key.kind is not RunKind.MISSED or _is_beyond(known, row.key.fire_at):
                continue
            for text in _wrong_about(known, row, own):
                yield Violation(_I1, job_id, f"{row.key.run_id}: {text}", row.key.fire_at)


def _wrong_about(known: Known, row: Run, own: set[datetime]) -> Iterator[str]:
    key, first = row.key, row.covers_from
    if row.status is not RunStatus.SKIPPED or row.reason != "catch_up" or first is None:
        yield f"it is {row.status.value} for {row.reason!r}, from {first}"
        return
    generations = known.generations.get(key.job_id, ())
    indexed = next((each for each in generations if each.generation_id == key.request_id), None)
    if indexed is None or not indexed.is_computable:
        return
    schedule, job = indexed.job.schedule, indexed.job
    count = sum(1 for _ in schedule.between(first - _SECOND, key.fire_at))
    if not (schedule.has(seconds_down(first)) and schedule.has(seconds_down(key.fire_at))):
        yield f"the span from {first} does not begin and end with occurrences"
    elif row.covers_count is not None and row.covers_count != count:
        yield f"it counts {row.covers_count}, and there are {count} from {first} on"
    elif first <= indexed.from_at:
        yield f"it covers {first}, which is not after its generation began at {indexed.from_at}"
    if job.spec.catch_up is CatchUp.ALL or not schedule.is_recurring:
        yield f"its job runs what was missed ({job.spec.catch_up.value})"
    following = schedule.next(key.fire_at)
    if following is None or following in own or not indexed.covers(following):
        return
    if not _is_beyond(known, following + indexed.spread):
        yield f"it stands before {following}, which has no row of its own"


def _is_beyond(known: Known, at: datetime) -> bool:
    """True if a running deployment shows nothing yet of what is due then."""
    evidence = known.evidence
    return evidence.rest_at is not None and at > evidence.until


def in_gap(gaps: Sequence[Gap], effective_at: datetime) -> bool:
    return any(gap.from_at <= effective_at < gap.until_at for gap in gaps)


def unfinished(known: Known) -> Iterator[Violation]:
    """Runs that were due and have not ended: of every kind, whatever requested them.

    A run that waits until later than `until`, or whose attempt began later, is under way. Lenient:
    the new run of a redrive that died half-way, since its dead letter is still on the list; and
    what a process claimed too late for a generation that never was committed.
    """
    until = known.evidence.until
    for job_id, rows in known.rows.items():
        for row in rows:
            if row.is_final or known.is_forsaken(row) or _is_under_way(known, row):
                continue
            due_at = row.effective_at or row.key.fire_at
            begun_at = row.attempt_started_at if row.status is RunStatus.RUNNING else None
            comes_at = max(due_at, row.next_attempt_at or due_at, begun_at or due_at)
            if comes_at > until or _waits_for_ticks(known, comes_at):
                continue
            if row.key.redrive and row.status is RunStatus.SCHEDULED and not row.token:
                dead = known.by_run_id.get(replace(row.key, redrive=row.key.redrive - 1).run_id)
                if dead is not None and dead.is_dead_letter:
                    continue
            text = (
                f"{row.key.run_id} is {row.status.value} for ever: attempt {row.attempt}, last"
                f" written at {row.updated_at}, lease until {row.lease_until}, next attempt at"
                f" {row.next_attempt_at}, note {row.note!r}"
            )
            yield Violation(_I1, job_id, text, row.key.fire_at)


def _is_under_way(known: Known, row: Run) -> bool:
    rest_at = known.evidence.rest_at
    return rest_at is not None and max(row.updated_at, row.lease_until or row.updated_at) > rest_at


def broken_sequences(known: Known) -> Iterator[Violation]:
    """Fixed delays whose last run should have been followed by another.

    Lenient under a calendar, which moves what follows, and where the next would be due after
    `until`.
    """
    for job_id, generations in known.generations.items():
        last_job = known.evidence.versions[job_id][-1].job
        schedule = last_job.schedule
        if not isinstance(schedule, Delay) or last_job.spec.calendar is not None:
            continue
        own = [
            row
            for row in known.rows.get(job_id, ())
            if row.key.is_occurrence and row.key.fire_at > generations[-1].from_at
        ]
        if last_job.state is not JobState.ACTIVE:
            continue
        last = max(own, key=lambda row: row.key.fire_at, default=None)
        ended_at = generations[-1].from_at
        if last is not None:
            ended_at = ceil_second(last.finished_at or last.updated_at)
        following = schedule.next(ended_at)
        if following is None or (last is None and known.evidence.since is not None):
            continue  # or it may have had its last run before
        due_at = following + generations[-1].spread
        if due_at > known.evidence.until or _waits_for_ticks(known, due_at):
            continue
        if last is None or last.is_final:
            before = "nothing" if last is None else last.key.run_id
            text = f"{schedule.text!r} was to run at {following}; its chain ended with {before}"
            yield Violation(_I1, job_id, text, following)


def _covering(rows: Sequence[Run]) -> dict[str, list[tuple[datetime, datetime]]]:
    """The spans of rows of catch-ups, by generation."""
    covering: dict[str, list[tuple[datetime, datetime]]] = {}
    for row in rows:
        if row.key.kind is RunKind.MISSED and row.covers_from is not None:
            span = (row.covers_from, row.key.fire_at)
            covering.setdefault(row.key.request_id, []).append(span)
    return covering


def _span(indexed: Indexed) -> str:
    return f"{indexed.generation_id} ({indexed.from_at}, {indexed.until_at or 'on'}]"
