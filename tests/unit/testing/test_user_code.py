"""Users' functions: tasks in virtual time, functions in place of endpoints, and their limits."""

import signal
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from carillon.tasks import Fail, Retry, TaskContext, task
from carillon.testing.webhooks import Answer, WebhookCall
from carillon.testing.world import World

URL = "https://example.com/hook"
TASK = {"type": "task", "name": "work"}
HOOK = {"type": "webhook", "url": URL}
RETRY = {"max_attempts": 3, "backoff": {"type": "fixed", "base_seconds": 60}}
DAILY = "0 3 * * *"


def test_a_task_keeps_its_state_and_sets_its_next_attempt(carillon: World) -> None:
    seen = []

    @task
    def work(payload: Any, context: TaskContext) -> Any:
        seen.append((context.attempt, datetime.now(UTC), time.time()))
        if context.attempt < 3:
            raise Retry(after=600, reason="not yet")
        return {"sum": payload["n"] + len(seen)}

    carillon.put("sync", schedule=DAILY, target=TASK, payload={"n": 1}, retry=RETRY)
    carillon.run_until("2027-01-02")
    (run,) = carillon.runs("sync")
    assert (run.status.value, run.attempt, run.result) == ("succeeded", 3, '{"sum":4}')
    at = [datetime(2027, 1, 1, 3, minute, tzinfo=UTC) for minute in (0, 10, 20)]
    assert seen == [(n, moment, moment.timestamp()) for n, moment in enumerate(at, 1)]
    assert [each.error.message for each in run.attempts if each.error] == ["not yet", "not yet"]


def test_the_context_and_the_clock_are_virtual(carillon: World) -> None:
    told: list[Any] = []

    @task
    def work(payload: Any, context: TaskContext) -> None:
        told.append(context)
        while not context.expired:
            time.sleep(0.5)
        told.append((context.remaining(), datetime.now(UTC), context.fire_at))

    carillon.put("sync", schedule=DAILY, target=TASK, timeout_seconds=20, tags={"a": "b"})
    before = datetime.now(UTC)
    carillon.run_until("04:00")
    first, (left, now, fire_at) = told
    assert (left, now.second, fire_at.hour) == (1.0, 19, 3)
    assert (first.job_name, first.tags, first.timeout_seconds) == ("sync", {"a": "b"}, 20)
    assert before <= datetime.now(UTC)  # the test's own clock is the machine's
    assert time.sleep.__module__ == "time"


def test_tasks_sleep_beside_each_other(carillon: World) -> None:
    ended = []

    @task
    def work(payload: Any, context: TaskContext) -> None:
        time.sleep(payload)
        ended.append((context.job_name, datetime.now(UTC).second))

    for name, seconds in (("long", 20), ("short", 5)):
        carillon.put(name, schedule=DAILY, target=TASK, payload=seconds, timeout_seconds=30)
    carillon.run_until("04:00")
    assert ended == [("short", 5), ("long", 20)]


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (Fail("gone"), "fail", "gone"),
        (AssertionError("no"), "AssertionError", "no"),
        (SystemExit(3), "SystemExit", "3"),
    ],
)
def test_what_a_task_raises_is_its_failure(
    carillon: World, raised: BaseException, kind: str, message: str
) -> None:
    @task
    def work(payload: Any, context: TaskContext) -> None:
        raise raised

    carillon.put("sync", schedule=DAILY, target=TASK, retry={"max_attempts": 1})
    carillon.run_until("04:00")
    (run,) = carillon.runs("sync")
    assert run.error is not None
    assert (run.status.value, run.error.kind, run.error.message) == ("dead", kind, message)


def test_a_task_that_is_not_registered_is_unknown(carillon: World) -> None:
    carillon.put("sync", schedule=DAILY, target=TASK)
    carillon.run_until("04:00")
    (run,) = carillon.runs("sync")
    assert run.error is not None
    assert run.error.message == "no task is registered as 'work'; registered: none"


