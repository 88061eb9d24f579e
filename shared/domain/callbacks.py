"""What others are told of a run: the data of its events, and the calls back about its end."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.run import Run, RunKind, RunStatus
from shared.domain.targets import Target


def run_data(run: Run, job: Job) -> dict[str, Any]:
    """The run as JSON: the `data` of run events and the payload of callbacks.

    `fire_at` and `effective_at` are instants as 2026-11-21T12:00:17Z, the same where the job has no
    window; `result` is text or null, `error` null or `{kind, message}`.
    """
    key, error = run.key, run.error
    return {
        "run_id": key.run_id,
        "job_id": key.job_id,
        "job_name": job.name,
        "kind": key.kind.value,
        "fire_at": _instant(key.fire_at),
        "effective_at": _instant(run.effective_at or key.fire_at),
        "attempt": run.attempt,
        "redrive": key.redrive,
        "status": run.status.value,
        "reason": run.reason,
        "note": run.note,
        "error": None if error is None else {"kind": error.kind, "message": error.message},
        "result": run.result,
        "tags": dict(job.tags),
        "parent": job.parent or None,
    }


def callback_target(job: Job, run: Run) -> Target | None:
    """What is to be called about the end of `run`; None if nothing is: its job wants no such call,
    the run has not ended by success or failure, or is itself a callback."""
    if run.key.kind is RunKind.CALLBACK:
        return None
    match run.status:
        case RunStatus.SUCCEEDED:
            return job.on_success
        case RunStatus.DEAD | RunStatus.TIMED_OUT:
            return job.on_failure
        case _:
            return None


def callback_payload(run: Run, job: Job) -> str:
    """What a callback about `run` sends, as compact JSON."""
    return json.dumps(run_data(run, job), ensure_ascii=False, separators=(",", ":"))


def callback_message(run: Run, message: Message) -> Message:
    """The order to call back about `run`, which `message` has ended: due at once.

    A function of the run's row, so that whoever repeats it sends the same.
    """
    return replace(
        message,
        key=run.key.callback,
        due_at=(run.finished_at or run.updated_at).replace(microsecond=0),
        attempt=1,
        slot_key="",
        missed=None,
        after_finish=False,
        moved_from=None,
        wait_until=None,
        waits=0,
        has_rate_slot=False,
    )


def _instant(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
