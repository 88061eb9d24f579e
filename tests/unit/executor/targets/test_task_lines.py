"""The lines that tasks log and print, and whose they are."""

import json
import logging
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest

from carillon.executor.task_process.child import (
    LIMIT_CHARACTERS,
    MOST_LINES,
    JsonLines,
    Printed,
    TaskServer,
)
from carillon.tasks import TaskContext, TaskRegistry
from tests.unit.executor.targets.test_child import ROOT, request


def test_log_lines_are_json_with_the_ids_of_the_run() -> None:
    lines = JsonLines()
    lines.bind({"run_id": "run"})
    record = logging.makeLogRecord(
        {"name": "library", "levelname": "INFO", "msg": "got %d", "args": (3,), "rows": {1}}
    )
    members = json.loads(lines.format(record))
    assert members["message"] == "got 3"
    assert members["action"] == "task.log"
    assert members["run_id"] == "run"
    assert members["rows"] == "{1}"


def test_no_task_writes_in_the_name_of_another_run() -> None:
    lines = JsonLines()
    lines.bind({"run_id": "run", "attempt": 1})
    forged = {"name": "x", "levelname": "INFO", "msg": "", "run_id": "another", "attempt": 2}
    members = json.loads(lines.format(logging.makeLogRecord(forged)))
    assert (members["run_id"], members["attempt"]) == ("run", 1)


def test_an_attempt_logs_so_many_lines_and_says_that_there_were_more() -> None:
    lines = JsonLines()
    lines.bind({"run_id": "run"})
    records = [logging.makeLogRecord({"msg": "%d", "args": (n,)}) for n in range(MOST_LINES + 5)]
    kept = [record.getMessage() for record in records if lines.allows(record)]
    assert (len(kept), kept[-2]) == (MOST_LINES, str(MOST_LINES - 2))
    assert kept[-1] == f"{MOST_LINES} lines of an attempt are kept: no more"
    lines.bind({"run_id": "the next"})
    assert lines.allows(records[0])


def test_a_line_is_no_longer_than_cloudwatch_takes() -> None:
    record = logging.makeLogRecord({"msg": "😀" * 99_999, "rows": "😀" * 99_999})
    record.exc_info = (ValueError, ValueError("😀" * 99_999), None)
    line = JsonLines().format(record)
    assert len(line.encode()) < 256 * 1024
    members = json.loads(line)
    assert members["message"] == "😀" * LIMIT_CHARACTERS
    assert len(members["exception"]) == LIMIT_CHARACTERS
    assert members["extra"].startswith('{"rows": ')


class TestThreads:
    """Of a child that has served one run, and serves another one."""

    @pytest.fixture
    def lines(self, monkeypatch: pytest.MonkeyPatch) -> JsonLines:
        monkeypatch.setattr(Thread, "start", Thread.start)  # put back at the end
        lines = JsonLines()
        lines.watch_threads()
        lines.bind({"run_id": "first"})
        return lines

    @staticmethod
    def written(lines: JsonLines, **extra: object) -> str | None:
        """Whose the line is that this thread logs."""
        record = logging.makeLogRecord({"msg": "", **extra})
        found: str | None = json.loads(lines.format(record)).get("run_id")
        return found

    def test_a_thread_that_a_run_starts_logs_in_its_name(self, lines: JsonLines) -> None:
        with ThreadPoolExecutor() as pool:
            inner = pool.submit(lambda: ThreadPoolExecutor().submit(self.written, lines).result())
            assert inner.result() == "first"

    def test_what_a_run_has_left_behind_logs_in_nobodys_name(self, lines: JsonLines) -> None:
        with ThreadPoolExecutor(1) as left_behind:
            assert left_behind.submit(self.written, lines).result() == "first"
            lines.bind({"run_id": "second"})
            assert left_behind.submit(self.written, lines).result() is None
            forged = left_behind.submit(self.written, lines, run_id="second")
            assert forged.result() is None
            more = left_behind.submit(
                lambda: ThreadPoolExecutor().submit(self.written, lines).result()
            )
            assert more.result() is None
            assert self.written(lines) == "second"

    def test_its_lines_are_not_among_those_that_the_next_run_may_log(
        self, lines: JsonLines
    ) -> None:
        with ThreadPoolExecutor(1) as left_behind:
            left_behind.submit(int).result()
            lines.bind({"run_id": "second"})
            record = logging.makeLogRecord({"msg": ""})
            for _ in range(MOST_LINES):
                assert left_behind.submit(lines.allows, record).result()
            assert not left_behind.submit(lines.allows, record).result()
            assert lines.allows(record)

    def test_a_pool_that_is_kept_logs_for_each_run_by_its_logger(self, lines: JsonLines) -> None:
        kept = ThreadPoolExecutor(1)
        logged: list[str | None] = []

        def it(payload: Any, context: TaskContext) -> None:
            kept.submit(context.logger.warning, "x").result()

        class Told(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                logged.append(json.loads(lines.format(record)).get("run_id"))

        told = Told()
        logging.getLogger("task.it").addHandler(told)
        registry = TaskRegistry()
        registry.add("it", it)
        server = TaskServer(registry, {}, lines)
        for run_id in ("one", "two"):
            server.serve(replace(request("it"), run_id=run_id))
        logging.getLogger("task.it").removeHandler(told)
        assert logged == ["one", "two"]

    def test_threads_do_not_complete_each_others_lines(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        printed = Printed()
        with ThreadPoolExecutor(1) as other:
            other.submit(print, "a secret", end="", file=printed).result()
            print("mine", file=printed)
            printed.end()
        assert [record.getMessage() for record in caplog.records] == ["mine"]


def test_printed_lines_are_records(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    printed = Printed()
    print("one", 2, file=printed)
    print("", "x", sep="\n", file=printed)
    print("100 %s begun", end="", file=printed)
    printed.end()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["one 2", "x", "100 %s begun"]


def test_a_line_without_end_takes_no_time_that_grows_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each dot of a progress bar copied all before it: 160,000 of them took twelve seconds."""
    caplog.set_level(logging.INFO)
    printed = Printed()
    began = time.process_time()
    for _ in range(100_000):
        print(".", end="", file=printed)
    assert time.process_time() - began < 2
    printed.end()
    assert [record.getMessage() for record in caplog.records] == ["." * LIMIT_CHARACTERS]


def test_a_task_that_closes_standard_output_closes_it_for_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As `with open(path, "w") if path else sys.stdout as out` does: it failed the second time."""
    caplog.set_level(logging.INFO)
    printed = Printed()
    for run in ("one", "two"):
        with printed as out:
            print(run, file=out, flush=True)
    assert [record.getMessage() for record in caplog.records] == ["one", "two"]


def test_a_task_may_log_to_standard_output_whatever_the_level() -> None:
    """A handler of the root logger on standard output is common; it must not print its own
    prints."""
    program = (
        "import logging, sys\n"
        "from carillon.executor.task_process.child import Printed, start_logging\n"
        "start_logging('WARNING')\n"
        "sys.stdout = Printed()\n"
        "logging.getLogger().addHandler(logging.StreamHandler(sys.stdout))\n"
        "logging.warning('once')\n"
        "print('printed')\n"
        "sys.stdout.buffer.write(b'raw')\n"
        "assert sys.stdout.encoding == 'utf-8'\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (answer.returncode, answer.stdout) == (0, "raw"), answer.stderr[-2000:]
    said = [
        (each["logger"], each["message"])
        for each in map(json.loads, answer.stderr.split("\n")[:-1])
    ]
    assert said == [("root", "once"), ("print", "once"), ("print", "printed")]
