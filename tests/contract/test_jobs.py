"""JobStore."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.calendar import CalendarUse
from carillon.domain.events import EventType
from carillon.domain.job import Generation, JobState, Lane, PastGeneration, Slow
from carillon.domain.policies import (
    Backoff,
    BackoffType,
    CatchUp,
    Concurrency,
    OnComplete,
    Overlap,
    Rate,
    RetryPolicy,
)
from carillon.domain.spec.after import After, Outcome
from carillon.domain.targets import (
    BatchTarget,
    EcsTarget,
    EventBridgeTarget,
    LambdaTarget,
    SecretReference,
    SnsTarget,
    SqsTarget,
    StepFunctionsTarget,
    Target,
    TaskTarget,
    WebhookTarget,
)
from carillon.schedules import NEVER, CalendarRule, Schedule, parse_schedule
from tests.contract.kit import Kit
from tests.contract.samples import (
    GENERATION_ID,
    NOW,
    a_bounded_schedule,
    a_combined_schedule,
    a_job,
    a_link,
    job_id,
)
from tests.support.jobs import job_with

POLICIES: dict[str, Any] = {
    "overlap": Overlap.QUEUE_ONE,
    "tolerance": 0,
    "grace": 90,
    "concurrency": Concurrency("database/ü", 1),
    "rate": Rate(5, 60, "partner"),
    "pause_after_failures": 3,
    "expect_within": 600,
    "on_success": TaskTarget(name="samples.hello"),
    "on_failure": WebhookTarget(
        url="https://example.com/failed?a=ü",
        method="PUT",
        headers={"X-Plain": "a b", "X-Key": SecretReference(secret="partner-key")},
        signing_secret=SecretReference(secret="signing"),
    ),
    "events": (EventType.RUN_DEAD, EventType.JOB_PAUSED),
    "template": True,
    "parent": "channel/5 ü",
    "tags": {"a.b": "1", "team": "Kunden ü", "x_0-": ""},
    "note": "paused after 3 failures in a row",
}


AT = "us-east-1:123456789012"


def test_an_unknown_job_is_none(kit: Kit) -> None:
    assert kit.jobs.get(kit.new_owner(), job_id()) is None


def test_a_created_job_comes_back_whole(kit: Kit) -> None:
    job = a_job(
        kit.new_owner(),
        schedule=parse_schedule("every 25m offset 2m", "Europe/Riga", NOW.replace(microsecond=0)),
        target=WebhookTarget(url="https://example.com/hook?a=ü"),
        payload='["ünïcode",null,1.5]',
        previous=PastGeneration(GENERATION_ID, NOW - timedelta(days=1, microseconds=1), NOW),
        earlier=tuple(
            PastGeneration(GENERATION_ID, NOW - timedelta(days=n + 1), NOW - timedelta(days=n))
            for n in (1, 2)
        ),
        state=JobState.PAUSED,
        revision=12,
        priority=Lane.HIGH,
        slow=Slow(NOW + timedelta(microseconds=7), "attempts keep lasting longer than 2 s"),
        catch_up=CatchUp.ALL,
        retry=RetryPolicy(7, Backoff(3, 1.1, 900, BackoffType.FIXED), ("timeout", "http_5xx")),
        timeout_seconds=55,
        fingerprint="0" * 64,
        end_at=NOW + timedelta(days=9),
        max_runs=1,
        on_complete=OnComplete.DELETE,
        window="50%",
        spread_seconds=749,
        calendar=CalendarUse("feiertage", CalendarRule.NEXT_BUSINESS_DAY),
        paused_at=NOW + timedelta(microseconds=1),
        **POLICIES,
    )
    assert kit.jobs.create(job)
    assert kit.jobs.get(job.owner, job.job_id) == job


TARGETS: list[Target] = [
    LambdaTarget(function_arn=f"arn:aws:lambda:{AT}:function:f", invocation="event"),
    SqsTarget(queue_arn=f"arn:aws:sqs:{AT}:orders.fifo", message_group_id="g"),
    SnsTarget(topic_arn=f"arn:aws:sns:{AT}:news", subject="Hello"),
    EventBridgeTarget(bus_arn=f"arn:aws:events:{AT}:event-bus/b", source="s", detail_type="d"),
    StepFunctionsTarget(state_machine_arn=f"arn:aws:states:{AT}:stateMachine:m"),
    EcsTarget(
        task_definition_arn=f"arn:aws:ecs:{AT}:task-definition/t",
        subnets=("subnet-0a1b2c3d",),
        container="main",
        command=("a", "b"),
        environment={"A": "b"},
    ),
    BatchTarget(
        job_definition_arn=f"arn:aws:batch:{AT}:job-definition/j",
        job_queue_arn=f"arn:aws:batch:{AT}:job-queue/q",
        parameters={"a": "b"},
    ),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.type))
def test_a_target_comes_back_whole(kit: Kit, target: Target) -> None:
    job = a_job(kit.new_owner(), target=target, on_failure=target)
    assert kit.jobs.create(job)
    assert kit.jobs.get(job.owner, job.job_id) == job


@pytest.mark.parametrize("schedule", [a_bounded_schedule, a_combined_schedule])
def test_a_schedule_comes_back_whole(kit: Kit, schedule: Callable[[], Schedule]) -> None:
    job = a_job(kit.new_owner(), schedule=schedule())
    assert kit.jobs.create(job)
    assert kit.jobs.get(job.owner, job.job_id) == job


def test_create_puts_only_where_there_is_none(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    assert kit.jobs.create(job)
    assert not kit.jobs.create(job_with(job, name="another"))
    assert kit.jobs.get(job.owner, job.job_id) == job


def test_a_repeated_create_knows_its_own_row(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    assert kit.jobs.create(job)
    assert kit.jobs.create(job)


def test_a_tombstone_holds_its_key(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    expires_at = NOW.replace(microsecond=0) + timedelta(days=31)
    tombstone = job.deleted(NOW, expires_at)
    assert kit.jobs.create(job)
    assert kit.jobs.replace(tombstone, job.revision)
    assert not kit.jobs.create(job)
    assert kit.jobs.get(job.owner, job.job_id) == tombstone


def test_an_expiry_is_kept_to_the_second_and_never_early(kit: Kit) -> None:
    job = a_job(kit.new_owner(), expires_at=NOW)
    assert kit.jobs.create(job)
    assert kit.jobs.create(job)
    stored = kit.jobs.get(job.owner, job.job_id)
    assert stored is not None
    assert stored.expires_at == NOW.replace(microsecond=0) + timedelta(seconds=1)


def test_replace_needs_exactly_the_revision(kit: Kit) -> None:
    job = a_job(kit.new_owner(), revision=4)
    changed = job_with(job, name="changed", revision=5)
    assert kit.jobs.create(job)
    assert not kit.jobs.replace(changed, 3)
    assert not kit.jobs.replace(changed, 5)
    assert kit.jobs.get(job.owner, job.job_id) == job
    assert kit.jobs.replace(changed, 4)
    assert kit.jobs.get(job.owner, job.job_id) == changed


def test_a_repeated_replace_knows_its_own_row(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    changed = job_with(job, name="changed", revision=2)
    other = job_with(job, name="other", revision=2)
    assert kit.jobs.create(job)
    assert kit.jobs.replace(changed, 1)
    assert kit.jobs.replace(changed, 1)
    assert not kit.jobs.replace(other, 1)


def test_a_replace_that_has_not_seen_every_link_loses(kit: Kit) -> None:
    """An owner's change, a pause, a mark for lane slow: all put the whole row."""
    job = a_job(kit.new_owner())
    linked = dataclasses.replace(job, successors=(a_link(), a_link(1)))
    assert kit.jobs.create(job)
    assert kit.jobs.relink(linked, over=())
    assert not kit.jobs.replace(job_with(job, name="changed", revision=2), 1)
    assert kit.jobs.get(job.owner, job.job_id) == linked
    changed = job_with(linked, name="changed", revision=2)
    assert kit.jobs.replace(changed, 1)
    assert kit.jobs.get(job.owner, job.job_id) == changed


