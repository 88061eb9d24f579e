"""What must hold of a chaos run: what the checker of all runs says, and what only a run shows whose
target, clock and customer are apart from the code."""

from collections.abc import Callable, Iterator
from datetime import datetime

from carillon.domain.job import Job, JobState
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.targets import WebhookTarget
from tests.e2e.chaos.evidence import EFFECT_BELOW, Story, evidence_of
from tests.simulation.judging import checker
from tests.simulation.judging.known import Known

OUTCOMES = frozenset({RunStatus.SUCCEEDED, RunStatus.DEAD, RunStatus.TIMED_OUT})


def violations(story: Story) -> list[str]:
    """What does not hold, in words; empty when all does."""
    told = [f"{each.invariant}: {each.text}" for each in checker.violations(evidence_of(story))]
    return told + [found for rule in RULES for found in rule(story)]


def lost(story: Story) -> list[str]:
    """Occurrences without outcome, runs that never ended, acknowledgements that were forgotten."""
    found = checker.violations(evidence_of(story))
    return [each.text for each in found if each.invariant == "I1"]


def called_after_success(story: Story) -> Iterator[str]:
    """Calls of a run that came when its success was recorded already."""
    rows = {run.key.run_id: run for run in story.found.all_runs}
    for each in story.arrivals:
        run = rows.get(each.run_id)
        if run is None or run.status is not RunStatus.SUCCEEDED or run.finished_at is None:
            continue
        if each.came_at > run.finished_at:
            text = f"was called at {each.came_at}, after its success at {run.finished_at}"
            yield f"{each.run_id} {text}"


def ran_outside(story: Story) -> Iterator[str]:
    """Runs of the schedule in a pause or after a deletion.

    Lenient by the longest call: a pause counts from before its commit, so that an executor may
    still have read the row as it was.
    """
    generations = Known(evidence_of(story)).generations
    for job_id, indexed in generations.items():
        if not all(each.is_computable for each in indexed):
            continue
        ends = [(each, each.until_at and each.until_at + story.longest_call) for each in indexed]
        for run in story.found.runs[job_id]:
            at = run.key.fire_at
            is_within = any(f.yields(at) and (end is None or at <= end) for f, end in ends)
            if run.key.kind is RunKind.SCHEDULED and run.status in OUTCOMES and not is_within:
                yield f"{run.key.run_id} ran, but is no occurrence of an active span"


def started_early(story: Story) -> Iterator[str]:
    """What rows say of starts; tasks leave no other evidence."""
    for run in story.found.all_runs:
        due_at = run.effective_at or run.key.fire_at
        if run.started_at is not None and run.started_at < due_at:
            yield f"{run.key.run_id} started at {run.started_at}, before {due_at}"


def unwitnessed(story: Story) -> Iterator[str]:
    """Successes that the target knows nothing of."""
    done = {(each.run_id, each.attempt) for each in story.arrivals if each.status < EFFECT_BELOW}
    for run in story.found.all_runs:
        is_told = (run.key.run_id, run.attempt) in done
        if run.status is RunStatus.SUCCEEDED and not is_told and _calls_witness(story, run):
            yield f"{run.key.run_id} succeeded at attempt {run.attempt}, which nobody answered"


def _calls_witness(story: Story, run: Run) -> bool:
    job = story.found.jobs.get(run.key.job_id)
    if job is None:
        return False
    target = job.spec.on_failure if run.key.kind is RunKind.CALLBACK else job.spec.target
    return isinstance(target, WebhookTarget)


def unfinished(story: Story) -> Iterator[str]:
    """Chunks that were claimed, and never ended."""
    for chunk in story.found.chunks:
        if not chunk.is_final:
            yield f"chunk {chunk.key.name} was claimed at {chunk.claimed_at}, and never ended"


def contradicted(story: Story) -> Iterator[str]:
    """Job rows that are not as the last acknowledgement said."""
    for each in story.acknowledgements:
        if each.call == "create" and not each.was_done and each.job_id in story.found.jobs:
            yield f"{each.job_id}: its creation was answered {each.status}, and it is there"
        if each.call == "delete" and each.was_done and not _is_gone(story, each.job_id):
            yield f"{each.job_id} was deleted, and is there"
    for job_id, job in story.found.jobs.items():
        wanted = _state_by_answers(story, job_id)
        if wanted is not None and not job.is_tombstone and job.state is not wanted:
            yield f"{job_id} is {job.state.value}, and was answered to be {wanted.value}"


def _is_gone(story: Story, job_id: str) -> bool:
    job: Job | None = story.found.jobs.get(job_id)
    return job is not None and job.is_tombstone


def _state_by_answers(story: Story, job_id: str) -> JobState | None:
    states = {"pause": JobState.PAUSED, "resume": JobState.ACTIVE}
    own = (each for each in story.acknowledgements if each.job_id == job_id and each.was_done)
    said = [states[each.call] for each in own if each.call in states]
    return said[-1] if said else None


def disobedient(story: Story) -> Iterator[str]:
    """Calls that can only follow a read of the job after its acknowledged pause or deletion."""
    rests = list(_rests(story))
    rows = {run.key.run_id: run for run in story.found.all_runs}
    for each in story.arrivals:
        run = rows.get(each.run_id)
        if run is None:
            continue
        by_schedule = run.key.kind is RunKind.SCHEDULED and run.key.redrive == 0
        for job_id, is_deleted, from_at, until_at in rests:
            is_bound = run.key.job_id == job_id and (is_deleted or by_schedule)
            if is_bound and from_at + story.longest_call < each.came_at < until_at:
                yield f"{each.run_id} was called at {each.came_at}, its job rested from {from_at}"


def _rests(story: Story) -> Iterator[tuple[str, bool, datetime, datetime]]:
    """Job id, whether it was deleted, and from when until when it must not run."""
    done = [each for each in story.acknowledgements if each.was_done]
    for number, each in enumerate(done):
        if each.call not in ("pause", "delete"):
            continue
        later = (one for one in done[number:] if one.job_id == each.job_id)
        resumed_at = next(
            (one.requested_at for one in later if one.call == "resume"), story.ended_at
        )
        until_at = story.ended_at if each.call == "delete" else resumed_at
        yield each.job_id, each.call == "delete", each.acknowledged_at, until_at


RULES: tuple[Callable[[Story], Iterator[str]], ...] = (
    called_after_success,
    ran_outside,
    started_early,
    unwitnessed,
    unfinished,
    contradicted,
    disobedient,
)
