"""A call of a target, its outcome, and the facts of the run that it carries."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Any

from carillon.clock import utc_text
from carillon.domain.execution.stopping import STOPPED
from carillon.domain.run import RunError
from carillon.domain.spec.containers import run_variables
from carillon.domain.templates import TemplateValues
from carillon.domain.tracing import TraceContext
from carillon.executor.deadlines import Deadline


@dataclass(frozen=True, slots=True)
class ReportTo:
    """The address, without its action, for a report of an attempt's end, and the token that it
    needs: a secret of the attempt."""

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt, and everything a target may know about it.

    `payload` is compact JSON text, rendered if it was a template. `timeout_seconds` is the hard
    limit of the attempt; it is to end before that once `stopped` is set, as nobody waits for its
    outcome any more. `effective_at` is when the run was to start; None where that is `fire_at`.
    `tags` are the job's, pairs of key and value. Of the `unanswered` attempts just before this one
    the first may have had its effect, which nobody saw. `report_to`: of a target with `completion`.
    `trace`: in a deployment with tracing. `keeps_whole`: the history keeps the result whole.
    """

    run_id: str
    job_id: str
    job_name: str
    owner: str
    attempt: int
    fire_at: datetime
    payload: str
    timeout_seconds: float
    effective_at: datetime | None = None
    tags: tuple[tuple[str, str], ...] = ()
    report_to: ReportTo | None = None
    unanswered: int = 0
    trace: TraceContext | None = None
    keeps_whole: bool = False
    stopped: Event = field(default_factory=Event, compare=False, repr=False)

    def deadline(self) -> Deadline:
        """The deadline of the call, which begins now."""
        return Deadline.after(self.timeout_seconds, self.stopped)

    def timed_out(self, message: str) -> "Failure":
        """The outcome of a call whose deadline has passed."""
        if self.stopped.is_set():
            return Failure(STOPPED)
        return Failure(RunError("timeout", message), timed_out=True)


@dataclass(frozen=True, slots=True)
class Success:
    """`result` is already cut to what the history keeps. `is_accepted`: the answer was
    202, by which a webhook's receiver says that the work goes on."""

    result: str | None
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """`timed_out`: the call was stopped at its limit; whether it had an effect is not known.

    `retry_after_seconds`, at least 0, is when the target asks to be tried again, counted from now.
    """

    error: RunError
    timed_out: bool = False
    retry_after_seconds: float | None = None


Outcome = Success | Failure


class Caller(ABC):
    """Delivers calls to targets of one type; usable from several threads."""

    @abstractmethod
    def deliver(self, target: Any, call: Call) -> Outcome:
        """Answer within the call's limit; raises nothing for what the target does."""

    def room(self) -> AbstractContextManager[bool]:
        """Room for one of many calls side by side, while the context lasts; False where none has
        come about for a while: then the call is to be made elsewhere."""
        return nullcontext(True)

    def prepare(self, count: int) -> None:  # noqa: B027 - most have nothing to do
        """Get ready for `count` calls at once, without waiting."""

    def close(self) -> None:  # noqa: B027
        """Release what is held."""


_ID = re.compile(r"[A-Za-z0-9_-]+")


def facts(call: Call) -> dict[str, str]:
    """The run's id, by which targets deduplicate, its job, attempt, fire time, and trace."""
    trace = {} if call.trace is None else {"traceparent": call.trace.traceparent}
    return {
        **trace,
        "carillon-run-id": call.run_id,
        "carillon-job-id": call.job_id,
        "carillon-attempt": str(call.attempt),
        "carillon-fire-at": utc_text(call.fire_at),
    }


def variables(call: Call) -> dict[str, str]:
    """The variables of the environment that a container gets of the run."""
    values = TemplateValues(
        fire_at=call.fire_at,
        effective_at=call.effective_at or call.fire_at,
        run_id=call.run_id,
        attempt=call.attempt,
        job_id=call.job_id,
        job_name=call.job_name,
    )
    told = call.report_to
    report_to = (told.url, told.token) if told else None
    traceparent = call.trace.traceparent if call.trace else ""
    return run_variables(values, call.payload, report_to, traceparent)


def message_attributes(call: Call) -> dict[str, Mapping[str, Any]]:
    """The same as message attributes of SQS and SNS, and where the attempt's end is reported."""
    told = facts(call)
    if call.report_to is not None:
        told["carillon-completion-url"] = call.report_to.url
        told["carillon-completion-token"] = call.report_to.token
    return {
        name: {
            "DataType": "Number" if name == "carillon-attempt" else "String",
            "StringValue": value,
        }
        for name, value in told.items()
    }


def body_of(call: Call) -> str:
    """The payload, as JSON text. With `completion` an object that has one more member: where the
    attempt's end is reported. A payload that is no object becomes its member `payload`."""
    if call.report_to is None:
        return call.payload
    given = json.loads(call.payload)
    body = given if isinstance(given, dict) else {"payload": given}
    completion = {"url": call.report_to.url, "token": call.report_to.token}
    told = {**body, "carillon_completion": completion}
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def order(arn: str, message_group_id: str | None, call: Call) -> dict[str, str]:
    """Group and deduplication id of a message.

    FIFO queues and topics need both; others take a group (a fair queue's tenant), if one is given.
    """
    if arn.endswith(".fifo"):
        return {
            "MessageGroupId": message_group_id or call.job_id,
            "MessageDeduplicationId": short_id(call_id(call), 128),
        }
    return {} if message_group_id is None else {"MessageGroupId": message_group_id}


def call_id(call: Call) -> str:
    """The id by which services deduplicate: the run's. With `completion` the attempt's, since each
    has a token of its own, and the one before can report no more."""
    return call.run_id if call.report_to is None else f"{call.run_id}_{call.attempt}"


def short_id(run_id: str, limit_characters: int) -> str:
    """The run's id for a service with a limit: itself, or its SHA-256 where it does not fit."""
    if len(run_id) <= limit_characters and _ID.fullmatch(run_id):
        return run_id
    return hashlib.sha256(run_id.encode()).hexdigest()