def test_relink_needs_the_revision_and_exactly_the_links(kit: Kit) -> None:
    job = a_job(kit.new_owner(), revision=4, successors=(a_link(),))
    more = dataclasses.replace(job, successors=(a_link(), a_link(1)))
    assert kit.jobs.create(job)
    assert not kit.jobs.relink(more, over=())
    assert not kit.jobs.relink(dataclasses.replace(more, revision=5), over=job.successors)
    assert kit.jobs.relink(more, over=job.successors)
    assert kit.jobs.relink(more, over=job.successors), "its own row, whose answer was lost"
    assert not kit.jobs.relink(job_with(job, successors=()), over=job.successors)
    assert kit.jobs.relink(job_with(job, successors=()), over=more.successors)
    assert kit.jobs.get(job.owner, job.job_id) == job_with(job, successors=())


def test_a_job_that_runs_after_another_comes_back_whole(kit: Kit) -> None:
    after = After("nightly export ü", Outcome.FINISHED, 7_200)
    job = a_job(kit.new_owner(), schedule=NEVER, after=after, successors=(a_link(),))
    assert kit.jobs.create(job)
    assert kit.jobs.get(job.owner, job.job_id) == job


def test_replace_creates_nothing(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    assert not kit.jobs.replace(job, 1)
    assert kit.jobs.get(job.owner, job.job_id) is None


def test_optional_fields_can_go_again(kit: Kit) -> None:
    job = a_job(kit.new_owner()).paused(NOW)
    resumed = job.in_new_generation(Generation(GENERATION_ID, NOW), NOW)
    assert kit.jobs.create(job)
    assert kit.jobs.replace(resumed, job.revision)
    assert kit.jobs.get(job.owner, job.job_id) == resumed


def test_owners_do_not_see_each_other(kit: Kit) -> None:
    mine, other = a_job(kit.new_owner()), kit.new_owner()
    assert kit.jobs.create(mine)
    assert kit.jobs.get(other, mine.job_id) is None
    assert kit.jobs.list(other, 10).items == ()
    theirs = dataclasses.replace(mine, owner=other)
    assert not kit.jobs.create(theirs), "ids have their owner's digest: only a bug asks for this"
    assert not kit.jobs.replace(theirs, mine.revision)
    assert not kit.jobs.remove_unreadable(other, mine.job_id)
    assert kit.jobs.get(mine.owner, mine.job_id) == mine


def test_a_completed_job_keeps_its_key_and_payload(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    completed = job.completed(NOW, NOW.replace(microsecond=0) + timedelta(days=31))
    assert kit.jobs.create(job)
    assert kit.jobs.replace(completed, job.revision)
    assert kit.jobs.get(job.owner, job.job_id) == completed
    assert not kit.jobs.create(job)
    assert kit.jobs.list(job.owner, 10).items == ()
