"""The targets of a test's jobs: registered tasks run in this process, webhooks are answered by
functions, AWS resources take what they are given."""

import json
import re
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import pytest
from greenlet import GreenletExit

from carillon.domain.notifying.notification import Deliverable
from carillon.domain.run import RunError, RunKey, RunKind
from carillon.domain.targets import TaskTarget, WebhookTarget
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.executor.targets.task import outcome_of, request_of
from carillon.executor.targets.webhook_answers import Answer, judge
from carillon.executor.task_process.child import JsonLines, TaskServer, failure_of
from carillon.schedules.base import EPOCH
from carillon.simulation.faults import Draws
from carillon.simulation.loop import Loop
from carillon.simulation.targets import Behaviour
from carillon.tasks import TaskContext, TaskFunction, TaskRegistry, registered_tasks
from carillon.testing.user_code import Limit, UserCode
from carillon.testing.webhooks import WebhookCall, WebhookFunction, answer_of

_ENDS_TEST = (
    *(GreenletExit, KeyboardInterrupt),
    *(pytest.fail.Exception, pytest.skip.Exception, pytest.exit.Exception),
)
"""What a task raises that is no failure of the task."""
_STATUS = re.compile(r"http_([345]\d\d)")


class _HungUpError(BaseException):
    """Nobody waits for the answer of a webhook's function any more."""


class _Tasks(TaskRegistry):
    """The registered tasks, each called by `call`."""

    def __init__(self, call: Callable[[TaskFunction, Any, TaskContext], object]) -> None:
        super().__init__()
        self._call = call

    def find(self, name: str) -> TaskFunction:
        return partial(self._call, registered_tasks.find(name))


class Endpoints:
    """Behaves as the targets do (`simulation.targets.Behave`); `functions` are those of webhooks,
    by URL."""

    def __init__(self, loop: Loop, code: UserCode) -> None:
        self.functions: dict[str, WebhookFunction] = {}
        self._loop = loop
        self._code = code
        self._failures: defaultdict[str, deque[Behaviour | None]] = defaultdict(deque)
        self._logs = JsonLines()

    def fail(self, job_id: str, times: int, error: str | Exception) -> None:
        """Let the next calls of the job's own target fail, which then has not been called."""
        outcome = None if error == "timeout" else Behaviour(0, _failure_of(error), is_done=False)
        self._failures[job_id].extend([outcome] * times)

    def behave(self, target: Deliverable, call: Call, draws: Draws) -> Behaviour:
        kind = RunKey.from_run_id(call.owner, call.run_id).kind
        failures = self._failures[call.job_id]
        if failures and kind is not RunKind.CALLBACK:
            return failures.popleft() or Behaviour(call.timeout_seconds + 1, Success(None), False)
        match target:
            case TaskTarget():
                return Behaviour(0, self._task(target, call))
            case WebhookTarget():
                return Behaviour(0, self._webhook(target, call))
        return Behaviour(0, Success(None))

    def _task(self, target: TaskTarget, call: Call) -> Outcome:
        """The answer of the task's process; what is to end the test is no answer."""
        who = f"the task {target.name!r} ({_told(call)})"
        message = (
            f"{who} slept beyond its limit of {call.timeout_seconds:g} s: a deployment kills it "
            "there. Check context.expired, give it a longer timeout_seconds, or test what follows "
            'by fail(..., error="timeout")'
        )
        limit = self._limit(who, call, partial(pytest.fail, message))
        ends: list[BaseException] = []

        def run(function: TaskFunction, payload: Any, context: TaskContext) -> object:
            try:
                return self._code.call(limit, partial(function, payload, context))
            except _ENDS_TEST as error:
                ends.append(error)
                raise

        remaining = partial(self._code.remaining, limit)
        server = TaskServer(_Tasks(run), {}, self._logs, lambda request: remaining)
        report = server.serve(request_of(target, call, number=0, deadline_at=0.0, variables={}))
        for error in ends:
            self._end_test(error)
        return outcome_of(report)

    def _webhook(self, target: WebhookTarget, call: Call) -> Outcome:
        function = self.functions.get(target.url)
        if function is None:
            return judge(Answer(200), self._loop.instant())
        told = WebhookCall(
            url=target.url,
            method=target.method,
            payload=None if target.is_bodiless else json.loads(call.payload),
            run_id=call.run_id,
            job_name=call.job_name,
            attempt=call.attempt,
            fire_at=call.fire_at,
        )
        limit = self._limit(f"the function of {target.url} ({_told(call)})", call, _hang_up)
        try:
            answer = answer_of(self._code.call(limit, partial(function, told)), target.url)
        except _HungUpError:
            error = RunError("timeout", f"no complete answer within {call.timeout_seconds:g} s")
            return Failure(error, timed_out=True)
        except BaseException as error:  # the function is a part of the test
            self._end_test(error)
        headers = [(key.lower().encode(), text.encode()) for key, text in answer.headers.items()]
        given = Answer(answer.status, headers, answer.body.encode())
        return judge(given, self._loop.instant(), keeps_whole=call.keeps_whole)

    def _limit(self, who: str, call: Call, exceed: Callable[[], None]) -> Limit:
        ends_us = self._loop.us + int(call.timeout_seconds * 1_000_000)
        return Limit(who, ends_us, exceed)

    def _end_test(self, error: BaseException) -> NoReturn:
        """Raise it where the test lets time pass, and end the process that called."""
        if not isinstance(error, GreenletExit):

            def end() -> None:
                raise error

            self._loop.later(self._loop.us, end)
        raise GreenletExit


def _hang_up() -> None:
    raise _HungUpError


def _failure_of(error: str | Exception) -> Outcome:
    if isinstance(error, Exception):
        return outcome_of(failure_of(0, error))
    status = _STATUS.fullmatch(error)
    if status is not None:
        return judge(Answer(int(status[1])), EPOCH)
    return Failure(RunError(error, "as the test asked"))


def _told(call: Call) -> str:
    return (
        f"job {call.job_name!r}, fire_at {call.fire_at:%Y-%m-%dT%H:%M:%SZ}, attempt {call.attempt}"
    )
