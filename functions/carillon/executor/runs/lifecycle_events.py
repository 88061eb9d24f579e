"""Lifecycle events of runs and jobs: which there are, as values, and where they are gathered.
Beside them go the results of attempts, to the activity feed.

An event is a function of its row: a repeated step publishes the same event again, under the same
id.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import Protocol

from carillon.domain.activity.results import results_of
from carillon.domain.events import Event, EventType
from carillon.domain.execution.callbacks import job_event, lane_event, run_data
from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.job import Job, Slow
from carillon.domain.run import DEAD_LETTER, AttemptRecord, DeadReason, Run, RunStatus
from carillon.services.activity import ActivitySink
from carillon.stores.ports import EventSink


class Listener(Protocol):
    """Hears of what goes wrong with a job, whatever events the job has chosen."""

    def heard(self, owner: str, event: Event) -> None:
        """Raises nothing: a run must not fail for a message's sake."""
        ...


class Silent:
    """Listener of nothing."""

    def heard(self, owner: str, event: Event) -> None:
        pass


SILENT = Silent()


class LifecycleEvents:
    """Publishes the events of runs and jobs that each job has chosen, adds the end of every attempt
    to the activity feed, and has a listener hear of all but good runs. Raises nothing."""

    def __init__(
        self, events: EventSink, activity: ActivitySink, listener: Listener = SILENT
    ) -> None:
        self._events = events
        self._activity = activity
        self._listener = listener

    def started(self, run: Run, job: Job, at: datetime) -> None:
        """An attempt of a claimed run begins at `at`; to be called before its target is."""
        if job.spec.events:
            self._tell(job, started(run, job, at))

    def ended(self, run: Run, job: Job) -> None:
        """An attempt has ended, or the run (or a span of them) was skipped: by the row as it was
        put."""
        self._activity.add(results_of(run, job))
        if job.spec.events or run.status in DEAD_LETTER:
            self._tell(job, ended(run, job))

    def buried(self, run: Run) -> None:
        """The run has ended, and its job cannot be read, or is gone: no event, as nobody knows
        which it has chosen."""
        self._activity.add(results_of(run, None))
        if run.status in DEAD_LETTER:
            at = run.finished_at or run.updated_at
            self._listener.heard(run.key.owner, _of_run(EventType.RUN_DEAD, run, None, at))

    def missed(self, row: Run, job: Job) -> None:
        """The missed-run check has put a row."""
        self._activity.add(results_of(row, job))
        self._tell(job, [_of_run(EventType.RUN_MISSED, row, job, row.updated_at)])

    def job_completed(self, job: Job, at: datetime) -> None:
        """No occurrence of the job is left and its last run has ended."""
        self._tell(job, [job_event(EventType.JOB_COMPLETED, job, at)])

    def job_paused(self, job: Job) -> None:
        """The job was paused since its runs have failed: the row as it was put."""
        self._tell(job, [job_event(EventType.JOB_PAUSED, job, job.paused_at or job.updated_at)])

    def job_slowed(self, job: Job, slow: Slow) -> None:
        """The job is served in lane slow: the row as it was put, and its mark."""
        self._tell(job, [lane_event(EventType.JOB_SLOWED, job, slow.since, slow.reason)])

    def job_recovered(self, job: Job, at: datetime) -> None:
        """The job is served by its priority again: the row as it was put."""
        self._tell(job, [lane_event(EventType.JOB_RECOVERED, job, at)])

    def _tell(self, job: Job, events: Iterable[Event]) -> None:
        told = list(events)
        chosen = [event for event in told if event.type in job.spec.events]
        if chosen:
            self._events.emit(chosen)
        for event in told:
            self._listener.heard(job.owner, event)


class BufferedEvents:
    """EventSink that gathers events until `flush`; usable from several threads."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._held: list[Event] = []
        self._lock = Lock()

    def emit(self, events: Sequence[Event]) -> int:
        """Keep the events; answers 0: `flush` answers how many were not taken."""
        with self._lock:
            self._held += events
        return 0

    def flush(self) -> int:
        """Hand all on; answers how many were not taken. Raises nothing."""
        with self._lock:
            held, self._held = self._held, []
        return self._sink.emit(held) if held else 0


def started(run: Run, job: Job, at: datetime) -> Iterator[Event]:
    """The events of an attempt's begin, and of the end of the one before if its executor died, or
    if it has ended by a report, whose message may come after this attempt's."""
    last = run.attempts[-1] if run.attempts else None
    if last is not None and last.token_hash and last.error != EXECUTOR_DIED:
        before = replace(run, status=RunStatus.RETRYING, attempt=last.attempt, error=last.error)
        yield from ended(before, job)
    yield from _died_before(run, job)
    yield _of_run(EventType.RUN_STARTED, run, job, at)


def ended(run: Run, job: Job) -> Iterator[Event]:
    """The events of the row of a run that was finished: none while it is under way."""
    at = run.finished_at or run.updated_at
    match run.status:
        case RunStatus.SUCCEEDED:
            yield _of_run(EventType.RUN_SUCCEEDED, run, job, at)
        case RunStatus.SKIPPED:
            yield from _died_before(run, job)
            yield _of_run(EventType.RUN_SKIPPED, run, job, at)
        case RunStatus.RETRYING:
            # The row of an attempt that waits again is a later one: its record has the end.
            at = run.attempts[-1].finished_at if run.attempts else at
            yield _of_run(EventType.RUN_FAILED, run, job, at)
            yield _of_run(EventType.RUN_RETRYING, run, job, at)
        case RunStatus.DEAD | RunStatus.TIMED_OUT:
            if _was_called(run):
                yield _of_run(EventType.RUN_FAILED, run, job, at)
            else:
                yield from _died_before(run, job)
            yield _of_run(EventType.RUN_DEAD, run, job, at)
        case _:
            return


def _was_called(run: Run) -> bool:
    """True if the attempt of a dead run had begun: it was not claimed only to be given up."""
    return run.reason != DeadReason.EXECUTOR_DIED and run.attempt_started_at is not None


def _of_run(what: EventType, run: Run, job: Job | None, at: datetime) -> Event:
    event_id = f"{run.key.run_id}/{run.attempt}/{what.value}"
    return Event(event_id, what, run.key.run_id, at, run_data(run, job))


def _died_before(run: Run, job: Job) -> Iterator[Event]:
    """The failure of the attempt before, if its executor died: nobody could publish it then."""
    last = run.attempts[-1] if run.attempts else None
    if last is not None and last.error == EXECUTOR_DIED:
        yield _failed(run, job, last)


def _failed(run: Run, job: Job, record: AttemptRecord) -> Event:
    """The failure of an attempt before that of the row."""
    error = {"kind": record.error.kind, "message": record.error.message}
    data = {**run_data(run, job), "attempt": record.attempt, "error": error}
    event_id = f"{run.key.run_id}/{record.attempt}/{EventType.RUN_FAILED.value}"
    return Event(event_id, EventType.RUN_FAILED, run.key.run_id, record.finished_at, data)
