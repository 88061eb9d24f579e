"""Bugs planted into what is done about occurrences that come late."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import carillon.domain.execution.lateness as lateness
import carillon.domain.execution.start_decision as starting
from carillon.domain.decisions import Claim
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import RunStatus
from carillon.executor.runs.protocol import RunProtocol
from carillon.schedules import ClosedDays, Delay
from carillon.simulation.faults import Faults
from tests.simulation.mutants.kit import (
    Code,
    Mutant,
    Reshape,
    Swap,
    both,
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
)
