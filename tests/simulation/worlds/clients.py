"""The owner's side: each request is a process that may die; who got no answer asks again."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pydantic import ValidationError

from carillon.api.apply.models import ApplyBody
from carillon.api.calendars.models import CalendarBody
from carillon.api.http.problems import Kind, ProblemError
from carillon.api.http.requests import Precondition
from carillon.api.jobs.request_models import PauseBody
from carillon.api.operations.models import BackfillBody, DeadLetterBody, HandOverBody
from carillon.domain.chunks.chunk import Chunk, ref_of
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.operation import Operation, OperationKind
from carillon.domain.run import DEAD_LETTER, Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import SYSTEM, Author, AuthorKind, Via
from carillon.errors import CarillonError, QueueUnavailableError, StoreUnavailableError
from carillon.reindexing.reindexing import Reindex
from carillon.reindexing.spreading import Spread
from carillon.simulation.deployment import Deployment
from carillon.simulation.faults import Draws
from carillon.simulation.loop import Task
from carillon.simulation.services import Api, job_body
from carillon.stores.ports import SKEW_LIMIT_SECONDS
from tests.simulation.judging.evidence import Ack
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_parts import CALENDAR, JobPlan, Request
from tests.support.requests import API_SECONDS, job_patch

_UNKNOWN = (StoreUnavailableError, QueueUnavailableError)
"""Answers after which a client does not know whether anything has happened."""


_WANTED: dict[str, frozenset[RunStatus]] = {
    "cancel": frozenset({RunStatus.SCHEDULED, RunStatus.RETRYING}),
    "stop": frozenset({RunStatus.RUNNING}),
    "redrive": DEAD_LETTER,
    "discard": DEAD_LETTER,
}
"""Requests about some run, by the statuses in which it can be what they are about."""
_LOOKED_AT = 100
"""Rows of a job that are looked through for one that is there already."""
_LATER_US = (0, 1_000, 50_000, 1_000_000, 20_000_000)
"""How long after a run is there it is asked about at most."""
_SKEW_US = int(SKEW_LIMIT_SECONDS * 1e6)
"""The clock of an operator's machine may be wrong by so much: commands refuse to go by one that is
off by more."""
_STOPPED_AFTER_SECONDS = (1.95, 2.0, 2.05, 2.5, 3.9, 4.1, 7.0, 12.0)
"""How long after the claim of a run it is stopped, if it is still under way."""
_AFTER_A_LEASE_SECONDS = (0.0, 0.1, 2.0, 10.0)
"""How long after the lease of its chunk has lapsed."""


CLIENT = Author(AuthorKind.PERSON, "owner", "", Via.API)


class NothingThereError(CarillonError):
    """There is nothing that the request could be about."""


class RefusedError(CarillonError):
    """The API does not take this body."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request under way; `requested_at` is when it was sent for the first time."""

    request: Request
    step: Callable[[], Any]
    requested_at: datetime
    repetition: int = 0


