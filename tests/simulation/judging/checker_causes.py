"""What no row shows to be wrong: calls for a generation that had ended, two at once, catch-ups
without an outage."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from carillon.audit.evidence import Violation
from carillon.audit.known import Indexed
from carillon.audit.outcomes import in_gap
from carillon.domain.run import Run, RunKind
from carillon.schedules import Delay
from tests.simulation.judging.known import Known, had_passed

_I1 = "I1"


def called_after_its_end(known: Known) -> Iterator[Violation]:
    """Starts of occurrences whose generation had ended, by the row that the process had read: a
    change or pause that was committed after the read comes too late for it.

    Lenient: attempts after the first, since retries are not asked for their schedule.
    """
    for job_id, generations in known.generations.items():
        if not all(indexed.is_computable for indexed in generations):
            continue
        for row in known.rows.get(job_id, ()):
            if row.key.is_occurrence:
                yield from _called_after_its_end(known, row, generations)


def _called_after_its_end(
    known: Known, row: Run, generations: Sequence[Indexed]
) -> Iterator[Violation]:
    fire_at, run_id = row.key.fire_at, row.key.run_id
    yielding = [indexed for indexed in generations if indexed.yields(fire_at)]
    if not yielding or any(indexed.covers(fire_at) for indexed in yielding):
        return
    for delivery in known.deliveries.get(run_id, ()):
        revision = delivery.job_revision
        if delivery.attempt > 1 or revision is None:
            continue
        if not any(f.ended_revision is None or revision < f.ended_revision for f in yielding):
            text = (
                f"{run_id} was called at {delivery.begun_at} by {delivery.process}, which had read"
                f" revision {revision}: by then {' and '.join(map(str, yielding))} had ended"
            )
            yield Violation(_I1, row.key.job_id, text, fire_at)


def two_at_once(known: Known) -> Iterator[Violation]:
    """Runs of one generation of a fixed delay that were called, at once: a chain never forks.

    A change begins another chain, while the last run of the old one may still be under way. A
    message that a lost change has sent may claim a run of the same instant, and takes it back.
    Lenient under a calendar, which moves what follows.
    """
    for job_id, generations in known.generations.items():
        # A change of a paused job is a new version alone: the generation is that of its schedule
        # before.
        last_job, own_job = known.evidence.versions[job_id][-1].job, generations[-1].job
        if not isinstance(own_job.schedule, Delay) or last_job.spec.calendar is not None:
            continue
        called = {
            row.key: row.generation_id
            for row in known.rows.get(job_id, ())
            if row.key.is_occurrence and row.key.fire_at > generations[-1].from_at
        }
        spans = [
            span
            for span in known.unfinished.get(job_id, ())
            if span.key in called
            and any(
                span.affects(each.begun_at, each.begun_at)
                for each in known.deliveries.get(span.key.run_id, ())
            )
        ]
        spans.sort(key=lambda span: span.from_at)
        for generation_id in sorted(set(called.values())):
            chain = [span for span in spans if called[span.key] == generation_id]
            for one, other in pairwise(chain):
                is_over = one.until_at is not None and other.from_at >= one.until_at
                if one.key != other.key and not is_over:
                    began = f"{other.key.run_id} began at {other.from_at}"
                    text = f"{began}, before {one.key.run_id} had ended"
                    yield Violation(_I1, job_id, text, other.key.fire_at)


def caught_up_on_nothing(known: Known) -> Iterator[Violation]:
    """Rows of catch-ups of generations that never were, by all that the job's rows remember, or for
    occurrences that no outage left out."""
    if not known.evidence.is_complete:
        return
    for job_id, rows in known.rows.items():
        for row in rows:
            if row.key.kind is RunKind.MISSED and row.covers_from is not None:
                for text in _caught_up_on_nothing(known, row, row.covers_from):
                    yield Violation(_I1, job_id, f"{row.key.run_id}: {text}", row.key.fire_at)


def _caught_up_on_nothing(known: Known, row: Run, first: datetime) -> Iterator[str]:
    generations, name = known.generations.get(row.key.job_id, ()), row.key.request_id
    indexed = next((each for each in generations if each.generation_id == name), None)
    if indexed is None:
        # Of generations older than those that it remembers, a row tells none from another.
        if not any(each.job.has_counted(name) for each in known.evidence.versions[row.key.job_id]):
            yield f"no generation {name} was ever committed"
        return
    gaps = [gap for gap in known.evidence.gaps if gap.segment == indexed.job.segment]
    if not indexed.is_computable:
        return
    for fire_at in indexed.job.schedule.between(first - timedelta(seconds=1), row.key.fire_at):
        if not in_gap(gaps, fire_at + indexed.spread) and not had_passed(indexed, fire_at):
            yield f"{fire_at} lay in no outage of segment {indexed.job.segment}"
