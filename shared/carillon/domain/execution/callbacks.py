"""Messages to others about a run or a job: the data of events, and callbacks about an end."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from carillon.clock import utc_text
from carillon.domain.changes.change import Change
from carillon.domain.events import Event, EventType
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.targets import Target


def run_data(run: Run, job: Job | None) -> dict[str, Any]:
    """The run as JSON: the `data` of run events and the payload of callbacks.

    `fire_at` and `effective_at` are instants as 2026-11-21T12:00:17Z, the same where the job has no
    window; `result` is text or null, `error` null or `{kind, message}`. A row that covers a span
    has `covers_from` and `covers_count` (null: not counted) besides. Without the job, which cannot
    be read, its name and tags are empty.
    """
    key, error, spec = run.key, run.error, None if job is None else job.spec
    data: dict[str, Any] = {
        "run_id": key.run_id,
        "job_id": key.job_id,
        "job_name": "" if spec is None else spec.name,
        "kind": key.kind.value,
        "fire_at": utc_text(key.fire_at),
        "effective_at": utc_text(run.effective_at or key.fire_at),
        "attempt": run.attempt,
        "redrive": key.redrive,
        "status": run.status.value,
        "reason": run.reason,
        "note": run.note,
        "error": None if error is None else {"kind": error.kind, "message": error.message},
        "result": run.result,
        "tags": {} if spec is None else spec.tags,
        "parent": None if spec is None else spec.parent,
    }
    if run.covers_from is not None:
        data |= {"covers_from": utc_text(run.covers_from), "covers_count": run.covers_count}
    return data


def lane_event(what: EventType, job: Job, at: datetime, reason: str = "") -> Event:
    """The event data about a job that changes its lane at `at`, under the same revision."""
    event = job_event(what, job, at)
    moved = {"lane": job.lane.value, "priority": job.spec.priority.value, "reason": reason or None}
    event_id = f"{job.job_id}/{at.isoformat()}/{what.value}"
    return replace(event, event_id=event_id, data={**event.data, **moved})


def job_event(what: EventType, job: Job, at: datetime) -> Event:
    """The event data about a job, by its row as it was put, or has been changed since.

    The instant makes the id: a repetition may find another revision. A job that is complete is so
    whether its row is kept, and as it was, or is a tombstone.
    """
    state = JobState.COMPLETED if what is EventType.JOB_COMPLETED else job.state
    data = {
        "job_id": job.job_id,
        "job_name": job.spec.name,
        "state": state.value,
        "note": job.note or None,
        "tags": job.spec.tags,
        "parent": job.spec.parent,
    }
    return Event(f"{job.job_id}/{at.isoformat()}/{what.value}", what, job.job_id, at, data)


def change_event(job: Job, change: Change) -> Event:
    """The event data about what somebody did to a job, or to runs of it: what `changes` answers."""
    event = job_event(EventType.JOB_CHANGED, job, change.at)
    told = {
        "action": change.action.value,
        "revision": change.revision,
        "by": change.author.who,
        "via": change.author.via.value,
        "changed": change.members,
        "note": change.note or None,
        "source": change.source or None,
        "ref": change.ref or None,
    }
    event_id = f"{job.job_id}/{change.position}/{EventType.JOB_CHANGED.value}"
    return replace(event, event_id=event_id, data={**event.data, **told})


def callback_target(job: Job, run: Run) -> Target | None:
    """The call that the end of `run` demands. None if there is none: its job wants no such call,
    the run has not ended by success or failure, or is itself a callback."""
    if run.key.kind is RunKind.CALLBACK:
        return None
    match run.status:
        case RunStatus.SUCCEEDED:
            return job.spec.on_success
        case RunStatus.DEAD | RunStatus.TIMED_OUT:
            return job.spec.on_failure
        case _:
            return None


def callback_payload(run: Run, job: Job) -> str:
    """The payload of a callback about `run`, as compact JSON."""
    return json.dumps(run_data(run, job), ensure_ascii=False, separators=(",", ":"))


def callback_message(run: Run, message: Message) -> Message:
    """The order to call back about `run`, which `message` has ended: due at once.

    A function of the run's row, so that a repetition sends the same.
    """
    return Message(
        key=run.key.callback,
        generation_id=message.generation_id,
        segment=message.segment,
        lane=message.lane,
        due_at=(run.finished_at or run.updated_at).replace(microsecond=0),
    )
