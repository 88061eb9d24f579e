"""Skipped runs use up no starts of a rate and no place of a concurrency key."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.admission.state import (
    PERMITS_ROW,
    AdmissionRow,
    PermitHolder,
    key_admission,
)
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp, Concurrency, Rate
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled
from carillon.executor.router import Router
from tests.support.world import OWNER, quotas_of
from tests.unit.executor.kit import MINUTE, NOON, World

KEY = Concurrency("db", 1)


@pytest.mark.parametrize("grace", [10, 70])
@pytest.mark.parametrize("by", ["job", "owner"])
def test_a_job_that_is_due_more_often_than_its_rate_allows_starts_as_often_as_it_does(
    world: World, grace: int, by: str
) -> None:
    """Those whose grace would be over by then took all starts, so that none ran any more."""
    settings = limited(world, by, Rate(1, 60))
    job = world.create("job", "every 30s", grace=grace, catch_up=CatchUp.SKIP, **settings)
    world.run_until(NOON + 10 * MINUTE)
    assert len(world.fired(job)) >= 9
    skipped = [run for run in world.history(job) if run.status is RunStatus.SKIPPED]
    assert {run.reason for run in skipped} == {"misfire"}
    assert "too late for" in (skipped[0].note or "")


def limited(world: World, by: str, rate: Rate) -> dict[str, Any]:
    """Settings of jobs that have this rate; or none, where their owner may start one a minute."""
    if by != "owner":
        return {"rate": rate}
    ports = replace(world.executor_ports, quotas=quotas_of(starts_per_minute=1))
    world.executor = Router(ports)
    return {}


def test_the_place_that_a_run_has_waited_in_is_free_once_it_is_skipped(world: World) -> None:
    job, other, waiting = waiting_in_its_place(world)
    world.pause(job)
    world.clock.set(waiting.starts_at)
    assert world.handle(waiting).handled is Handled.SKIPPED
    assert world.handle(world.due(other, 3)).handled is Handled.RAN


def test_so_it_is_once_the_run_is_cancelled(world: World) -> None:
    _, other, waiting = waiting_in_its_place(world)
    world.cancel(world.run_of(waiting))
    world.clock.set(waiting.starts_at)
    assert world.handle(waiting).handled is Handled.REPEATED
    assert world.handle(world.due(other, 3)).handled is Handled.RAN


def waiting_in_its_place(world: World) -> tuple[Job, Job, Message]:
    """Two jobs with one key, and the message of a run of the first, which is granted a start."""
    other = world.create("other", "* * * * *", concurrency=KEY)
    job = world.create("job", "* * * * *", rate=Rate(1, 100), concurrency=KEY)
    world.handle(world.due(job))
    assert world.handle(world.due(job, 2)).handled is Handled.DEFERRED
    (waiting,) = world.drain()
    return job, other, waiting


@pytest.mark.parametrize("by", ["key", "owner"])
def test_no_place_is_kept_for_the_turn_of_a_run_that_is_skipped(world: World, by: str) -> None:
    settings = {"concurrency": KEY} if by == "key" else {}
    if by == "owner":
        ports = replace(world.executor_ports, quotas=quotas_of(concurrent_runs=1))
        world.executor = Router(ports)
    job, other = (world.create(name, "* * * * *", **settings) for name in ("job", "other"))
    message = world.due(job)
    until = NOON + 10 * MINUTE
    name = key_admission("db") if by == "key" else PERMITS_ROW
    held = AdmissionRow(OWNER, name, 1, until, holders=(PermitHolder("another", until),))
    assert world.admission_rows.put(held, None)
    for _ in range(9):
        message = held_back(world, message)
        world.clock.set(message.starts_at)
    gate = stored(world, name)
    assert gate.turns
    assert world.admission_rows.put(replace(gate, revision=99, holders=()), gate.revision)
    world.pause(job)
    assert world.handle(message).handled is Handled.SKIPPED
    late = replace(message_of(other, NOON + MINUTE), due_at=world.clock.now(), waits=1)
    assert world.handle(late).handled is Handled.RAN


def stored(world: World, name: str) -> AdmissionRow:
    gate = world.admission_rows.get(OWNER, name)
    assert gate is not None
    return gate


@pytest.mark.parametrize("by", ["key", "owner"])
def test_nobody_waits_behind_starts_that_were_granted_to_a_job_that_is_paused_now(
    world: World, by: str
) -> None:
    """They are taken back but for those of the next hour; who waits looks by then."""
    settings = limited(world, by, Rate(1, 3600, "smtp"))
    other = world.create("other", "* * * * *", **settings)
    job = world.create("job", "* * * * *", catch_up=CatchUp.ALL, **settings)
    world.due(job, 130)
    for minutes in range(1, 131):
        waiting = held_back(world, message_of(job, NOON + minutes * MINUTE))
    behind = held_back(world, message_of(other, NOON + 130 * MINUTE))
    granted = slot_of(behind)
    world.pause(job)
    world.clock.set(waiting.starts_at)
    assert world.handle(waiting).handled is Handled.SKIPPED
    world.clock.set(behind.starts_at)
    again = slot_of(held_back(world, behind))
    assert world.clock.now() + timedelta(minutes=59) <= again < granted


def held_back(world: World, message: Message) -> Message:
    """The message that comes next for a run."""
    return world.handle(message).message


def slot_of(message: Message) -> datetime:
    slot = message.rate_slot or message.owner_slot
    assert slot is not None
    return slot.at
