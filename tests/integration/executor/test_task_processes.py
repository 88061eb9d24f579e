"""Tasks in real child processes: what they answer, and what they cannot do to others."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from carillon.domain.run import RESULT_LIMIT_BYTES, RunError
from carillon.executor.targets.call import Failure, Success
from carillon.local.emulator import MARK as EMULATORS_MARK
from carillon.settings import TASK_ENVIRONMENT
from tests.integration.executor.processes import (
    TASKS,
    Tasks,
    children,
    is_running,
    tasks,
    wait_until,
    written_pids,
)

ROOT = Path(__file__).resolve().parents[3]
BROKEN = "tests.integration.executor.broken_tasks"
SLOW = "tests.integration.executor.slow_tasks"
DEADLY = "tests.integration.executor.deadly_tasks"


@pytest.fixture(scope="module")
def shared() -> Iterator[Tasks]:
    """Warm children for the tests that leave them alive."""
    with tasks() as caller:
        yield caller


def test_results(shared: Tasks) -> None:
    assert shared.run("echo", '{"a":[1,"ü"]}') == Success('{"a":[1,"ü"]}')
    assert shared.run("nothing") == Success(None)
    assert shared.run("object_as_result") == Success("{'a'}")


def test_a_child_serves_call_after_call(shared: Tasks) -> None:
    assert shared.run("own_pid") == shared.run("own_pid")


def test_an_exception_is_a_failure_that_may_be_retried(shared: Tasks) -> None:
    outcome = shared.run("fail", '{"message":"as asked"}')
    assert outcome == Failure(RunError("RuntimeError", "as asked"))
    assert shared.run("leave") == Failure(RunError("SystemExit", "enough"))


def test_an_unknown_task_fails_for_good_naming_the_registered_ones(shared: Tasks) -> None:
    outcome = shared.run("no_such_task")
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "unknown_task"
    assert outcome.error.permanent
    assert "'no_such_task'" in outcome.error.message
    assert "deep_result, die, die_beside_fork" in outcome.error.message


def test_recursion_without_end(shared: Tasks) -> None:
    outcome = shared.run("recurse")
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "RecursionError"


@pytest.mark.parametrize("name", ["huge_result", "deep_result"])
def test_results_beyond_measure_are_cut(shared: Tasks, name: str) -> None:
    outcome = shared.run(name)
    assert isinstance(outcome, Success)
    assert outcome.result is not None
    assert len(outcome.result) <= RESULT_LIMIT_BYTES


def test_errors_beyond_measure_are_cut(shared: Tasks) -> None:
    outcome = shared.run("huge_error")
    assert isinstance(outcome, Failure)
    assert len(outcome.error.message) == RESULT_LIMIT_BYTES
    assert outcome.error.message.endswith("(30000000 bytes)")


def test_a_payload_of_the_largest_size(shared: Tasks) -> None:
    payload = json.dumps("y" * 65_000)
    outcome = shared.run("echo", payload)
    assert isinstance(outcome, Success)
    assert (outcome.result or "").startswith('"yyyy')


def test_what_a_task_prints_neither_answers_nor_reaches_descriptor_1(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with tasks() as caller:
        assert caller.run("write_everywhere") == Success('"done"')
        assert caller.run("echo", "1") == Success("1")
        printed = capfd.readouterr()
    assert printed.out == ""
    assert '\\"result\\": \\"spoof\\"' in printed.err  # as a record's message
    assert "to descriptor 1" in printed.err
    assert "to descriptor 2" in printed.err


def test_a_task_has_no_input(shared: Tasks) -> None:
    assert shared.run("read_input", timeout_seconds=5) == Success('""')


def test_a_task_logs_json_lines_with_the_ids_of_its_run(capfd: pytest.CaptureFixture[str]) -> None:
    with tasks() as caller:
        caller.run("log")
        lines = capfd.readouterr().err.splitlines()
    members = json.loads(lines[-1])
    assert members["message"] == "counted"
    assert members["rows"] == 12
    assert (members["run_id"], members["job_id"]) == ("run-of-log", "job")


def test_a_task_that_closes_standard_error_ends_no_other(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with tasks() as caller:
        assert caller.run("close_standard_error") == Success(None)
        assert caller.run("log") == Success(None)
    assert '"run_id"' in capfd.readouterr().err


def test_a_thread_that_a_task_leaves_behind_logs_in_no_later_run_s_name(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with tasks(limit=1) as caller:
        caller.run("leave_a_thread")
        caller.run("sleep", '{"seconds":0.2}')
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    whose = {line.get("run_id") for line in lines if line["message"] == "left behind"}
    assert whose == {"run-of-leave_a_thread", None}


def test_a_task_that_looks_at_its_time_ends_cleanly(shared: Tasks) -> None:
    outcome = shared.run("sleep", '{"seconds":60}', timeout_seconds=3)
    assert isinstance(outcome, Success)
    assert json.loads(outcome.result or "")["complete"] is False


def test_a_task_is_killed_at_its_limit_with_what_it_started(tmp_path: Path) -> None:
    with tasks() as caller:
        caller.run("nothing")
        began = time.monotonic()
        outcome = caller.run("spin_with_offspring", json.dumps(str(tmp_path / "pids")), 2)
        took_seconds = time.monotonic() - began
        assert outcome == Failure(
            RunError("timeout", "the task was killed at its limit of 2 s"), timed_out=True
        )
        assert 2 <= took_seconds < 4
        pids = written_pids(tmp_path / "pids")
        assert len(pids) == 2
        assert wait_until(lambda: not any(is_running(pid) for pid in pids), 2)
        assert caller.run("echo", "1") == Success("1")


def test_what_left_the_session_is_killed_too(tmp_path: Path) -> None:
    with tasks() as caller:
        caller.run("spin_with_sessions", json.dumps(str(tmp_path / "pids")), 5)
        pids = written_pids(tmp_path / "pids")
        assert len(pids) == 3
        assert [pid for pid in pids if is_running(pid)] == []


def test_what_left_the_session_of_a_process_that_died_is_killed(tmp_path: Path) -> None:
    with tasks() as caller:
        outcome = caller.run("die_beside_sessions", json.dumps(str(tmp_path / "pids")))
        died = RunError("task_died", "the task process exited with code 3")
        assert outcome == Failure(died)
        pids = written_pids(tmp_path / "pids")
        assert [pid for pid in pids if is_running(pid)] == []


def test_a_child_below_which_too_much_gathers_is_not_used_again() -> None:
    with tasks() as caller:
        first = caller.run("leave_children", "2")
        assert caller.run("leave_children", "30") == first
        assert caller.run("own_pid") != first


def test_a_task_sees_what_is_documented_of_the_environment_and_no_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "JOBS_TABLE"):
        monkeypatch.setenv(name, "secret")
    with tasks() as caller:
        outcome = caller.run("environment")
    assert isinstance(outcome, Success)
    seen = set(json.loads(str(outcome.result)))
    page = (ROOT / "docs" / "running.md").read_text()

    assert {"AWS_REGION", "PATH"} <= seen
    # The local stack knows its processes by it.
    assert EMULATORS_MARK in TASK_ENVIRONMENT
    # What Python itself sets in the C locale.
    assert seen - {"LC_CTYPE"} <= {*TASK_ENVIRONMENT, "CARILLON_TASK_PROCESS"}
    assert [name for name in TASK_ENVIRONMENT if f"`{name}`" not in page] == []


def test_ways_to_die() -> None:
    with tasks() as caller:
        died = "the task process "
        assert caller.run("die") == Failure(RunError("task_died", died + "exited with code 1"))
        outcome = caller.run("die", '{"code":0}')
        assert outcome == Failure(RunError("task_died", died + "exited with code 0"))
        outcome = caller.run("segfault")
        assert outcome == Failure(RunError("task_died", died + "was killed by SIGSEGV"))
        assert caller.run("echo", "1") == Success("1")


def test_a_death_is_seen_although_a_fork_keeps_the_connection(tmp_path: Path) -> None:
    with tasks() as caller:
        caller.run("nothing")
        began = time.monotonic()
        outcome = caller.run("die_beside_fork", json.dumps(str(tmp_path / "pids")))
        assert time.monotonic() - began < 5
        assert outcome == Failure(RunError("task_died", "the task process exited with code 3"))
        (fork,) = written_pids(tmp_path / "pids")
        assert wait_until(lambda: not is_running(fork), 2)


def test_a_fork_that_returns_does_not_answer() -> None:
    with tasks() as caller:
        assert caller.run("return_twice") == Success('"parent"')
        assert caller.run("echo", "1") == Success("1")


def test_a_death_beside_nine_good_tasks() -> None:
    with tasks() as caller, ThreadPoolExecutor(10) as threads:
        names = ["echo"] * 4 + ["die"] + ["sleep"] * 5
        outcomes = list(threads.map(lambda name: caller.run(name, "0.2"), names))
    assert [type(outcome) for outcome in outcomes] == [
        Failure if name == "die" else Success for name in names
    ]


def test_calls_side_by_side_get_their_own_answers() -> None:
    before = children()
    with tasks(limit=3) as caller, ThreadPoolExecutor(8) as threads:
        payloads = [str(number) for number in range(200)]
        outcomes = list(threads.map(lambda payload: caller.run("echo", payload), payloads))
        assert 1 <= len(children() - before) <= 3
    assert outcomes == [Success(payload) for payload in payloads]


def test_a_child_that_dies_between_calls_is_not_noticed() -> None:
    with tasks() as caller:
        outcome = caller.run("die_later")
        assert isinstance(outcome, Success)
        pid = int(outcome.result or "")
        assert wait_until(lambda: not is_running(pid))
        assert caller.run("echo", "1") == Success("1")


def test_prepared_children_are_used() -> None:
    before = children()
    with tasks() as caller:
        caller.pool.prepare(3)
        caller.pool.prepare(2)
        prepared = children() - before
        assert len(prepared) == 3
        outcome = caller.run("own_pid")
        assert isinstance(outcome, Success)
        assert int(outcome.result or "") in prepared
        assert children() - before == prepared


def test_a_broken_module_leaves_the_others_alone() -> None:
    with tasks(BROKEN, TASKS) as caller:
        first, second = caller.run("own_pid"), caller.run("own_pid")
        assert isinstance(first, Success)
        assert isinstance(second, Success)
        assert first != second  # such a child is not kept: the reason may pass
        outcome = caller.run("task_of_the_broken_module")
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.error.permanent) == ("task_import_failed", False)
    assert f"{BROKEN}: ImportError: a library is missing" in outcome.error.message


def test_a_module_that_kills_at_import() -> None:
    with tasks(DEADLY) as caller:
        message = "the task process exited with code 4 before it was ready"
        for _ in range(2):
            assert caller.run("echo") == Failure(RunError("task_died", message))


def test_a_start_that_takes_longer_than_the_limit_serves_a_later_call() -> None:
    with tasks(SLOW, TASKS) as caller:
        caller.pool.prepare(1)
        starting = children()
        outcome = caller.run("nothing", timeout_seconds=0.3)
        message = "no task process was ready within 0.3 s"
        assert outcome == Failure(RunError("task_not_ready", message))
        assert caller.run("nothing") == Success(None)
        assert children() == starting


def test_a_task_says_when_it_is_to_be_tried_again_or_that_it_is_over(shared: Tasks) -> None:
    assert shared.run("come_back", '{"seconds":90}') == Failure(
        RunError("retry", "no lock yet"), retry_after_seconds=90
    )
    assert shared.run("give_up", '"no such customer"') == Failure(
        RunError("fail", "no such customer", permanent=True)
    )


KILLED = """
from tests.integration.executor.processes import children, tasks
with tasks("tests.e2e.faulty_tasks.faults", "carillon.executor.tasks.samples") as caller:
    print(caller.run("kill_executor", '{"attempts":0}'), flush=True)
    caller.pool.prepare(2)
    print(*children(), flush=True)
    caller.run("kill_executor")
