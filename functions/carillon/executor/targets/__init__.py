"""The targets; what calls a type is imported when its first call comes."""

from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from threading import Lock

from carillon.clock import Clock
from carillon.domain.notifying.notification import Deliverable, EmailChannel, SlackChannel
from carillon.domain.run import RunError, one_line
from carillon.domain.targets import arns_called
from carillon.domain.tracing import TraceContext
from carillon.executor.targets.call import Call, Caller, Failure, Outcome, ReportTo, Success
from carillon.executor.task_process.wire import exception_line
from carillon.settings import Settings

__all__ = ["Call", "Failure", "Outcome", "ReportTo", "Success", "Targets"]

_FACTORIES = {
    "batch": "containers:create_batch",
    "ecs": "containers:create_ecs",
    "email": "channels:create_email",
    "eventbridge": "aws_services:create_eventbridge",
    "lambda": "aws_services:create_lambda",
    "slack": "channels:create_slack",
    "sns": "aws_services:create_sns",
    "sqs": "aws_services:create_sqs",
    "stepfunctions": "aws_services:create_stepfunctions",
    "task": "task:create_caller",
    "webhook": "webhook:create_caller",
}
"""Module and function of each: `(settings, clock) -> Caller`."""


class Targets:
    """Delivers calls to targets of every type; one per process, usable from several threads."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._callers: dict[str, Caller] = {}
        self._lock = Lock()

    def deliver(self, target: Deliverable, call: Call) -> Outcome:
        """Call the target, for at most the call's limit; raises nothing for what it does.

        `not_allowed`, for good, is what the deployment no longer allows: its list may shrink.
        """
        arns = {} if isinstance(target, SlackChannel | EmailChannel) else arns_called(target)
        for arn in arns.values():
            if self._settings.allows_target(arn):
                continue
            message = f"{arn} is not allowed in this deployment (`target_arns` in the CDK context)"
            return Failure(RunError("not_allowed", one_line(message), permanent=True))
        if self._settings.tracing:
            percent = self._settings.trace_percent
            call = replace(call, trace=TraceContext.of_call(call.run_id, call.attempt, percent))
        try:
            return self._caller(target.type).deliver(target, call)
        except Exception as error:  # a defect of ours must end in the history, too
            return Failure(RunError(type(error).__name__, exception_line(error)))

    def room(self, target: Deliverable) -> AbstractContextManager[bool]:
        """Room for a call of a chunk, while the context lasts; False where there is none."""
        return self._caller(target.type).room()

    def prepare(self, task_count: int) -> None:
        """Start processes for this many tasks at once, without waiting for them."""
        self._caller("task").prepare(task_count)

    def close(self) -> None:
        """End the child processes; needed in tests only, since they end with their parent."""
        with self._lock:
            callers, self._callers = self._callers, {}
        for caller in callers.values():
            caller.close()

    def __enter__(self) -> "Targets":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _caller(self, target_type: str) -> Caller:
        with self._lock:
            if target_type not in self._callers:
                module, factory = _FACTORIES[target_type].split(":")
                create = getattr(import_module(f"{__name__}.{module}"), factory)
                self._callers[target_type] = create(self._settings, self._clock)
            return self._callers[target_type]
