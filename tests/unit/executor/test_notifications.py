"""Notifications: one message at once, one digest, and what works again, told once each."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.activity.results import Result
from carillon.domain.job import Job
from carillon.domain.notifying.notification import Told, notification_id
from carillon.domain.policies import RetryPolicy
from carillon.domain.run import RunError, RunKind, RunStatus
from carillon.errors import StoreUnavailableError
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.stores.pages import Page
from tests.support.notification_kit import is_delivery, notify, said
from tests.support.world import FUNCTION_SECONDS, OWNER, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ONCE = RetryPolicy(max_attempts=1)
DOWN = Failure(RunError("http_503", "the endpoint answered 503: <down & out>"))


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


def fail(world: World, jobs: Collection[str] = (), *, channel: bool = False) -> None:
    """From now on these jobs fail, and no others; and the channel does, or not."""

    def behave(call: Call) -> Outcome:
        fails = channel if is_delivery(call.run_id) else call.job_name in jobs
        return DOWN if fails else Success("done")

    world.targets.behave = behave


def kinds(world: World) -> list[str]:
    return [body["kind"] for body in said(world)]


def create(world: World, name: str = "import", schedule: str = "every 5m", **more: Any) -> Job:
    return world.create(name, schedule, retry=ONCE, **more)


def test_fifty_failures_of_twenty_jobs_are_one_message_and_one_digest(world: World) -> None:
    notify(world)
    names = [f"job {number:02}" for number in range(20)]
    for name in names:
        create(world, name)
    fail(world, names)
    world.run_until(NOON + 11 * MINUTE)
    fail(world, names[:10])
    world.run_until(NOON + 16 * MINUTE)
    fail(world)
    world.run_until(NOON + 22.5 * MINUTE)
    assert kinds(world) == ["first", "digest"]
    first, digest = said(world)
    assert first["summary"] == f"{first['event']['job_name']} failed"
    assert first["event"]["error"]["kind"] == "http_503"
    assert digest["counts"] == {"run.dead": 49}
    assert [each["count"] for each in digest["errors"]] == [49]
    assert sum(each["count"] for each in digest["jobs"]) == 49
    assert digest["recovered"] == [] or {x["job_name"] for x in digest["recovered"]} <= {*names}
    world.run_until(NOON + 120 * MINUTE)
    again = [x["job_name"] for body in said(world) for x in body.get("recovered", ())]
    assert sorted(again) == names, "each works again once"
    assert len(said(world)) <= 3


def test_a_window_that_had_nothing_to_tell_closes_and_the_next_failure_is_told_at_once(
    world: World,
) -> None:
    notify(world)
    create(world)
    fail(world, ["import"])
    world.run_until(NOON + 6 * MINUTE)
    fail(world)
    world.run_until(NOON + 70 * MINUTE)
    assert kinds(world) == ["first", "recovered"]
    window = world.windows.get(OWNER, "ops")
    assert window is not None
    assert not window.is_open
    fail(world, ["import"])
    world.run_until(NOON + 76 * MINUTE)
    assert kinds(world) == ["first", "recovered", "first"]


def test_a_job_that_keeps_failing_is_told_ever_less_until_there_is_news(
    world: World,
) -> None:
    notify(world)
    create(world)
    create(world, "export")
    fail(world, ["import"])
    world.run_until(NOON + 4 * 60 * MINUTE)
    assert kinds(world) == ["first", *["digest"] * 4], "after 15 min, 30 min, 1 h, 2 h"
    fail(world, ["import", "export"])
    world.run_until(NOON + 4 * 60 * MINUTE + 15 * MINUTE)
    last = said(world)[-1]
    assert last["kind"] == "digest", "the last one was less than 15 minutes ago"
    assert "export" in [each["job_name"] for each in last["jobs"]]


def test_a_job_that_was_fine_is_told_at_once_while_another_one_keeps_failing(world: World) -> None:
    notify(world)
    create(world)
    create(world, "export")
    fail(world, ["import"])
    world.run_until(NOON + 3 * 60 * MINUTE)
    fail(world, ["import", "export"])
    world.run_until(NOON + 3 * 60 * MINUTE + 5.5 * MINUTE)
    assert said(world)[-1]["kind"] == "first"
    assert said(world)[-1]["event"]["job_name"] == "export"


def test_news_that_a_digest_comes_too_early_for_does_not_wait_for_the_doubled_time(
    world: World,
) -> None:
    notify(world)
    create(world)
    create(world, "export", "25 53 13 * * *")
    fail(world, ["import", "export"])
    world.run_until(NOON + 114 * MINUTE)
    assert len(said(world)) == 4, "the last one at 13:53:30, of what was recorded by 13:53:20"
    assert "export" not in [each["job_name"] for each in said(world)[-1]["jobs"]]
    world.run_until(NOON + 111 * MINUTE + 20 * MINUTE)
    assert "export" in [each["job_name"] for each in said(world)[-1]["jobs"]]


def test_a_weekly_job_works_again_a_week_later(world: World) -> None:
    notify(world)
    create(world, schedule="5 12 * * 2")
    fail(world, ["import"])
    world.run_until(NOON + 6 * MINUTE)
    fail(world)
    week = timedelta(days=7)
    while (passed := world.clock.now() - NOON) < week + timedelta(hours=7):
        world.leap_to(NOON + passed + 14 * MINUTE)
        is_due = week - 15 * MINUTE < passed < week
        world.run_until(world.clock.now() + (21 * MINUTE if is_due else MINUTE))
    assert kinds(world) == ["first", "recovered"]


def test_a_missed_run_is_told(world: World) -> None:
    notify(world, on=(Told.RUN_MISSED,))
    job = create(world, "import", "0 * * * *", expect_within=120)
    fail(world, ["import"])
    world.clock.set(NOON + 59 * MINUTE)
    world.run_until(NOON + 63 * MINUTE)
    (body,) = said(world)
    assert body["event"]["type"] == "run.missed"
    assert body["summary"] == "import was missed"
    assert body["event"]["run_id"].startswith(job.job_id)


def test_a_pause_after_failures_is_in_the_digest_since_no_run_tells_of_it(world: World) -> None:
    notify(world)
    create(world, pause_after_failures=2)
    fail(world, ["import"])
    world.run_until(NOON + 30 * MINUTE)
    digest = said(world)[1]
    assert digest["counts"] == {"job.paused": 1, "run.dead": 1}


def test_a_dead_channel_costs_no_run_of_a_job_and_tells_nobody_of_itself(world: World) -> None:
    notify(world)
    job = create(world)
    fail(world, ["import"], channel=True)
    world.run_until(NOON + 30 * MINUTE)
    deliveries = world.runs.list(OWNER, notification_id(OWNER, "ops"), 100).items
    assert Counter(each.status for each in deliveries)[RunStatus.DEAD] >= 1
    assert {each.key.kind for each in deliveries} == {RunKind.NOTICE}
    assert [run.attempt for run in world.history(job)] == [1] * len(world.history(job))
    assert len({body["event"]["run_id"] for body in said(world) if body["kind"] == "first"}) == 1
    dead = deliveries[-1]
    fail(world)
    assert dead.error is not None
    assert dead.error.kind == "http_503"


def test_only_its_own_jobs_and_events(world: World) -> None:
    notify(world, "named", jobs="import")
    notify(world, "prefix", jobs="EX*")
    notify(world, "tagged", tags={"team": "billing"})
    notify(world, "missed", on=(Told.RUN_MISSED,))
    create(world)
    create(world, "Export", tags={"team": "billing", "x": "y"})
    fail(world, ["import", "Export"])
    world.run_until(NOON + 6 * MINUTE)
    told = {
        name: [body["event"]["job_name"] for body in said(world, name)]
        for name in ("named", "prefix", "tagged", "missed")
    }
    assert told == {
        "named": ["import"],
        "prefix": ["Export"],
        "tagged": ["Export"],
        "missed": [],
    }


def test_a_failure_of_notifications_fails_no_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world)
    job = create(world)
    fail(world, ["import"])
    heard: list[Exception] = []
    ports = world.executor_ports.notifying(heard.append)
    world.executor = type(world.executor)(ports)

    def raise_error(*_: object, **__: object) -> None:
        raise StoreUnavailableError("throttled")

    for store, method in ((world.notifications, "list"), (world.windows, "get")):
        monkeypatch.setattr(store, method, raise_error)
        world.run_until(world.clock.now() + 5 * MINUTE)
        monkeypatch.undo()
    assert [run.status for run in world.history(job)] == [RunStatus.DEAD] * 2
    assert not world.queue.kept() or all(
        each.message.key.kind is RunKind.WINDOW for each in world.queue.kept()
    )
    assert len(heard) == 2


def test_a_repeated_message_sends_again_what_its_executor_died_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world)
    job = create(world)
    fail(world, ["import"])
    sent = world.queue.send

    def lose(messages: Any, delays: Any, until: Any = None) -> None:
        if any(each.key.kind in (RunKind.NOTICE, RunKind.WINDOW) for each in messages):
            raise StoreUnavailableError("the process ends here")
        sent(messages, delays, until)

    monkeypatch.setattr(world.queue, "send", lose)
    world.run_until(NOON + 5.5 * MINUTE)
    monkeypatch.undo()
    assert said(world) == []
    (run,) = world.history(job)
    message = next(x.message for x in world.reports if x.message.key == run.key)
    for _ in range(2):
        world.executor.handle(message, world.clock.now() + MINUTE)
    world.run_until(NOON + 6 * MINUTE)
    assert kinds(world) == ["first"]


def test_a_good_run_and_a_second_failure_write_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world)
    create(world, schedule="every 1m")
    world.run_until(NOON + 2.5 * MINUTE)
    assert world.windows.get(OWNER, "ops") is None
    fail(world, ["import"])
    world.run_until(NOON + 3.5 * MINUTE)
    calls: Counter[str] = Counter()
    for store, method in ((world.windows, "get"), (world.windows, "put")):
        original = getattr(store, method)

        def count(*args: Any, _original: Any = original, _name: str = method) -> Any:
            calls[_name] += 1
            return _original(*args)

        monkeypatch.setattr(store, method, count)
    world.run_until(NOON + 9.5 * MINUTE)
    assert not calls, "the process knows the window that it has put"


def test_a_notification_that_is_gone_is_told_nothing(world: World) -> None:
    made = notify(world)
    create(world)
    fail(world, ["import"])
    world.run_until(NOON + 6 * MINUTE)
    assert world.notifications.delete(OWNER, "ops", made.revision)
    world.run_until(NOON + 40 * MINUTE)
    assert kinds(world) == ["first"]


def test_the_message_of_a_window_is_that_of_its_first_revision(world: World) -> None:
    """A window of which the owner changes the channel goes on."""
    made = notify(world)
    create(world)
    fail(world, ["import"])
    world.run_until(NOON + 6 * MINUTE)
    changed = replace(made, revision=2, at_most_every=1800)
    assert world.notifications.put(changed, made.revision)
    world.run_until(NOON + 30 * MINUTE)
    assert kinds(world) == ["first", "digest"]


def test_a_step_ends_before_its_process_however_long_the_feed_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify(world)
    create(world)
    fail(world, ["import"])
    world.run_until(NOON + 6 * MINUTE)
    read, asked_at = world.executor_ports.feed.read, list[datetime]()

    def slow(*asked: Any) -> Page[Result]:
        asked_at.append(world.clock.now())
        assert asked_at[-1] - asked_at[0] < timedelta(seconds=FUNCTION_SECONDS / 2)
        world.clock.advance(8)
        return replace(read(*asked[:-1]), next_cursor="more")

    monkeypatch.setattr(world.executor_ports.feed, "read", slow)
    world.run_until(NOON + 25 * MINUTE)
    assert kinds(world) == ["first", "digest"]
    assert not said(world)[-1]["complete"]
