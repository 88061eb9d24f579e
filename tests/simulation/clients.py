"""The owner's side: each request is a process that may die; who got no answer asks again."""

import json
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from functions.api.calendar_bodies import CalendarBody
from functions.api.calendar_service import CalendarService
from functions.api.operation_forms import BackfillBody, DeadLetterBody
from functions.api.requests import Precondition
from infra.simulation.api import API_SECONDS, Api, job_body, job_patch
from infra.simulation.deployment import Deployment
from shared.domain.operation import OperationKind
from shared.domain.run import DEAD_LETTER, Run, RunStatus
from shared.errors import CarillonError, QueueUnavailableError, StoreUnavailableError
from shared.simulation.dice import Dice
from shared.simulation.loop import Task
from tests.simulation.evidence import Ack
from tests.simulation.scenario import Scenario
from tests.simulation.scenario_parts import CALENDAR, OWNER, JobPlan, Request

_UNKNOWN = (StoreUnavailableError, QueueUnavailableError)
"""Answers after which a client does not know whether anything has happened."""


_LOOKS = 12


class NothingThereError(CarillonError):
    """There is no run that the request could be about."""


class Clients:
    """Sends the requests of a scenario; `on_ack` is told of each that was answered as done."""

    def __init__(
        self,
        scenario: Scenario,
        deployment: Deployment,
        on_ack: Callable[[Ack], object],
    ) -> None:
        self.sent = 0
        self._scenario = scenario
        self._deployment = deployment
        self._on_ack = on_ack
        self._api = Api.of(deployment)
        ports = deployment.stores.ports
        self._calendars = CalendarService(self._api.jobs, ports.calendars, deployment.clock)
        self._plans = {job.name: job for job in scenario.jobs}

    def start(self) -> None:
        """Put the calendar, and order the requests; before the loop runs."""
        loop = self._deployment.loop
        if self._scenario.calendar:
            self._put_calendar(self._scenario.calendar)
        start_us = loop.us_of(self._scenario.start)
        for request in self._scenario.requests:
            if request.job in self._plans:
                at = loop.instant(start_us + request.after_us)
                self._send(request, self._step_of(request), at, at, 0)
        for job in self._scenario.jobs:
            self._go_on(Request(f"resume {job.name} at last", "resume", job.name, 0))

    def _go_on(self, last: Request) -> None:
        """No job stays paused: a promise about what is due would be empty."""
        at = self._scenario.calm_at
        self._send(last, self._step_of(last), at, at, 0)

    def _send(
        self,
        request: Request,
        step: Callable[[], Any],
        at: datetime,
        asked_at: datetime,
        repetition: int,
    ) -> None:
        name = request.name if repetition == 0 else f"{request.name} #{repetition}"
        self.sent += 1
        task = self._deployment.invoke(name, step, at=at, seconds=API_SECONDS)
        task.on_end = partial(self._ended, request, step, task, asked_at, repetition)

    def _ended(
        self,
        request: Request,
        step: Callable[[], Any],
        task: Task,
        asked_at: datetime,
        repetition: int,
    ) -> None:
        loop = self._deployment.loop
        if not task.died and task.failure is None:
            job_id, run_id = self._plans[request.job].job_id, _run_id_of(task.value)
            loop.tell(f"answered: {request.what} done")
            self._on_ack(Ack(request.what, job_id, asked_at, loop.instant(), run_id))
            return
        loop.tell(f"answered: {task.failure!r}" if task.failure else "no answer")
        dice = Dice(self._scenario.seed, f"repeat {request.name}", repetition)
        wait_us, most = dice.choice((10_000, 1_000_000, 5_000_000)), request.repeats
        if isinstance(task.failure, NothingThereError):
            # What it waits for may be there for a moment only.
            wait_us, most = 1_000_000 + dice.below(9_000_000), _LOOKS
        elif not task.died and not isinstance(task.failure, _UNKNOWN):
            return
        at_us = loop.us + wait_us
        if repetition < most and at_us < loop.us_of(self._scenario.calm_at):
            at = loop.instant(at_us)
            self._send(request, step, at, asked_at, repetition + 1)

    def _step_of(self, request: Request) -> Callable[[], Any]:
        plan, key, body = self._plans[request.job], request.key or None, request.body
        api, job_id = self._api, plan.job_id
        match request.what:
            case "create":
                return partial(api.jobs.create, OWNER, job_body(json.loads(body)), plan.name)
            case "change":
                return partial(api.jobs.change, OWNER, job_id, job_patch(json.loads(body)), None)
            case "pause":
                return partial(api.jobs.pause, OWNER, job_id)
            case "resume":
                return partial(api.jobs.resume, OWNER, job_id)
            case "delete":
                return partial(api.jobs.delete, OWNER, job_id)
            case "run":
                return partial(api.runs.request, OWNER, job_id, key)
            case "calendar":
                return partial(self._put_calendar, body)
            case "backfill":
                filled = BackfillBody.model_validate_json(body)
                return partial(api.operations.backfill, OWNER, job_id, filled, key)
            case "redrive_all" | "discard_all":
                chosen = DeadLetterBody.model_validate_json(body)
                kind = OperationKind(request.what.removesuffix("_all"))
                return partial(api.operations.settle, OWNER, kind, chosen, key)
        return self._on_some_run(request, plan)

    def _on_some_run(self, request: Request, plan: JobPlan) -> Callable[[], Run]:
        """Look for a run that it can be about, then ask."""
        api = self._api
        dice = Dice(self._scenario.seed, f"choice of {request.name}")
        fraction = dice.fraction()
        match request.what:
            case "cancel":
                wanted = frozenset({RunStatus.SCHEDULED, RunStatus.RETRYING})
                act: Callable[[str], Run] = partial(api.runs.cancel, OWNER, plan.job_id)
            case "redrive":
                wanted, act = DEAD_LETTER, partial(api.dead_letters.redrive, OWNER)
            case "discard":
                wanted, act = DEAD_LETTER, partial(api.dead_letters.discard, OWNER)
            case _:
                raise ValueError(request.what)

        def step() -> Run:
            page = api.runs.list(OWNER, plan.job_id, 100, None)
            found = [run.key.run_id for run in page.items if run.status in wanted]
            if not found:
                raise NothingThereError(f"no run of {plan.name} to {request.what}")
            return act(found[int(fraction * len(found))])

        return step

    def _put_calendar(self, body: str) -> object:
        parsed = CalendarBody.model_validate_json(body)
        return self._calendars.put(OWNER, CALENDAR, parsed, Precondition())


def _run_id_of(answer: object) -> str:
    return answer.key.run_id if isinstance(answer, Run) else ""