class Clients:
    """Sends the requests of a scenario; `on_ack` is told of each that was answered as done.

    One about some run is sent when there is such a run: often just then, or just before the next
    attempt of it begins.
    """

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
        self._plans = {job.name: job for job in reversed(scenario.plans)}
        self._waiting: dict[str, list[Request]] = {}
        deployment.loop.observers.append(self._observe)

    def start(self) -> None:
        """Put calendar and notifications, and order the requests; before the loop runs."""
        loop = self._deployment.loop
        if self._scenario.calendar:
            for owner in sorted({job.owner for job in self._scenario.plans}):
                self._put_calendar(owner, self._scenario.calendar)
        for plan in self._scenario.notifications:
            row = plan.row(self._scenario.start)
            self._deployment.stores.ports.notifications.put(row, None)
        start_us = loop.us_of(self._scenario.start)
        for request in self._scenario.requests:
            if request.job in self._plans:
                at_us = start_us + request.after_us
                if request.what in _WANTED:
                    loop.later(at_us, partial(self._look, request))
                else:
                    self._send(_Sent(request, self._step_of(request), loop.instant(at_us)))
        for job in self._scenario.plans:
            self._go_on(job)

    def _go_on(self, job: JobPlan) -> None:
        """No job stays paused, but those that are to be resumed by themselves: a promise about what
        is due would be empty."""
        last = Request(f"resume {job.name} of {job.owner} at last", "go_on", job.name, 0)
        step = partial(self._resume_unless_timed, job.owner, job.job_id)
        self._send(_Sent(last, step, self._scenario.calm_at))

    def _look(self, request: Request) -> None:
        """Send a request about a run that there is; else it waits for one."""
        plan = self._plans[request.job]
        owner, job_id = plan.owner, plan.job_id
        rows = self._deployment.stores.runs.list(owner, job_id, _LOOKED_AT).items
        found = [row for row in rows if _may_be(request.what, row) and not row.settled]
        if found:
            self._send_about(request, Draws(self._scenario.seed, request.name).choice(found))
        else:
            self._waiting.setdefault(job_id, []).append(request)

    def _observe(
        self, task: Task | None, port: str, method: str, args: tuple[Any, ...], answer: object
    ) -> None:
        """A run row that was written may be what a request waits for, or a chunk whose executor
        is to die."""
        if (port, method, answer) == ("chunks", "claim", True):
            self._wait_for_the_lease(args[0])
        if port != "runs" or not self._waiting or method not in ("claim", "finish") or not answer:
            return
        row: Run = args[0]
        waiting = self._waiting.get(row.key.job_id, ())
        for request in [each for each in waiting if _may_be(each.what, row)]:
            self._waiting[row.key.job_id].remove(request)
            self._send_about(request, row)

    def _wait_for_the_lease(self, chunk: Chunk) -> None:
        loop, jobs = self._deployment.loop, self._deployment.stores.jobs
        for job_id, requests in self._waiting.items():
            stops = [each for each in requests if each.what == "stop"]
            job = jobs.get(self._plans[stops[0].job].owner, job_id) if stops else None
            if job is None:
                continue
            ref = ref_of(job_id, job.generation.generation_id, job.spread_seconds)
            if ref in chunk.refs:
                fire_at = chunk.key.due_at - timedelta(seconds=job.spread_seconds)
                key = RunKey(job.owner, job_id, RunKind.SCHEDULED, fire_at)
                draws = Draws(self._scenario.seed, f"moment of {stops[0].name}")
                lapses_in = (chunk.lease_until - loop.instant()).total_seconds()
                later = lapses_in + draws.choice(_AFTER_A_LEASE_SECONDS)
                loop.after(later, partial(self._stop_in_chunk, stops[0], key, chunk.key))

    def _stop_in_chunk(self, request: Request, key: RunKey, of: ChunkKey) -> None:
        """Stop a run that only its chunk tells of, whose executor must have died."""
        stores, waiting = self._deployment.stores, self._waiting[key.job_id]
        chunk, now = stores.chunks.get(of), self._deployment.loop.instant()
        is_left = chunk is not None and not chunk.is_final and stores.runs.get(key) is None
        if is_left and request in waiting and now < self._scenario.calm_at:
            waiting.remove(request)
            self._send(_Sent(request, self._step_about(request, key.run_id), now))

    def _send_about(self, request: Request, run: Run) -> None:
        loop = self._deployment.loop
        draws = Draws(self._scenario.seed, f"moment of {request.name}")
        if request.what == "stop":
            loop.after(draws.choice(_STOPPED_AFTER_SECONDS), partial(self._stop, request, run))
            return
        at_us = loop.us + draws.below(draws.choice(_LATER_US) + 1)
        if run.next_attempt_at is not None and draws.fraction() < 0.4:
            near_us = loop.us_of(run.next_attempt_at) - 100_000 + draws.below(150_000)
            at_us = max(loop.us, near_us)
        if at_us < loop.us_of(self._scenario.calm_at):
            step = self._step_about(request, run.key.run_id)
            self._send(_Sent(request, step, loop.instant(at_us)))

    def _stop(self, request: Request, run: Run) -> None:
        """Stop a run that is under way still; else the next one of its job."""
        row = self._deployment.stores.runs.get(run.key)
        if row is None or not row.is_held_by(run):
            self._look(request)
        elif self._deployment.loop.instant() < self._scenario.calm_at:
            step = self._step_about(request, run.key.run_id)
            self._send(_Sent(request, step, self._deployment.loop.instant()))

    def _send(self, sent: _Sent, at: datetime | None = None) -> None:
        request, number = sent.request, sent.repetition
        name = request.name if number == 0 else f"{request.name} #{number}"
        self.sent += 1
        begin, step = at or sent.requested_at, partial(_answered, sent.step)
        skew_us = self._skew_us(request)
        task = self._deployment.invoke(name, step, at=begin, seconds=API_SECONDS, skew_us=skew_us)
        task.on_end = partial(self._ended, sent, task)

    def _skew_us(self, request: Request) -> int:
        if request.what not in {"spread", "reindex"}:
            return 0
        draws = Draws(self._scenario.seed, f"clock of {request.name}")
        return draws.choice((0, int(draws.between(-_SKEW_US, _SKEW_US))))

    def _ended(self, sent: _Sent, task: Task) -> None:
        loop, request = self._deployment.loop, sent.request
        if not task.died and task.failure is None:
            loop.tell(f"answered: {request.what} done")
            self._on_ack(self._ack_of(sent, task.value))
            return
        loop.tell(f"answered: {task.failure!r}" if task.failure else "no answer")
        if not task.died and not isinstance(task.failure, _UNKNOWN):
            return
        draws = Draws(self._scenario.seed, f"repeat {request.name}", sent.repetition)
        at_us = loop.us + draws.choice((10_000, 1_000_000, 5_000_000))
        if sent.repetition < request.repeats and at_us < loop.us_of(self._scenario.calm_at):
            again = replace(sent, repetition=sent.repetition + 1)
            self._send(again, loop.instant(at_us))

    def _ack_of(self, sent: _Sent, answer: object) -> Ack:
        request = sent.request
        return Ack(
            what=request.what,
            job_id=self._plans[request.job].job_id,
            requested_at=sent.requested_at,
            answered_at=self._deployment.loop.instant(),
            run_id=answer.key.run_id if isinstance(answer, Run) else "",
            key=request.key,
            made=answer.operation_id if isinstance(answer, Operation) else "",
        )

    def _step_of(self, request: Request) -> Callable[[], Any]:
        plan, key, body = self._plans[request.job], request.key or None, request.body
        api, owner, job_id = self._api, plan.owner, plan.job_id
        match request.what:
            case "create":
                return lambda: api.jobs.create(owner, job_body(json.loads(body)), plan.name)
            case "put":
                put, anyhow = partial(api.jobs.put, force=True), Precondition()
                return lambda: put(owner, job_body(json.loads(body)), anyhow)
            case "apply":
                return partial(self._apply, owner, json.loads(body))
            case "change":
                change = partial(api.jobs.change, force=True)
                return lambda: change(owner, job_id, job_patch(json.loads(body)), None)
            case "pause":
                until = PauseBody.model_validate_json(body or "{}").until
                pause, end_of_pause = api.jobs.pause, api.jobs.planner.end_of_pause
                return lambda: pause(owner, job_id, CLIENT, resume_at=end_of_pause(until))
            case "resume":
                return partial(api.jobs.resume, owner, job_id, CLIENT)
            case "delete":
                return partial(api.jobs.delete, owner, job_id, force=True)
            case "run":
                return partial(api.runs.request, owner, job_id, key)
            case "calendar":
                return partial(self._put_calendar, owner, body)
            case "backfill":
                fill, parsed = api.operations.backfill, BackfillBody.model_validate_json
                return lambda: fill(owner, job_id, parsed(body), key)
            case "redrive_all" | "discard_all":
                settle, chosen = api.operations.settle, DeadLetterBody.model_validate_json
                kind = OperationKind(request.what.removesuffix("_all"))
                return lambda: settle(owner, kind, chosen(body), key)
            case "hand_over":
                return partial(self._hand_over, json.loads(body), plan.name, key)
            case "cancel_all":
                return partial(self._cancel_newest, owner)
            case "spread":
                return partial(self._spread, int(body))
            case "reindex":
                return partial(self._reindex, timedelta(seconds=int(body)) if body else None)
        raise ValueError(request.what)

    def _step_about(self, request: Request, run_id: str) -> Callable[[], Run]:
        api, plan = self._api, self._plans[request.job]
        match request.what:
            case "cancel" | "stop":
                return partial(api.runs.cancel, plan.owner, plan.job_id, run_id)
            case "redrive":
                return partial(api.dead_letters.redrive, plan.owner, run_id)
            case "discard":
                return partial(api.dead_letters.discard, plan.owner, run_id)
        raise ValueError(request.what)

    def _cancel_newest(self, owner: str) -> Operation:
        """Cancel the operation that the owner began last."""
        page = self._api.operations.list(owner, 1, None)
        if not page.items:
            raise NothingThereError("no operation to cancel")
        return self._api.operations.cancel(owner, page.items[0].operation_id)

    def _hand_over(self, body: dict[str, Any], name: str, key: str | None) -> Operation:
        """Jobs of any owner to any other: who may ask for it is the routes' matter."""
        owner, to = body["from"], body["to"]
        chosen: dict[str, Any] = {"job_id": job_id_of(owner, name)} if body["is_one"] else {}
        asked = HandOverBody.model_validate({"to": to, "force": True, **(chosen or {"all": True})})
        return self._api.operations.hand_over(owner, to, asked, CLIENT, key)

    def _spread(self, segments: int) -> None:
        """Move all jobs, as the operator's command does."""
        deployment = self._deployment
        longest_seconds = deployment.options.longest_delay_seconds
        ports, clock = deployment.stores.ports, deployment.clock
        _do_all(Spread(ports, clock, deployment.entropy, longest_seconds, segments))

    def _reindex(self, back: timedelta | None) -> None:
        """Put all jobs on the wheel anew, as the operator's command does."""
        deployment = self._deployment
        longest_seconds = deployment.options.longest_delay_seconds
        ports, clock = deployment.stores.ports, deployment.clock
        since = None if back is None else clock.now() - back
        _do_all(Reindex(ports, clock, deployment.entropy, longest_seconds, since))

    def _resume_unless_timed(self, owner: str, job_id: str) -> object:
        job = self._api.jobs.get(owner, job_id)
        return self._api.jobs.resume(owner, job_id, CLIENT) if job.resume_at is None else job

    def _apply(self, owner: str, jobs: dict[str, Any]) -> None:
        body = ApplyBody.model_validate(
            {"manifest": "m", "jobs": jobs, "force": True, "adopt": True}
        )
        applied = self._api.applying.apply(owner, SYSTEM, "manifest/m", body, lambda item: None)
        if not applied.is_complete:
            raise StoreUnavailableError("not all of it was reached")
        if not applied.is_written:
            raise RefusedError(str([item.problem for item in applied.items]))

    def _put_calendar(self, owner: str, body: str) -> object:
        parsed = CalendarBody.model_validate_json(body)
        return self._api.calendars.put(owner, CALENDAR, parsed, Precondition())


def _may_be(what: str, row: Run) -> bool:
    """Whether a request can be about the run as it is."""
    return row.status in _WANTED[what] or (what == "cancel" and row.is_open)


def _answered(step: Callable[[], Any]) -> Any:
    """What the request comes to; a body is read when it is sent, as the handler reads it."""
    try:
        return step()
    except ValidationError as error:
        raise RefusedError(str(error)) from error
    except ProblemError as error:
        if error.kind is Kind.UNAVAILABLE:
            raise StoreUnavailableError(str(error)) from error
        raise RefusedError(str(error)) from error


def _do_all(work: Spread | Reindex) -> None:
    """Do an operator's work; raises StoreUnavailableError where some is left."""
    work.run()
    if work.done.left:
        raise StoreUnavailableError(work.done.left[0])
