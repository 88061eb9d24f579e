"""A workload in virtual time: its jobs are created, the real tick and executor run them, and their
results are summed up."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import product
from typing import Any

from carillon.api.http.problems import InvalidFieldsError, PayloadTooLargeError
from carillon.api.http.requests import Precondition
from carillon.clock import utc_text
from carillon.domain.calendar import shifts
from carillon.domain.job import Job, JobState
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.run import RunError, RunKind
from carillon.errors import InvalidFieldError, QueueUnavailableError, StoreUnavailableError
from carillon.executor.targets import Call, Failure, Success
from carillon.manifest.manifest import ManifestRefusedError, Path
from carillon.schedules import CalendarRule, Delay, Recurrence
from carillon.schedules.calendars.closed_days import MOST_SHIFTED_DAYS
from carillon.schedules.insight.cost import standing
from carillon.simulation.costs import Bill, Meter
from carillon.simulation.deployment import Deployment, Options, Span
from carillon.simulation.faults import Chaos, Draws, Fault, Faults
from carillon.simulation.loop import Loop, Task
from carillon.simulation.services import Api
from carillon.simulation.summary import Line, Place, Tally
from carillon.simulation.targets import Behaviour, SimulatedTargets, TargetCall
from carillon.simulation.workload import BehaviourProfile, Definition, Workload

NO_FAULTS = Faults()
_SEGMENTS = 2
_PAGE_SIZE = 1000
_WARM_UP = timedelta(minutes=2)
"""Ticks run this long before the jobs come: they find a deployment at work."""
_LATENCY_US = 50_000
_UPKEEP = timedelta(minutes=10)
_SLICE = timedelta(minutes=1)
_SETTLING = timedelta(minutes=15)
"""The longest wait, at the end, for what is still under way."""
_ROW_LIFETIME = timedelta(hours=1)
_MOVED_ROW_LIFETIME = timedelta(days=MOST_SHIFTED_DAYS + 2)
_REPORTED = timedelta(seconds=1)
"""A target with `completion` reports the end of its run so long after its call."""
_MOST_ERRORS = 50
_TRIES = 20
_BY_CALL = (
    *(Fault.DIES, Fault.THROTTLED, Fault.LOST, Fault.CONTENDED),
    *(Fault.SLOW, Fault.PAUSED, Fault.STALE),
)
"""Faults that strike single calls: only for them are tasks interleaved, which takes its time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: [from_at, until_at), whole seconds, by one seed.

    `ticks_down` and `executors_down`: spans in which nothing invokes them. `most_first` fire times
    of each definition are listed.
    """

    from_at: datetime
    until_at: datetime
    seed: int = 0
    faults: Faults = NO_FAULTS
    ticks_down: Sequence[Span] = ()
    executors_down: Sequence[Span] = ()
    most_first: int = 3


class Simulation:
    """One simulation: `advance` it as far as wanted, `settle` it at its end, ask what came of it.

    Raises ManifestRefusedError when the API refuses any of the jobs or calendars.
    """

    def __init__(self, workload: Workload, plan: Plan) -> None:
        self.plan = plan
        self.loop = loop_of(plan.from_at, plan.seed, plan.faults)
        self.tally = Tally(self.loop, plan.from_at, plan.until_at, plan.most_first)
        self._definitions: dict[str, Definition] = {}
        self._injected: Counter[str] = Counter()
        self._last_us = self.loop.us_of(plan.until_at) - 1
        self._meters = _meters()
        self._final_bills: dict[str, Bill] | None = None
        options = Options(
            segments=_SEGMENTS, run_lifetime=_row_lifetime(workload, plan), page_size=_PAGE_SIZE
        )
        targets = SimulatedTargets(self.loop, self._behave, self._on_call)
        self.deployment = Deployment(
            self.loop,
            options,
            targets,
            ticks_down=plan.ticks_down,
            executors_down=plan.executors_down,
        )
        self._completions = Api.of(self.deployment).completions
        self.deployment.on_invoke = self._count_invocation
        self.deployment.start()
        # A second before, so that jobs due at the very begin are part of it.
        self.loop.run(self.loop.us_of(plan.from_at - timedelta(seconds=1)))
        self._create(workload)
        self._meters.update(_meters())  # nothing before the span counts
        self.loop.observers.append(self._observe)
        self.loop.later(self.loop.us, self._keep_up)

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return self.loop.instant()

    @property
    def is_over(self) -> bool:
        return self.loop.us >= self._last_us

    def advance(self, until: datetime) -> None:
        """Let everything happen until then, or up to the end of the plan."""
        self.loop.run(min(self.loop.us_of(until), self._last_us))

    def settle(self, go_on: Callable[[], bool]) -> None:
        """After the end: wait for runs under way, for a quarter of an hour at most."""
        self._bills()  # everything from now on is beyond the span
        until = self.plan.until_at + _SETTLING
        while self._open_count() and self.now < until and go_on():
            self.loop.run(self.loop.us_of(self.now + _SLICE))

    def summary(self) -> dict[str, Any]:
        """The result until now, as JSON's types."""
        self._take_faults()
        tallied = self.tally.as_json()
        lines = tallied.pop("jobs")
        until = self.plan.until_at if self.is_over else self.now
        return {
            "from": utc_text(self.plan.from_at),
            "to": utc_text(until),
            "seed": self.plan.seed,
            "job_count": len(self.tally.places),
            **tallied,
            "due": sum(self._due.values()) if self.is_over else None,
            "open": self._open_count() if self.is_over else None,
            "paused": self._paused(),
            "faults": dict(sorted(self._injected.items())),
            "usage": self._usage(tallied["fires"]),
            "crashes": [f"{name}: {error!r}" for name, error in self.deployment.crashes[:5]],
            "jobs": lines,
        }

    def _bills(self) -> dict[str, Bill]:
        """Until now; once the plan's end is reached, until then."""
        if self._final_bills is not None:
            return self._final_bills
        bills = {name: meter.bill() for name, meter in self._meters.items()}
        minutes = (min(self.now, self.plan.until_at) - self.plan.from_at).total_seconds() / 60
        bills["standing"] = Bill(standing(max(0.0, minutes)), 0, {})
        if self.is_over:
            self._final_bills = bills
        return bills

    def _usage(self, fires: int) -> dict[str, Any]:
        """The costs of the ticks, which come whatever fires, of the runs, and of the deployment as
        such."""
        bills = self._bills()
        return {
            **{name: bill.as_json() for name, bill in bills.items()},
            "dollars_total": round(sum(bill.usage.dollars for bill in bills.values()), 6),
            "runs_dollars_per_million_fires": (
                round(bills["runs"].usage.dollars / fires * 1e6, 2) if fires else None
            ),
        }

    @cached_property
    def _due(self) -> dict[str, int]:
        """The occurrences of the plan's span by job id, for jobs whose occurrences can be
        foreseen."""
        due: dict[str, int] = {}
        counted: dict[tuple[Recurrence, timedelta], int] = {}
        for job_id, place in self.tally.places.items():
            job = self._job(job_id)
            if job.state is JobState.PAUSED or isinstance(job.schedule, Delay):
                continue
            if shifts(job.spec.calendar) or job.spec.after is not None:
                continue
            spread = timedelta(seconds=place.spread_seconds)
            if (job.schedule, spread) not in counted:
                counted[job.schedule, spread] = _count_of(job.schedule, spread, self.plan)
            due[job_id] = counted[job.schedule, spread]
        return due

    def _open_count(self) -> int:
        """Occurrences that are due and have no outcome yet."""
        return sum(due - self.tally.accounted[job_id] for job_id, due in self._due.items())

    def _paused(self) -> list[str]:
        return [
            place.job_name
            for job_id, place in self.tally.places.items()
            if self._job(job_id).state is JobState.PAUSED
        ]

    def _job(self, job_id: str) -> Job:
        owner = self._definitions[job_id].profile.owner
        job = self.deployment.stores.jobs.get(owner, job_id)
        assert job is not None
        return job

    def _create(self, workload: Workload) -> None:
        """By the API's own services, which no fault of the API's own calls can hinder."""
        api = Api.of(self.deployment)
        errors: list[tuple[Path, str]] = []
        for owner, (name, calendar) in product(workload.owners, workload.calendars):
            put = partial(api.calendars.put, owner, name, calendar, Precondition())
            _asked(put, ("calendars", name), errors)
        lines = [Line(each.body.name, each.profile.copies) for each in workload.definitions]
        self.tally.lines.extend(lines)
        pairs = zip(workload.definitions, lines, strict=True)
        # A job runs after one that is there.
        for definition, line in sorted(pairs, key=lambda pair: pair[0].body.after is not None):
            for body in definition.bodies():
                owner = definition.profile.owner
                put_job = partial(api.jobs.put, owner, body, Precondition(), dry_run=False)
                done = _asked(put_job, ("jobs", definition.body.name), errors)
                if done is None:
                    break
                job = done.job
                self.tally.places[job.job_id] = Place(
                    line, job.spec.name, job.spread_seconds, job.schedule
                )
                self._definitions[job.job_id] = definition
            if len(errors) >= _MOST_ERRORS:
                break
        if errors:
            raise ManifestRefusedError(errors)

    def _behave(self, target: Deliverable, call: Call, draws: Draws) -> Behaviour:
        profile = self._definitions[call.job_id].profile
        if f"_{RunKind.CALLBACK}-" in call.run_id:
            profile = BehaviourProfile()  # it has a target of its own
        seconds = draws.fraction() * 0.05 if profile.seconds is None else profile.seconds
        if draws.fraction() < profile.failure_rate:
            return Behaviour(seconds, Failure(RunError("failed", "simulated")), is_done=False)
        return Behaviour(seconds, Success(None))

    def _on_call(self, call: TargetCall) -> None:
        if call.ended_at is None:
            self.tally.called(call.call.job_id, call.call.fire_at)
        elif call.call.report_to is not None and isinstance(call.outcome, Success):
            run_id, token = call.call.run_id, call.call.report_to.token
            complete = partial(self._completions.complete, run_id, token, None)
            self.deployment.invoke(f"report {call.process}", complete, at=self.now + _REPORTED)

    def _count_invocation(self, task: Task, began_us: int) -> None:
        meter = self._meters[_who(task.process.name)]
        task.on_end = lambda: meter.lasted(self.loop.us - began_us)
        if meter is self._meters["ticks"]:
            meter.ticked()
        else:
            meter.received()

    def _observe(
        self, task: Task | None, port: str, method: str, args: tuple[Any, ...], answer: object
    ) -> None:
        if task is not None:
            self._meters[_who(task.process.name)].called(port, method, args, answer)
        if port == "runs" and answer is True:
            self.tally.written(args[0])

    def _keep_up(self) -> None:
        """Forget rows that DynamoDB's TTL would remove, and rows that nobody will read."""
        stores = self.deployment.stores
        self.tally.forget(stores.runs.expire(self.now))
        stores.wheel.expire(self.now)
        stores.events.emitted.clear()
        self._take_faults()
        self.loop.later(self.loop.us_of(self.now + _UPKEEP), self._keep_up)

    def _take_faults(self) -> None:
        injected = self.loop.chaos.injected
        self._injected.update(struck.strike.fault.value for struck in injected)
        injected.clear()


