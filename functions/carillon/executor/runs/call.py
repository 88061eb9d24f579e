"""A run's call: its target, its payload, the watch of its row, and its outcome."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from threading import Event

from carillon.domain.decisions import Skip, SkipReason
from carillon.domain.execution import completing
from carillon.domain.execution import transitions as running
from carillon.domain.execution.callbacks import callback_payload, callback_target
from carillon.domain.execution.stopping import LOOK_SECONDS
from carillon.domain.execution.successors import PREDECESSOR_GONE
from carillon.domain.idempotency import record_key_of_run
from carillon.domain.job import Job
from carillon.domain.notifying.channels import delivered_by
from carillon.domain.notifying.notification import Deliverable, notification_of
from carillon.domain.run import Completion, Run, RunKey, RunKind, one_line
from carillon.domain.targets import WebhookTarget
from carillon.domain.templates import TemplateValues, render_payload
from carillon.errors import StoreUnavailableError
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.context import RunContext
from carillon.executor.targets import Call, Failure, ReportTo, Success
from carillon.services.results import keeps_whole, with_result


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A target and the payload that it gets, compact JSON text. Of an attempt that may end by a
    report: the terms, and where the report goes."""

    target: Deliverable
    payload: str
    completion: Completion | None = None
    report_to: ReportTo | None = field(default=None, repr=False)

    def goes_on(self, *, is_accepted: bool) -> bool:
        """True if the run stays open after a call that has succeeded: a webhook's receiver says so
        (202), and any other target only takes the work."""
        is_open = is_accepted or not isinstance(self.target, WebhookTarget)
        return self.completion is not None and is_open

    def call(self, run: Run, job: Job, limit_seconds: int, stopped: Event) -> Call:
        """The call for the attempt that `run` is at; it is to end when `stopped` is set."""
        return Call(
            run_id=run.key.run_id,
            job_id=job.job_id,
            job_name=job.spec.name,
            owner=job.owner,
            attempt=run.attempt,
            fire_at=run.key.fire_at,
            payload=self.payload,
            timeout_seconds=limit_seconds,
            effective_at=run.effective_at,
            tags=tuple(job.spec.tags.items()),
            report_to=self.report_to,
            stopped=stopped,
            unanswered=_unanswered(run),
            keeps_whole=keeps_whole(job),
        )


_NOT_BEGUN = frozenset(
    {"BlockedException", "ClientException", "connect_error", "no_credentials", "throttled"}
)
"""Kinds of errors of ECS by which an attempt has begun nothing; about those before it they say
nothing."""
_NOTHING_RUNS = frozenset({"ConflictException", "not_placed"})
"""Kinds of errors of ECS by which nothing runs of the attempts before, either."""


def _unanswered(run: Run) -> int:
    """The number of last attempts, from the first on that may have had an effect which nobody saw.

    An attempt that was to report its end is none of these.
    """
    last = takewhile(
        lambda each: each.error.kind not in _NOTHING_RUNS and not each.token_hash,
        reversed(run.attempts),
    )
    asked = (each.attempt for each in last if each.error.kind not in _NOT_BEGUN)
    return run.attempt - min(asked, default=run.attempt)


