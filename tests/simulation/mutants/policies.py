"""Bugs planted into policies: what is late, what is slow, what rates count."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import carillon.domain.admission.limits as rate
import carillon.domain.execution.lateness as lateness
import carillon.domain.execution.missed as missed
import carillon.domain.execution.start_decision as starting
from carillon.domain.admission.rate_line import line_of
from carillon.domain.admission.state import AdmissionRow
from carillon.domain.decisions import Claim
from carillon.domain.job import Job, Slow
from carillon.domain.message import Message, RateSlot
from carillon.domain.policies import Rate
from carillon.domain.run import Run, RunStatus
from carillon.executor.runs.admission import Admission
from carillon.executor.runs.protocol import RunProtocol
from carillon.executor.runs.slow_lane import SlowLane
from carillon.schedules import ClosedDays, Delay
from carillon.services.history import History
from carillon.simulation.faults import Faults
from tests.simulation.mutants.kit import (
    LANES,
    Code,
    Mutant,
    Reshape,
    Swap,
    asked,
    both,
    given,
    instead,
    scheduled,
    small,
)
from tests.simulation.worlds.scenario import Scenario


def without_executors(scenario: Scenario) -> Scenario:
    """Six minutes of it, in which nothing else goes wrong."""
    begin = scenario.start + timedelta(minutes=2)
    down = ((begin, begin + timedelta(minutes=6)),)
    return replace(scenario, faults=Faults(), ticks_down=(), executors_down=down)


def _without_ticks(scenario: Scenario) -> Scenario:
    """The same of ticks."""
    out = without_executors(scenario)
    return replace(out, ticks_down=out.executors_down, executors_down=())


def _out(*schedules: str, **members: Any) -> Reshape:
    return both(small(12), scheduled(*schedules, catch_up="latest", **members), without_executors)


def _covers_delays(original: Code) -> Code:
    def latest_due(
        job: Job, message: Message, closed: ClosedDays | None, now: datetime
    ) -> Message | None:
        following = job.schedule.next(message.key.fire_at)
        is_late = now - message.starts_at > lateness.LATE
        if not isinstance(job.schedule, Delay) or following is None or not is_late:
            found: Message | None = original(job, message, closed, now)
            return found
        key = replace(message.key, fire_at=following)
        return replace(message, key=key, due_at=following, in_time=True, slot_key="")

    return latest_due


def _forgets_that_it_waited(original: Code) -> Code:
    def go_on(self: RunProtocol, message: Message, claim: Claim, ends_at: datetime | None) -> Any:
        if claim.over is not None and claim.over.status is RunStatus.SCHEDULED:
            claim = replace(claim, over=None)
        return original(self, message, claim, ends_at)

    return go_on


LATE = (
    Mutant(
        "late_ones_all_run",
        ("late",),
        "an outage of executors runs all that was sent meanwhile, under `latest`, too",
        (Swap(starting, "latest_due", instead(lambda *terms: None)),),
        reshape=_out("every 20s", "every 1m", overlap="allow"),
    ),
    Mutant(
        "held_back_passed_over",
        ("skip",),
        "what a policy has held back counts as late",
        (
            Swap(lateness, "is_kept_waiting", instead(lambda message: message.in_time)),
            Swap(RunProtocol, "_go_on", _forgets_that_it_waited),
        ),
        reshape=both(
            small(12),
            scheduled(
                "every 20s", catch_up="latest", overlap="allow", rate={"limit": 1, "per": "1m"}
            ),
        ),
    ),
    Mutant(
        "fixed_delay_passed_over",
        ("skip", "I1"),
        "a fixed delay that is late leaves its place to the next one of its chain",
        (Swap(starting, "latest_due", _covers_delays),),
        reshape=_out("every 20s after finish", overlap="allow"),
    ),
    Mutant(
        "passed_over_and_missed",
        ("watch",),
        "a check does not ask whether a catch-up has passed over its occurrence",
        (Swap(History, "covering", instead(lambda *terms: None)),),
        reshape=both(
            small(12),
            scheduled("every 1m", expect_within="10m", overlap="allow"),
            _without_ticks,
        ),
    ),
    Mutant(
        "left_to_one_that_ran",
        ("watch",),
        "a check leaves what came late to the next occurrence, though that came in time",
        (Swap(missed, "another_is_checked", instead(lambda *terms: True)),),
        reshape=both(
            small(12),
            scheduled("every 1m", expect_within="10m", catch_up="skip", overlap="allow"),
            without_executors,
        ),
    ),
)


def _runs_where_it_is(original: Code) -> Code:
    """Admission._by_lane without the look at where the message came from."""

    def by_lane(self: Admission, run: Run, message: Message, job: Job) -> Any:
        return original(self, run, replace(message, lane=job.lane), job)

    return by_lane


def _marks_what_it_read_before_the_call(original: Code) -> Code:
    """SlowLane._move that puts the mark into the row as it was when the run began, whatever it has
    become."""

    def move(self: SlowLane, job: Job, slow: Slow | None, at: datetime) -> None:
        current = self._ports.jobs.get(job.owner, job.job_id)
        if current is not None and not current.is_tombstone:
            self._ports.jobs.replace(replace(job, slow=slow), current.revision)

    return move


def _lasting(seconds: float) -> Reshape:
    """Every call takes up to so many seconds."""

    def reshape(scenario: Scenario) -> Scenario:
        jobs = tuple(replace(job, seconds=seconds) for job in scenario.jobs)
        return replace(scenario, jobs=jobs)

    return reshape


_SLOW = both(
    small(8),
    scheduled("every 20s", "every 30s", overlap="allow", timeout_seconds=15),
    asked("change", 8, *LANES),
    _lasting(14),
    given(ticks_down=(), executors_down=()),
)

SLOW_LANE = (
    Mutant(
        "runs_in_the_wrong_lane",
        ("lane",),
        "a message runs in the lane that it came by, wherever its job is served",
        (Swap(Admission, "_by_lane", _runs_where_it_is),),
        reshape=_SLOW,
    ),
    Mutant(
        "mark_over_a_change",
        ("change",),
        "the mark is put into the job's row as it was before the call, over what its owner changed",
        (Swap(SlowLane, "_move", _marks_what_it_read_before_the_call),),
        reshape=_SLOW,
    ),
)


def _last_passer_resets(original: Code) -> Code:
    """rate.take_slot, with a gate that knows only the limit of whoever passes."""

    def take_slot(gate: AdmissionRow, limit: Rate, *terms: Any) -> Any:
        own = line_of(gate, limit)
        return original(replace(gate, lines=() if own is None else (own,)), limit, *terms)

    return take_slot


def _outlives_its_rate(original: Code) -> Code:
    """rate.take_slot that keeps what is held, whatever the job's rate is by now."""

    def take_slot(gate: AdmissionRow, limit: Rate, held: RateSlot | None, *terms: Any) -> Any:
        return original(gate, limit if held is None else held.rate, held, *terms)

    return take_slot


