"""What runs inside a child process, in this one."""

import functools
import io
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from carillon.domain.run import (
    RESULT_LIMIT_BYTES,
    WHOLE_RESULT_LIMIT_BYTES,
    RunError,
    kept_text,
    one_line,
)
from carillon.executor.deadlines import Deadline
from carillon.executor.task_process.child import (
    JsonLines,
    TaskServer,
    import_modules,
    result_text,
)
from carillon.executor.task_process.wire import (
    KIND_LIMIT_CHARACTERS,
    Hello,
    Report,
    Request,
    exception_line,
    kind_of,
)
from carillon.tasks import Fail, Retry, TaskContext, TaskRegistry

ROOT = Path(__file__).resolve().parents[4]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("done", '"done"'),
        ("", '""'),
        (0, "0"),
        ({"größe": [1, 2.5, None]}, '{"größe":[1,2.5,null]}'),
        ({1}, "{1}"),
        (float("nan"), "nan"),
        (CYCLE, "[[...]]"),
        (Unprintable(), "<Unprintable>"),
        ("a\nb", '"a\\nb"'),
        ("lone \ud800 surrogate", '"lone   surrogate"'),
    ],
)
def test_return_values_as_the_history_keeps_them(value: object, text: str | None) -> None:
    assert result_text(value) == text


def test_long_results_are_cut_with_a_mark() -> None:
    text = result_text("x" * 100_000)
    assert text is not None
    assert len(text) == RESULT_LIMIT_BYTES
    assert text.endswith("... (100002 bytes)")


def test_a_whole_result_has_its_lines_and_its_own_limit() -> None:
    assert kept_text(" a\tb\n\x00\x1b[2Jc ", whole=True) == "a\tb\n  [2Jc"
    text = result_text("x" * 100_000, whole=True)
    assert text is not None
    assert len(text) == WHOLE_RESULT_LIMIT_BYTES
    assert text.endswith("... (100002 bytes)")


def test_text_from_outside_becomes_one_printable_line() -> None:
    assert one_line(" a\tb\r\nc\x00\x1b[2J\u2028d ") == "a b  c  [2J d"
    assert exception_line(UnprintableError()) == "(its message cannot be shown)"


def request(task: str, payload: str = "null", number: int = 1) -> Request:
    return Request(
        number=number,
        task=task,
        payload=payload,
        run_id="run",
        job_id="job",
        job_name="name",
        attempt=2,
        fire_at="2026-01-01T00:00:00+00:00",
        effective_at="2026-01-01T00:00:07+00:00",
        timeout_seconds=5,
        deadline_at=Deadline.after(5).at,
        tags={"team": "blue"},
    )


def serve(function: Any, payload: str = "null") -> Report:
    registry = TaskRegistry()
    registry.add("it", function)
    return TaskServer(registry, {}, JsonLines()).serve(request("it", payload, number=7))


def test_a_task_gets_payload_and_context() -> None:
    def it(payload: Any, context: TaskContext) -> Any:
        assert 4 < context.remaining() <= 5
        assert not context.expired
        instants = [context.fire_at.isoformat(), context.effective_at.isoformat()]
        ids = [context.run_id, context.job_id, context.job_name]
        known = [context.attempt, *instants, context.timeout_seconds, context.tags]
        return [payload, *ids, *known]

    report = serve(it, '{"a":1}')
    assert report.error is None
    assert json.loads(report.result or "") == [
        {"a": 1},
        "run",
        "job",
        "name",
        2,
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:00:07+00:00",
        5,
        {"team": "blue"},
    ]
    assert report.number == 7


