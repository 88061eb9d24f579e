"""Calls of targets as they are seen: what was known of the caller, and what has come of each."""

from dataclasses import dataclass, replace
from datetime import datetime

from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.executor.targets import Call, Outcome, Success
from carillon.simulation.loop import Task
from carillon.simulation.targets import TargetCall
from carillon.stores.memory.messaging import Received
from tests.simulation.judging.evidence import Delivery


@dataclass(frozen=True, slots=True)
class Read:
    """What a task last read of a job's row: its revision, 0 where there was none, and its lane."""

    at: datetime
    revision: int
    lane: Lane | None


@dataclass(slots=True)
class Delivered:
    """A call of a target, and what was known of its caller when it began."""

    begun: TargetCall
    read: Read | None
    task: Task | None
    faults_before: int | None
    taken: Received | None
    chunk_claimed_at: datetime | None = None
    asked_at: datetime | None = None
    ended: TargetCall | None = None


def _is_success(call: Call, outcome: Outcome | None) -> bool:
    """Whether the call ends its run as succeeded: it leaves it open if that is accepted."""
    if not isinstance(outcome, Success):
        return False
    return call.report_to is None or not outcome.is_accepted


def _may_be_late(taken: Received | None) -> bool:
    order = None if taken is None else taken.order
    if not isinstance(order, Message):
        return False
    return order.missed is not None or order.wait_until is not None or bool(order.in_time)


def delivery_of(seen: Delivered) -> Delivery:
    begun, task = seen.begun, seen.task
    delivery = Delivery(
        run_id=begun.call.run_id,
        owner=begun.call.owner,
        job_id=begun.call.job_id,
        attempt=begun.call.attempt,
        begun_at=begun.begun_at,
        process=begun.process,
        job_read_at=None if seen.read is None else seen.read.at,
        job_revision=None if seen.read is None else seen.read.revision,
        lane=None if seen.taken is None else seen.taken.lane,
        may_be_late=_may_be_late(seen.taken),
        chunk_claimed_at=seen.chunk_claimed_at,
        asked_at=seen.asked_at,
        job_lane=None if seen.read is None else seen.read.lane,
        is_untouched=task is not None
        and task.process.faults == seen.faults_before
        and not task.died
        and task.failure is None,
    )
    if seen.ended is None:
        return delivery
    return replace(
        delivery,
        ended_at=seen.ended.ended_at,
        is_done=seen.ended.is_done,
        is_success=_is_success(begun.call, seen.ended.outcome),
    )
