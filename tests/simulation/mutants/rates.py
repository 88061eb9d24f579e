"""Bugs planted into what rates count."""

import json
from dataclasses import replace
from typing import Any

import carillon.domain.admission.limits as rate
from carillon.domain.admission.rate_line import line_of
from carillon.domain.admission.state import AdmissionRow
from carillon.domain.message import RateSlot
from carillon.domain.policies import Rate
from carillon.simulation.faults import Faults
from tests.simulation.mutants.kit import Code, Mutant, Swap, asked, both, given, scheduled, small
from tests.simulation.worlds.scenario import Scenario


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
        ("I1",),
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
