"""`@task`: names, forms, and what a context tells."""

import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from carillon.tasks import (
    TaskContext,
    TaskLogger,
    TaskRegistrationError,
    TaskRegistry,
    UnknownTaskError,
    registered_tasks,
    task,
)


def plain(payload: Any, context: TaskContext) -> None:
    """A task's form."""


def other(payload: Any, context: TaskContext) -> None:
    """Another."""


def context(remaining: float, timeout_seconds: float = 60) -> TaskContext:
    return TaskContext(
        run_id="run",
        job_id="job",
        job_name="name",
        attempt=1,
        fire_at=datetime(2026, 1, 1, tzinfo=UTC),
        effective_at=datetime(2026, 1, 1, tzinfo=UTC),
        timeout_seconds=timeout_seconds,
        tags={},
        remaining=lambda: remaining,
        logger=TaskLogger(logging.getLogger("task.test"), {"run_id": "run", "job_id": "job"}),
    )


def test_a_function_is_found_by_its_name() -> None:
    registry = TaskRegistry()
    registry.add("plain", plain)
    registry.add("billing.close-month", other)
    assert registry.find("plain") is plain
    assert registry.find("billing.close-month") is other
    assert registry.names == ("billing.close-month", "plain")


def test_the_decorator_registers_and_returns_the_function_itself() -> None:
    def registered_by_its_own_name(payload: Any, context: TaskContext) -> str:
        return "ran"

    assert task(registered_by_its_own_name) is registered_by_its_own_name
    assert task(name="registered.by_name")(other) is other
    assert registered_tasks.find("registered_by_its_own_name") is registered_by_its_own_name
    assert registered_tasks.find("registered.by_name") is other


def test_a_taken_name_is_refused_naming_both_functions() -> None:
    registry = TaskRegistry()
    registry.add("plain", plain)
    with pytest.raises(TaskRegistrationError, match=r"\.other cannot be.*\.plain is"):
        registry.add("plain", other)
    assert registry.find("plain") is plain


def test_an_unknown_name_is_answered_with_the_registered_ones() -> None:
    registry = TaskRegistry()
    with pytest.raises(UnknownTaskError, match="'nope'; registered: none"):
        registry.find("nope")
    registry.add("b", plain)
    registry.add("a", other)
    with pytest.raises(UnknownTaskError, match="registered: a, b"):
        registry.find("nope")


@pytest.mark.parametrize("name", ["", "1st", "two words", "x/y", "n" * 129, "é", "a\n"])
def test_names_that_no_job_could_give_are_refused(name: str) -> None:
    with pytest.raises(TaskRegistrationError, match="no name for a task"):
        TaskRegistry().add(name, plain)


async def asynchronous(payload: Any, context: TaskContext) -> None: ...


async def asynchronous_generator(payload: Any, context: TaskContext) -> AsyncIterator[int]:
    yield 1


def generator(payload: Any, context: TaskContext) -> Iterator[int]:
    yield 1


def too_few(payload: Any) -> None: ...


def too_many(payload: Any, context: TaskContext, more: int) -> None: ...


@pytest.mark.parametrize(
    "function", [asynchronous, asynchronous_generator, generator, too_few, too_many]
)
def test_functions_that_would_not_run_as_tasks_are_refused(function: Any) -> None:
    with pytest.raises(TaskRegistrationError, match="'it'"):
        TaskRegistry().add("it", function)


@pytest.mark.parametrize(
    ("remaining", "timeout_seconds", "expired"),
    [
        (60, 60, False),
        (1.01, 60, False),
        (1.0, 60, True),
        (0.31, 3, False),
        (0.3, 3, True),
        (0, 3, True),
    ],
)
def test_a_task_is_told_to_end_before_it_is_stopped(
    remaining: float, timeout_seconds: float, expired: bool
) -> None:
    assert context(remaining, timeout_seconds).expired is expired


def test_the_logger_is_bound_to_the_run(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "task.test"):
        context(5).logger.info("half of %s", "it", extra={"rows": 3})
    record = caplog.records[0]
    assert record.getMessage() == "half of it"
    members = vars(record)
    assert (members["run_id"], members["job_id"], members["rows"]) == ("run", "job", 3)