def prepare_call(ports: ExecutorPorts, run: Run, context: RunContext) -> PreparedCall | Skip:
    """The call of a claimed run; a callback may have lost its target, or the run that it reports, a
    template the run that it follows, and a payload that was given for the run alone may have
    expired.

    Raises StoreUnavailableError.
    """
    job = context.job
    if run.key.kind is RunKind.NOTICE:
        return _prepare_notice(ports, run.key)
    if run.key.kind is RunKind.CALLBACK:
        told = ports.runs.get(run.key.called_back)
        target = None if told is None else callback_target(job, told)
        if told is None or target is None:
            lost = "the run it tells of is gone" if told is None else "its target was taken away"
            return Skip(SkipReason.CHANGED, lost)
        return PreparedCall(target, callback_payload(told, job))
    payload = job.spec.payload
    if run.key.has_own_payload:
        record = ports.records.get(run.key.owner, record_key_of_run(run.key))
        if record is None or record.payload is None:
            return Skip(SkipReason.CHANGED, "the payload that it was asked for with has expired")
        payload = record.payload
    if not job.spec.template:
        return PreparedCall(job.spec.target, payload)
    if run.key.kind is RunKind.AFTER and context.before is None:
        return Skip(SkipReason.CHANGED, PREDECESSOR_GONE)
    values = TemplateValues(
        fire_at=run.key.fire_at,
        effective_at=run.effective_at or run.key.fire_at,
        run_id=run.key.run_id,
        attempt=run.attempt,
        job_id=job.job_id,
        job_name=job.spec.name,
        tags=job.spec.tags,
        after=context.before,
    )
    return PreparedCall(job.spec.target, render_payload(payload, values))


def _prepare_notice(ports: ExecutorPorts, key: RunKey) -> PreparedCall | Skip:
    notification = ports.notifications.get(key.owner, notification_of(key))
    notice = ports.notices.get(key)
    if notification is None or notice is None:
        lost = "its notification" if notification is None else "what it was to say"
        return Skip(SkipReason.CHANGED, f"{lost} is gone")
    return PreparedCall(*delivered_by(notification.channel, notice))


class StopWatch:
    """A call that is shorter than LOOK_SECONDS costs no read here."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def is_lost(self, run: Run) -> bool:
        """True if the run was cancelled, or taken over, since it was claimed: nothing that is
        written under the claim counts any more. False where the store fails."""
        with suppress(StoreUnavailableError):
            seen = self._ports.runs.get(run.key)
            return seen is None or not seen.is_held_by(run)
        return False

    def has_ended(self, run: Run) -> bool:
        """True if the run has, by whichever row it has. False where the store fails."""
        with suppress(StoreUnavailableError):
            seen = self._ports.runs.get(run.key)
            return seen is not None and seen.is_final
        return False

    @contextmanager
    def around_call(self, run: Run) -> Iterator[Event]:
        """The event that is set once the run is lost, until when its row is read regularly."""
        stopped = Event()
        call_off = self.watch(run, stopped)
        try:
            yield stopped
        finally:
            call_off()

    def watch(self, run: Run, stopped: Event) -> Callable[[], None]:
        """Read the row of the run regularly, and set `stopped` once it is lost, until the answer
        calls it off."""

        def look() -> None:
            if not stopped.is_set() and self.is_lost(run):
                stopped.set()

        return self._ports.timers.every(LOOK_SECONDS, look)


def delivered(
    ports: ExecutorPorts,
    run: Run,
    job: Job,
    order: PreparedCall,
    limit_seconds: int,
    stopped: Event,
) -> Run:
    """Call the target of the claimed run; answers the run as the call has left it, open or ended,
    which is still to be recorded."""
    call = order.call(run, job, limit_seconds, stopped)
    run = replace(running.begun(run, ports.clock.now()), completion=order.completion)
    ports.lifecycle.started(run, job, run.attempt_started_at or run.updated_at)
    outcome = ports.targets.deliver(order.target, call)
    now = ports.clock.now()
    match outcome:
        case Success(result, is_accepted) if order.goes_on(is_accepted=is_accepted):
            return completing.opened(run, now)
        case Success(result):
            run = _with_result(ports, run, job, result)
            return running.succeeded(run, run.result, now)
        case Failure(error, timed_out, retry_after):
            fraction = ports.entropy.fraction()
            return running.failed(run, job, error, timed_out, now, fraction, retry_after)


def _with_result(ports: ExecutorPorts, run: Run, job: Job, text: str | None) -> Run:
    """The run with its result; with its beginning alone where the store does not take the rest: the
    call has been made, and is not to be made again for that."""
    try:
        return with_result(ports.runs, run, job, text)
    except StoreUnavailableError:
        return replace(run, result=None if text is None else one_line(text))