def _meters() -> dict[str, Meter]:
    return {"ticks": Meter(_SEGMENTS), "runs": Meter(_SEGMENTS)}


def _who(name: str) -> str:
    """Whose meter counts for a process of this name."""
    return "ticks" if name.startswith("tick ") else "runs"


def loop_of(from_at: datetime, seed: int, faults: Faults) -> Loop:
    """The loop of a simulation from then on: it begins a little earlier."""
    started_at = (from_at - _WARM_UP).replace(second=0)
    latency_us = _LATENCY_US if any(map(faults.of, _BY_CALL)) else 0
    chaos = Chaos(seed, faults, latency_us)
    return Loop(started_at, chaos, interleaves=bool(latency_us))


def _row_lifetime(workload: Workload, plan: Plan) -> timedelta:
    """The shortest time after which nothing can need a row: neither a retry, nor an occurrence
    delayed by an outage, nor a check after a success, nor the day from which a calendar has moved a
    run back."""
    lifetime, seconds = _ROW_LIFETIME, 0.0
    for definition in workload.definitions:
        body = definition.body
        retry = body.retry
        waits = (retry.backoff.delay_seconds(n, 0.0) for n in range(1, retry.max_attempts))
        expected = body.expect_within or 0
        completion = body.target.completion
        open_seconds = 0 if completion is None else completion.within * retry.max_attempts
        seconds = max(seconds, max(waits, default=0) + expected + open_seconds)
        if body.calendar is not None and body.calendar.rule is CalendarRule.PREVIOUS_BUSINESS_DAY:
            lifetime = _MOVED_ROW_LIFETIME
    outages = (until - since for since, until in (*plan.ticks_down, *plan.executors_down))
    return lifetime + timedelta(seconds=seconds) + sum(outages, timedelta())


def _asked(request: Callable[[], Any], path: Path, errors: list[tuple[Path, str]]) -> Any:
    """The answer to a request, repeated as a client would; None where the API refused it."""
    for _ in range(_TRIES):
        try:
            return request()
        except InvalidFieldError as error:
            errors.append(((*path, error.field), error.message))
            return None
        except InvalidFieldsError as error:
            errors.extend(((*path, field), message) for field, message in error.errors)
            return None
        except PayloadTooLargeError as error:
            errors.append(((*path, error.field), str(error)))
            return None
        except (StoreUnavailableError, QueueUnavailableError):
            continue
    errors.append((path, f"was not taken in {_TRIES} tries: the faults are too many"))
    return None


def _count_of(sent: Recurrence, spread: timedelta, plan: Plan) -> int:
    second = timedelta(seconds=1)
    # Filed a second before the span, a job has no nominal time before that.
    return sum(1 for _ in sent.between(plan.from_at - second, plan.until_at - spread - second))