"""


def test_a_task_can_kill_its_executor_for_tests() -> None:
    """As when memory runs out: nothing is said, nothing is cleaned up, no child stays behind."""
    executor = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert executor.returncode == -signal.SIGKILL
    outcome, pids = executor.stdout.splitlines()
    assert outcome == repr(Success('"survived at attempt 1"'))
    assert len(pids.split()) == 2
    assert wait_until(lambda: not any(is_running(int(pid)) for pid in pids.split()))


def test_closing_leaves_no_process() -> None:
    before = children()
    with tasks() as caller, ThreadPoolExecutor(3) as threads:
        caller.pool.prepare(4)
        running = threads.submit(caller.run, "sleep", "0.3")
        assert wait_until(lambda: len(children() - before) == 4)
        time.sleep(0.1)
        caller.pool.close()
        assert isinstance(running.result(), Success)
        assert children() == before
        caller.pool.prepare(2)
        assert children() == before


@pytest.mark.parametrize(
    ("task_name", "timeout_seconds"),
    [
        ("spin", 600),
        ("spin_with_offspring", 600),
        ("spin_with_sessions", 600),
        ("hold_interpreter", 2),
    ],
)
def test_children_end_with_their_parent(
    task_name: str, timeout_seconds: int, tmp_path: Path
) -> None:
    """At once when they can look up; one that no thread of Python can interrupt, at its limit."""
    program = (
        "import sys; from tests.integration.executor.processes import Tasks; "
        "caller = Tasks(); caller.pool.prepare(3); caller.run(*sys.argv[1:3], int(sys.argv[3]))"
    )
    payload = json.dumps(str(tmp_path / "pids"))
    arguments = [sys.executable, "-c", program, task_name, payload, str(timeout_seconds)]
    with subprocess.Popen(arguments, cwd=ROOT) as parent:
        pids = written_pids(tmp_path / "pids")
        family = children(parent.pid) | set(pids)
        assert len(family) >= 3
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    gone = wait_until(lambda: not any(is_running(pid) for pid in family), 8)
    for pid in family:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)
    assert gone
