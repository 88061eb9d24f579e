"""The work of a backfill's steps: send runs for occurrences of a span of time."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from carillon.domain.execution.missed import missed_among
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.operation import Operation, OperationState, Progress, why_not_filled
from carillon.domain.run import RunKey, RunKind
from carillon.executor.ports import ExecutorPorts
from carillon.services.calendar_reader import CalendarReader
from carillon.services.missed_search import CHUNK, MissedSearch

SHORTEST_PAUSE_SECONDS = 60
LONGEST_PAUSE_SECONDS = 600
"""Between two checks of a job that is paused."""
_SECOND = timedelta(seconds=1)


class Backfill:
    """Raises StoreUnavailableError and QueueUnavailableError; then the step is done again."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._search = MissedSearch(ports.history)

    def step(self, operation: Operation, begin: datetime, work_until: datetime) -> Progress:
        """Send what is due in a step that begins at `begin`, as long as time is left.

        Occurrences are those of the job's schedule and calendar as they are now, ascending.
        """
        job = self._ports.jobs.get(operation.owner, operation.job_id)
        if job is None or job.is_tombstone:
            return _failed(operation, "the job is there no more")
        reason = why_not_filled(job)  # it may have been changed since the request
        if reason is not None:
            return _failed(operation, reason)
        if job.state is JobState.PAUSED:
            return _keep_waiting(operation, job, begin)
        fire_times, passed_over, cursor, is_end = self._chosen(operation, job, work_until)
        messages = [
            _message(operation, job, fire_at, operation.due_at(place, begin))
            for place, fire_at in enumerate(fire_times)
        ]
        now = self._ports.clock.now()
        self._ports.queue.send(messages, [message.delay_seconds(now) for message in messages])
        state = OperationState.SUCCEEDED if is_end else OperationState.RUNNING
        return Progress(cursor, len(messages), passed_over, state)

    def _chosen(
        self, operation: Operation, job: Job, work_until: datetime
    ) -> tuple[list[datetime], int, str, bool]:
        """The next fire times to run, the number of others that need no run, the cursor behind them
        all, and True at the end."""
        chosen: list[datetime] = []
        passed_over = 0
        cursor = operation.cursor
        ahead = self._ahead(operation, job)
        while chunk := list(islice(ahead, CHUNK)):
            wanted = set(self._wanted(operation, job, chunk))
            for fire_at in chunk:
                if fire_at in wanted:
                    if len(chosen) == operation.step_size:
                        return chosen, passed_over, cursor, False
                    chosen.append(fire_at)
                else:
                    passed_over += 1
                cursor = str(int(fire_at.timestamp()))
            if self._ports.clock.now() >= work_until:
                return chosen, passed_over, cursor, False
        return chosen, passed_over, cursor, True

    def _ahead(self, operation: Operation, job: Job) -> Iterator[datetime]:
        """The occurrences behind the operation's cursor."""
        assert operation.from_at is not None
        assert operation.until_at is not None
        after = operation.reached_at or operation.from_at - _SECOND
        return CalendarReader(self._ports.calendars).opened(job).between(after, operation.until_at)

    def _wanted(self, operation: Operation, job: Job, chunk: list[datetime]) -> list[datetime]:
        if not operation.only_missed:
            return chunk
        rows = self._search.rows_of_all(job, chunk)
        # Runs that this operation has sent are under way, or were: a step that is repeated sends
        # them again.
        others = [row for row in rows if row.key.request_id != operation.operation_id]
        now = self._ports.clock.now()
        found = missed_among(job, chunk, others, now, now - self._ports.run_lifetime)
        return [missed.fire_at for missed in found]


def _failed(operation: Operation, note: str) -> Progress:
    return Progress(operation.cursor, state=OperationState.FAILED, note=note)


def _keep_waiting(operation: Operation, job: Job, begin: datetime) -> Progress:
    """Wait for a paused job: the longer it is paused, the longer until the next check."""
    paused_seconds = int((begin - (job.paused_at or begin)).total_seconds())
    return Progress(
        operation.cursor,
        note="the job is paused: this continues within ten minutes after it is resumed",
        pause_seconds=min(max(paused_seconds, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS),
    )


def _message(operation: Operation, job: Job, fire_at: datetime, due_at: datetime) -> Message:
    key = RunKey(job.owner, job.job_id, RunKind.BACKFILL, fire_at, operation.operation_id)
    return Message.of(job, key, due_at)