def test_a_task_knows_its_place_in_the_trace_and_so_do_its_lines() -> None:
    def it(payload: Any, context: TaskContext) -> str:
        context.logger.warning("here")
        return context.traceparent

    registry = TaskRegistry()
    registry.add("it", it)
    lines, written = JsonLines(), io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(lines)
    logging.getLogger("task.it").addHandler(handler)
    server = TaskServer(registry, {}, lines)
    traced = replace(request("it"), traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
    reports = [server.serve(each) for each in (traced, request("it"))]
    logging.getLogger("task.it").removeHandler(handler)
    assert [report.result for report in reports] == [f'"{traced.traceparent}"', '""']
    told = [json.loads(line).get("trace_id") for line in written.getvalue().splitlines()]
    assert told == ["a" * 32, None]


def test_what_a_task_raises_is_reported_with_its_class() -> None:
    def it(payload: Any, context: TaskContext) -> None:
        raise LookupError("no such\nrow")

    assert serve(it).error == RunError("LookupError", "no such row")


class Later(Retry):
    """A kind of Retry that never called the constructor of its base."""

    def __init__(self) -> None:
        Exception.__init__(self, "later")


@pytest.mark.parametrize(
    ("error", "message", "after_seconds"),
    [
        (Retry(), "the task asks to be tried again", None),
        (Retry(after=90, reason="no\nlock"), "no lock", 90),
        (Retry(after=timedelta(minutes=2)), "the task asks to be tried again", 120),
        (Retry(0), "the task asks to be tried again", 0),
        (Later(), "later", None),
    ],
)
def test_a_task_may_say_when_it_is_to_be_tried_again(
    error: Retry, message: str, after_seconds: float | None
) -> None:
    def it(payload: Any, context: TaskContext) -> None:
        raise error

    report = serve(it)
    assert report.error == RunError("retry", message)
    assert report.retry_after_seconds == after_seconds


@pytest.mark.parametrize("after", [-1, timedelta(seconds=-1), float("inf"), float("nan")])
def test_a_time_that_cannot_be_waited_for_is_refused(after: Any) -> None:
    with pytest.raises(ValueError, match="must be a time of 0 seconds or more"):
        Retry(after=after)


def test_a_task_may_fail_for_good() -> None:
    def it(payload: Any, context: TaskContext) -> None:
        raise Fail("no such customer")

    report = serve(it)
    assert report.error == RunError("fail", "no such customer", permanent=True)
    assert report.retry_after_seconds is None


async def _asynchronous(payload: Any, context: TaskContext) -> None: ...


def _generator(payload: Any, context: TaskContext) -> Iterator[int]:
    yield 1


async def _asynchronous_generator(payload: Any, context: TaskContext) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("inner", "what"),
    [
        (_asynchronous, "coroutine"),
        (_generator, "generator"),
        (_asynchronous_generator, "async_generator"),
    ],
)
def test_what_a_decorator_hides_and_nobody_would_run_is_no_success(inner: Any, what: str) -> None:
    made: list[Any] = []

    @functools.wraps(inner)
    def it(*given: Any) -> Any:
        made.append(inner(*given))
        return made[0]

    error = serve(it).error
    if what == "coroutine":
        made[0].close()
    assert error is not None
    assert (error.kind, error.permanent) == ("fail", True)
    assert f"returned a {what}, which nobody runs" in error.message


def test_a_long_class_name_is_cut() -> None:
    long = type("E" * 500 + "\n", (Exception,), {})
    assert kind_of(long()) == "E" * KIND_LIMIT_CHARACTERS


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_even_what_ends_a_program_is_only_reported(error: BaseException) -> None:
    def it(payload: Any, context: TaskContext) -> None:
        raise error

    reported = serve(it).error
    assert reported is not None
    assert reported.kind == type(error).__name__


def test_an_unknown_task_fails_for_good_unless_its_module_may_be_the_broken_one() -> None:
    sound = TaskServer(TaskRegistry(), {}, JsonLines()).serve(request("nope")).error
    assert sound is not None
    assert (sound.kind, sound.permanent) == ("unknown_task", True)
    broken = TaskServer(TaskRegistry(), {"jobs.daily": "ImportError: gone"}, JsonLines())
    error = broken.serve(request("nope")).error
    assert error is not None
    assert (error.kind, error.permanent) == ("task_import_failed", False)
    assert "jobs.daily: ImportError: gone" in error.message


def test_why_a_module_cannot_be_imported_is_told_beside_however_many_tasks() -> None:
    registry = TaskRegistry()
    for number in range(50):
        registry.add(f"send_report_{number}", lambda payload, context: None)
    broken = TaskServer(registry, {"jobs.daily": "ImportError: gone"}, JsonLines())
    error = broken.serve(request("nope")).error
    assert error is not None
    assert "jobs.daily: ImportError: gone" in error.message


def test_modules_that_cannot_be_imported_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    failures = import_modules(["carillon.executor.tasks.samples", "no_such_module_of_tasks"])
    assert list(failures) == ["no_such_module_of_tasks"]
    assert failures["no_such_module_of_tasks"].startswith("ModuleNotFoundError: ")
    assert "Traceback" in capsys.readouterr().err


def test_lines_are_read_as_they_were_written() -> None:
    sent = request("it", '{"text":"\\n"}')
    assert sent.to_line().count(b"\n") == 1
    assert Request.from_line(sent.to_line()) == sent
    for report in (
        Report(1),
        Report(2, result="a\nb"),
        Report(3, error=RunError("ValueError", "x", permanent=True)),
        Report(4, error=RunError("retry", "x"), retry_after_seconds=2.5),
    ):
        assert report.to_line().count(b"\n") == 1
        assert Report.from_line(report.to_line()) == report
    assert Hello.from_line(Hello({"a": "b"}).to_line()) == Hello({"a": "b"})


@pytest.mark.parametrize("line", [b"hello\n", b"[]\n", b'{"number":1}\n', b"\xff\n"])
def test_other_lines_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Report.from_line(line)


def test_a_child_imports_nothing_heavy() -> None:
    program = (
        "import sys, carillon.executor.task_process.child; "
        "print(*sorted({'pydantic', 'boto3', 'httpcore2', 'pynamodb'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert answer.stdout.strip() == ""
