"""Operations for simulations: how they begin, and what may happen to their steps."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.job import Job
from carillon.domain.operation import Operation, OperationKind
from carillon.domain.run import DeadReason, Run, RunError, RunKey, RunKind, RunStatus
from carillon.errors import StoreUnavailableError
from tests.support.world import FUNCTION_SECONDS, LIFETIME, OWNER, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def put_dead(world: World, job: Job, count: int, **values: Any) -> list[Run]:
    """Dead letters of the minutes before noon, newest first."""
    rows = []
    for number in range(1, count + 1):
        at = NOON - number * MINUTE
        row = Run(
            key=RunKey(OWNER, job.job_id, RunKind.SCHEDULED, at),
            status=RunStatus.DEAD,
            attempt=1,
            token=1,
            claim_id="claim",
            generation_id=job.generation.generation_id,
            updated_at=at,
            finished_at=at,
            expires_at=at + LIFETIME,
            error=RunError("http_503", "down"),
            reason=DeadReason.EXHAUSTED,
        )
        rows.append(replace(row, **values))
        assert world.runs.claim(rows[-1], None)
    return rows


def begin(world: World, kind: OperationKind, per_minute: int, **values: Any) -> Operation:
    """An operation as the api begins it: its message first, then its row."""
    world.clock.advance(1)
    now = world.clock.now()
    operation = Operation(
        owner=OWNER,
        operation_id=world.entropy.new_id(now).lower(),
        kind=kind,
        created_at=now,
        updated_at=now,
        expires_at=now + LIFETIME,
        per_minute=per_minute,
        **values,
    )
    world.indexer.schedule_message(operation.step_message(now + timedelta(seconds=1)))
    assert world.operations.put(operation, None)
    return operation


def now_of(world: World, operation: Operation) -> Operation:
    stored = world.operations.get(OWNER, operation.operation_id)
    assert stored is not None
    return stored


def run_to_end(world: World, operation: Operation, most_minutes: int = 60) -> Operation:
    until = world.clock.now() + most_minutes * MINUTE
    while not now_of(world, operation).is_final:
        assert world.clock.now() < until, "it does not end"
        world.run_until(world.clock.now() + MINUTE, ticking=False)
    # What the last step has sent starts within its period.
    world.run_until(world.clock.now() + MINUTE, ticking=False)
    return now_of(world, operation)


def most_in_a_minute(starts: list[datetime]) -> int:
    """The most starts in any half-open minute, wherever it begins."""
    ordered = sorted(starts)
    return max(bisect_left(ordered, at + MINUTE) - n for n, at in enumerate(ordered))


def starts(world: World, job: Job) -> list[datetime]:
    return [run.started_at for run in world.history(job) if run.started_at is not None]


def harass(
    world: World, monkeypatch: pytest.MonkeyPatch, fails: Callable[[int], bool], *, after: bool
) -> Callable[[], int]:
    """Let the calls of ports fail whose numbers `fails` names, before or after their work.

    Answers what counts the failures so far.
    """
    calls = failures = 0

    def failing(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal calls, failures
            calls += 1
            if fails(calls):
                failures += 1
                if after:
                    original(*args, **named)
                raise StoreUnavailableError("it died here")
            return original(*args, **named)

        return call

    for port, names in (
        (world.runs, ("claim", "get", "dead_letters", "list")),
        (world.operations, ("get", "put")),
        (world.queue, ("send",)),
    ):
        for name in names:
            monkeypatch.setattr(port, name, failing(getattr(port, name)))
    return lambda: failures


def execute_badly(world: World, until: datetime, *, doubled: bool) -> None:
    """As `run_until`; a message whose handling dies comes again after a minute, out of order."""
    while world.clock.now() <= until:
        ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
        for received in world.queue.receive(world.clock.now(), 1000):
            for _ in range(2 if doubled else 1):
                try:
                    world.executor.handle(received.message, ends_at)
                except StoreUnavailableError:
                    break
            else:
                world.queue.delete(received.receipt)
        world.clock.advance(1)