def _two_limits(scenario: Scenario) -> Scenario:
    """The jobs share a key, each with a limit of its own."""

    def limited(text: str, number: int) -> str:
        limit = {"key": "r", "limit": 1 + number, "per": "1m"}
        return json.dumps({**json.loads(text), "rate": limit})

    numbers = {job.name: number for number, job in enumerate(scenario.jobs)}
    jobs = tuple(replace(job, body=limited(job.body, numbers[job.name])) for job in scenario.jobs)
    requests = tuple(
        replace(each, body=limited(each.body, numbers[each.job])) if each.what == "create" else each
        for each in scenario.requests
    )
    return replace(
        scenario, jobs=jobs, requests=requests, options=replace(scenario.options, segments=1)
    )


RESERVATION_OUTLIVES = Swap(rate, "take_slot", _outlives_its_rate)
"""Found at once by tests/unit/executor/test_gates.py, too."""
_RESERVING = {"limit": 1, "per": "12h", "key": "r"}
_QUICK = json.dumps({"rate": {"limit": 10, "per": "10s", "key": "r"}})

RATES = (
    Mutant(
        "last_passer_resets_the_rate",
        ("rate",),
        "the gate of a rate forgets what it counted when a run passes that has another limit",
        (Swap(rate, "take_slot", _last_passer_resets),),
        reshape=both(
            small(8),
            scheduled("every 10s", "every 15s", overlap="allow"),
            _two_limits,
            given(faults=Faults(), ticks_down=(), executors_down=()),
        ),
    ),
    Mutant(
        "reservation_outlives_its_rate",
        ("rate",),
        "who holds a slot of a rate waits for it, whatever the job's rate has become",
        (RESERVATION_OUTLIVES,),
        reshape=both(
            small(8),
            scheduled("every 1m", overlap="allow", rate=_RESERVING),
            asked("change", 2, _QUICK),
            given(faults=Faults(), ticks_down=(), executors_down=(), settle_minutes=90),
        ),
    ),
)