def test_a_task_beyond_its_limit_fails_the_test(carillon: World) -> None:
    @task
    def work(payload: Any, context: TaskContext) -> None:
        time.sleep(31)

    carillon.put("sync", schedule=DAILY, target=TASK, timeout_seconds=30)
    with pytest.raises(pytest.fail.Exception, match=r"'work' \(job 'sync', .* limit of 30 s"):
        carillon.run_until("04:00")
    assert carillon.now == datetime(2027, 1, 1, 3, 0, 30, tzinfo=UTC)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="POSIX")
@pytest.mark.carillon(real_seconds=0.2)
def test_a_task_that_never_ends_fails_the_test(carillon: World) -> None:
    @task
    def work(payload: Any, context: TaskContext) -> None:
        while time.time():
            pass

    carillon.put("sync", schedule=DAILY, target=TASK)
    with pytest.raises(pytest.fail.Exception, match=r"did not end within 0\.2 s of real time"):
        carillon.run_until("04:00")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), pytest.skip.Exception("not here")])
def test_what_is_for_pytest_reaches_it(carillon: World, error: BaseException) -> None:
    @task
    def work(payload: Any, context: TaskContext) -> None:
        raise error

    carillon.put("sync", schedule=DAILY, target=TASK)
    with pytest.raises(type(error)):
        carillon.run_until("04:00")


def test_a_function_answers_a_webhook(carillon: World) -> None:
    calls = []

    def endpoint(call: WebhookCall) -> Answer | int | None:
        calls.append(call)
        match call.attempt:
            case 1:
                return Answer(503, "busy", {"Retry-After": "90"})
            case 2:
                return 500
        return None

    carillon.on_webhook(URL, endpoint)
    carillon.put("sync", schedule=DAILY, target=HOOK, payload={"n": 1}, retry=RETRY)
    carillon.run_until("04:00")
    (run,) = carillon.runs("sync")
    assert (run.status.value, run.attempt) == ("succeeded", 3)
    assert [call.payload for call in calls] == [{"n": 1}] * 3
    assert {call.run_id for call in calls} == {run.run_id}
    starts = [(each.started_at - run.fire_at).total_seconds() for each in run.attempts]
    assert starts == [0, 90, 150]
    assert run.attempts[0].error is not None
    assert run.attempts[0].error.message == "the endpoint answered 503: busy"


def test_a_function_that_takes_too_long_is_a_timeout(carillon: World) -> None:
    carillon.on_webhook(URL, lambda call: time.sleep(11))
    target = {**HOOK, "method": "GET"}
    carillon.put(
        "sync", schedule=DAILY, target=target, timeout_seconds=10, retry={"max_attempts": 1}
    )
    carillon.run_until("04:00")
    (run,) = carillon.runs("sync")
    assert run.finished_at is not None
    assert (run.status.value, run.finished_at.second) == ("timed_out", 10)


@pytest.mark.parametrize(
    ("answered", "error"), [("no", TypeError), (True, TypeError), (ValueError, ValueError)]
)
def test_what_is_wrong_with_a_function_ends_the_test(
    carillon: World, answered: Any, error: type[Exception]
) -> None:
    def endpoint(call: WebhookCall) -> Any:
        if isinstance(answered, type):
            raise answered("a bug of the test")
        return answered

    carillon.on_webhook(URL, endpoint)
    carillon.put("sync", schedule=DAILY, target=HOOK)
    with pytest.raises(error, match=r"must be a status|a bug of the test"):
        carillon.run_until("04:00")


def test_callbacks_call_functions_too_and_no_failure_is_theirs(carillon: World) -> None:
    told: list[Any] = []
    carillon.on_webhook(URL, lambda call: told.append(call.payload["status"]))
    other = {"type": "webhook", "url": "https://example.com/other"}
    carillon.put("sync", schedule=DAILY, target=other, on_failure=HOOK, retry={"max_attempts": 1})
    carillon.fail("sync")
    carillon.run_until("04:00")
    assert told == ["dead"]


def test_a_world_that_ends_early_leaves_no_task_behind(carillon: World) -> None:
    ended = []

    @task
    def work(payload: Any, context: TaskContext) -> None:
        try:
            time.sleep(20)
        finally:
            ended.append(context.run_id)

    carillon.put("sync", schedule=DAILY, target=TASK, timeout_seconds=30)
    carillon.run_until("03:00:10")
    assert ended == []
    carillon.close()
    assert len(ended) == 1
