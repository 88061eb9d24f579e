"""Ways to spoil a story that is right, each of which the checks must see: one for each rule of
chaos's own, and one for each kind of evidence that the checker is given."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta

from carillon.domain.activity.results import Result
from carillon.domain.run import Run, RunKind, RunStatus
from tests.e2e.chaos.customer import Acknowledgement
from tests.e2e.chaos.evidence import Story, evidence_of
from tests.e2e.chaos.witness import Arrival
from tests.simulation.judging.checker_activity import TOLD_WITHIN

SECOND = timedelta(seconds=1)


def a_row_is_lost(story: Story) -> Story:
    return _without(story, _a_success(story))


def a_run_starts_early(story: Story) -> Story:
    run = _a_success(story)
    early = replace(run, started_at=run.key.fire_at - SECOND)
    return _with(_without(story, run), early)


def a_call_follows_a_success(story: Story) -> Story:
    run = _a_success(story)
    again = replace(_call_of(story, run), attempt=99, came_at=run.updated_at + SECOND)
    return _with_arrivals(story, [*story.arrivals, again])


def an_attempt_is_made_twice(story: Story) -> Story:
    return _with_arrivals(story, [*story.arrivals, _call_of(story, _a_success(story))])


def a_success_was_never_called(story: Story) -> Story:
    run_id = _a_success(story).key.run_id
    return _with_arrivals(story, [each for each in story.arrivals if each.run_id != run_id])


def a_chunk_never_ended(story: Story) -> Story:
    first, *others = story.found.chunks
    chunks = [replace(first, ends=None), *others]
    return replace(story, found=replace(story.found, chunks=chunks))


def a_created_job_is_gone(story: Story) -> Story:
    first = next(each for each in story.acknowledgements if each.call == "create")
    jobs = {job_id: job for job_id, job in story.found.jobs.items() if job_id != first.job_id}
    return replace(story, found=replace(story.found, jobs=jobs))


def a_paused_job_went_on(story: Story) -> Story:
    run = _a_success(story)
    paused_at = run.key.fire_at - 2 * story.longest_call
    pause = Acknowledgement("pause", run.key.job_id, paused_at, paused_at, 200, 1)
    others = [each for each in story.acknowledgements if each.job_id != run.key.job_id]
    return replace(story, acknowledgements=[*others, pause])


def a_run_is_no_occurrence(story: Story) -> Story:
    run = _a_success(story)
    before = story.found.jobs[run.key.job_id].generation.from_at - timedelta(hours=1)
    other = replace(run, key=replace(run.key, fire_at=before))
    arrival = replace(_call_of(story, run), run_id=other.key.run_id)
    return _with_arrivals(_with(story, other), [*story.arrivals, arrival])


def a_deleted_job_is_there(story: Story) -> Story:
    run = _a_success(story)
    deletion = Acknowledgement(
        "delete", run.key.job_id, story.ended_at, story.ended_at, 204, tries=1
    )
    return replace(story, acknowledgements=[*story.acknowledgements, deletion])


def a_message_is_left(story: Story) -> Story:
    return replace(story, leftovers=["1 message"])


def a_row_of_the_feed_is_dropped(story: Story) -> Story:
    lost = evidence_of(story).activity_lost
    # What ended at the last need not be told yet.
    settled = {
        run.key.run_id
        for run in story.found.all_runs
        if max(run.key.fire_at, run.updated_at + TOLD_WITHIN) <= story.ended_at
    }
    gone = next(
        each
        for each in story.found.activity
        if _is_told(each) and each.identity not in lost and each.identity[0] in settled
    )
    left = [each for each in story.found.activity if each.identity != gone.identity]
    return replace(story, found=replace(story.found, activity=left))


def a_summary_leaves_a_job_out(story: Story) -> Story:
    job_id = _a_success(story).key.job_id
    summed = {
        begin: [each for each in counted if each.job_id != job_id]
        for begin, counted in story.found.summed.items()
    }
    return replace(story, found=replace(story.found, summed=summed))


TAMPERINGS: tuple[tuple[Callable[[Story], Story], str], ...] = (
    (a_row_is_lost, "has no row"),
    (a_run_starts_early, "started at"),
    (a_call_follows_a_success, "after its success"),
    (an_attempt_is_made_twice, "was made at"),
    (a_success_was_never_called, "nobody answered"),
    (a_chunk_never_ended, "and never ended"),
    (a_created_job_is_gone, "there is no such job"),
    (a_paused_job_went_on, "its job rested"),
    (a_run_is_no_occurrence, "is no occurrence"),
    (a_deleted_job_is_there, "was deleted, and is there"),
    (a_message_is_left, "1 message"),
    (a_row_of_the_feed_is_dropped, "not in the feed"),
    (a_summary_leaves_a_job_out, ", 0 are summed up"),
)
"""With each, words of what the checks then say."""


def _a_success(story: Story) -> Run:
    """A scheduled run that succeeded by a call of the witness, of a job that is still there."""
    called = {each.run_id for each in story.arrivals}
    return next(
        run
        for run in story.found.all_runs
        if run.status is RunStatus.SUCCEEDED
        and run.key.kind is RunKind.SCHEDULED
        and run.key.run_id in called
        and not story.found.jobs[run.key.job_id].is_tombstone
    )


def _is_told(result: Result) -> bool:
    return result.status in (RunStatus.DEAD, RunStatus.RETRYING)


def _call_of(story: Story, run: Run) -> Arrival:
    return next(each for each in story.arrivals if each.run_id == run.key.run_id)


def _without(story: Story, gone: Run) -> Story:
    job_id = gone.key.job_id
    left = [run for run in story.found.runs[job_id] if run.key != gone.key]
    return replace(story, found=replace(story.found, runs={**story.found.runs, job_id: left}))


def _with(story: Story, more: Run) -> Story:
    job_id = more.key.job_id
    runs = {**story.found.runs, job_id: [*story.found.runs[job_id], more]}
    return replace(story, found=replace(story.found, runs=runs))


def _with_arrivals(story: Story, arrivals: Iterable[Arrival]) -> Story:
    return replace(story, arrivals=list(arrivals))
