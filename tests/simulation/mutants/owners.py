"""Bugs planted into what keeps one owner's load, or a bad item, from the others."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import carillon.domain.wheel.segment as segment
import carillon.tick.counting as counting
from carillon.domain.admission import limits
from carillon.domain.admission.state import AdmissionRow
from carillon.domain.decisions import Defer, Redirect
from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.domain.run import Run
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import Entry, Slot, minute_start
from carillon.errors import CarillonError
from carillon.executor.runs.permits import Permits
from carillon.executor.runs.slow_lane import SlowLane
from carillon.schedules import SlotKind, parse_schedule
from carillon.simulation.faults import Chaos, Fault, Faults
from carillon.simulation.loop import Loop
from carillon.stores.memory.wheel import MemoryWheelStore
from carillon.stores.ports import Page
from carillon.tick.segment_visit import Visit
from tests.simulation.judging.recorder import PLANTED
from tests.simulation.mutants.kit import (
    Code,
    Mutant,
    Swap,
    both,
    faulty,
    given,
    instead,
    scheduled,
    small,
)
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_parts import OWNERS, Request

_OUT = timedelta(minutes=12)


def _greedy_and_modest(scenario: Scenario) -> Scenario:
    """A job of many occurrences and one of few, of two owners; ticks are down for a while."""
    body: dict[str, Any] = {**json.loads(scenario.jobs[0].body), "catch_up": "all"}
    body = {name: value for name, value in body.items() if name != "grace"}
    jobs = tuple(
        replace(
            scenario.jobs[0],
            name=f"j{number}",
            body=json.dumps({**body, "name": f"j{number}", "schedule": schedule}),
            owner=OWNERS[number],
        )
        for number, schedule in enumerate(("every 10s", "every 3m"))
    )
    requests = tuple(
        Request(f"create {job.name}", "create", job.name, 0, job.name, job.body) for job in jobs
    )
    begin = scenario.start + timedelta(minutes=3)
    options = replace(scenario.options, segments=1, catch_up_per_minute=12)
    return replace(
        scenario,
        jobs=jobs,
        requests=requests,
        options=replace(options, owner_starts_per_minute=0, owner_concurrent_runs=0),
        faults=Faults(),
        ticks_down=((begin, begin + _OUT),),
        executors_down=(),
        other_look_ahead_minutes=0,
    )


def _one_by_one(original: Code) -> Code:
    def together(self: Loop, named: Any) -> Any:
        return [task for one in named for task in original(self, [one])]

    return together


def _of_the_first_job(original: Code) -> Code:
    """What strikes in targets strikes in those of one owner."""
    first = job_id_of(OWNERS[0], "j0")

    def strikes(self: Chaos, fault: Fault, where: str, *terms: Any) -> Any:
        return first in where and original(self, fault, where, *terms)

    return strikes


def _side_by_side(scenario: Scenario) -> Scenario:
    """Two jobs of two owners in one lane, due at the same instants; the targets of one hang."""
    apart = _greedy_and_modest(scenario)
    text = json.dumps({**json.loads(apart.jobs[0].body), "name": "j1"})
    jobs = (apart.jobs[0], replace(apart.jobs[1], body=text))
    requests = (apart.requests[0], replace(apart.requests[1], body=text))
    return replace(
        apart, jobs=jobs, requests=requests, ticks_down=(), faults=Faults(target_hangs=0.3)
    )


def _held(scenario: Scenario) -> Scenario:
    """All jobs are of one owner, who may have one run that lasts."""
    jobs = tuple(replace(job, seconds=60.0, owner=OWNERS[0]) for job in scenario.jobs)
    options = replace(scenario.options, owner_concurrent_runs=1, slow_after_seconds=900)
    return replace(scenario, jobs=jobs, options=options, faults=Faults())


def _always(
    gate: AdmissionRow | None,
    places: limits.Places,
    message: Message,
    now: datetime,
    fraction: float,
) -> Defer:
    return Defer(now + timedelta(seconds=30), "held back")


@dataclass(frozen=True)
class _LateTimers:
    """Timers that act after three times as long."""

    timers: Any

    def after(self, seconds: float, act: Callable[[], None]) -> Any:
        return self.timers.after(3 * seconds, act)

    def every(self, seconds: float, act: Callable[[], None]) -> Any:
        return self.timers.every(seconds, act)


def _taken_late(original: Code) -> Code:
    def around_call(self: Permits, run: Run, message: Message) -> Any:
        if message.waits:
            self = copy(self)
            self._ports = replace(self._ports, timers=_LateTimers(self._ports.timers))
        return original(self, run, message)

    return around_call


def _slow(scenario: Scenario) -> Scenario:
    """All calls last, so that their jobs are served in lane slow; ticks are down for a while."""
    jobs = tuple(replace(job, seconds=4.0) for job in scenario.jobs)
    begin = scenario.start + timedelta(minutes=3)
    options = replace(scenario.options, slow_after_seconds=2)
    ticks_down = ((begin, begin + timedelta(minutes=4)),)
    return replace(scenario, jobs=jobs, options=options, ticks_down=ticks_down, faults=Faults())


def _for_itself_only(original: Code) -> Code:
    def forwarded(self: SlowLane, message: Message) -> Redirect | None:
        there: Redirect | None = original(self, message)
        return there and replace(there, message=replace(there.message, missed=None))

    return forwarded


_LASTING = both(
    small(8),
    scheduled("every 13s", "every 17s", overlap="allow", timeout_seconds=15),
    _held,
    given(ticks_down=(), executors_down=(), settle_minutes=2),
)

OWNERS_APART = (
    Mutant(
        "share_not_divided",
        ("share",),
        "the pace of catching up is not divided among owners: what is due first is sent first",
        tuple(
            Swap(module, "bucket_of", instead(lambda owner: 0)) for module in (counting, segment)
        ),
        reshape=both(small(18), scheduled("every 10s", overlap="allow"), _greedy_and_modest),
    ),
    Mutant(
        "batch_one_by_one",
        ("I3",),
        "the records of a batch are handled one after another: who hangs holds up other owners",
        (Swap(Loop, "together", _one_by_one),),
        world=(Swap(Chaos, "strikes", _of_the_first_job),),
        reshape=both(small(8), scheduled("every 10s", overlap="allow"), _side_by_side),
    ),
    Mutant(
        "permit_not_taken",
        ("permits",),
        "a run that lasts takes no permit of its owner's",
        (Swap(Permits, "around_call", instead(lambda self, run, message: nullcontext())),),
        reshape=_LASTING,
    ),
    Mutant(
        "permit_not_taken_before",
        ("permits",),
        "runs that have waited all begin where they find a permit free, and take it after 6 s",
        (
            Swap(Permits, "_is_strict", instead(lambda self, message: False)),
            Swap(Permits, "around_call", _taken_late),
        ),
        reshape=_LASTING,
    ),
    Mutant(
        "held_back_whatever_is_free",
        ("I1", "late", "share", "runaway"),
        "a run is held back before its claim, whether a permit is free or not",
        (Swap(limits, "hold_back", instead(_always)),),
        reshape=_LASTING,
    ),
    Mutant(
        "sent_on_for_itself_only",
        ("I1",),
        "a message that is sent to lane slow without a claim loses what else it stands for",
        (Swap(SlowLane, "forwarded", _for_itself_only),),
        reshape=both(small(8), scheduled("every 20s", catch_up="skip"), _slow),
    ),
)


def _a_bad_entry(segment: int, slot: Slot) -> Entry:
    """What a bug or a hand may leave: its generation id tells no time, so it cannot be decided."""
    return Entry(
        segment=segment,
        slot=slot,
        owner="nobody",
        job_id=PLANTED,
        generation_id="notaulid",
        from_at=minute_start(slot.number - 10),
        lane=Lane.NORMAL,
        schedule=parse_schedule("every 1m"),
    )


def _with_a_bad_entry(original: Code) -> Code:
    """Of each dated slot the first page begins with a bad entry."""

    def query(self: Any, segment: int, slot: Slot, after_key: str | None = None) -> Page[Entry]:
        page: Page[Entry] = original(self, segment, slot, after_key)
        if slot.kind is not SlotKind.DATED or after_key is not None:
            return page
        return replace(page, items=(_a_bad_entry(segment, slot), *page.items))

    return query


def _unbounded(original: Code) -> Code:
    def decided(self: Visit, entry: Entry, decide: Callable[[], Any]) -> Any:
        return decide()

    return decided


def _any_error_aside(original: Code) -> Code:
    """Visit._entry, with what stores and queue did not take set aside as if the entry were bad."""

    def entry(self: Visit, met: Entry, minute: int) -> None:
        try:
            original(self, met, minute)
        except CarillonError as error:
            self._set_aside(met, error)

    return entry


ISOLATION = (
    Mutant(
        "bad_row_not_bounded",
        ("I1", "I3"),
        "an entry that cannot be decided fails its segment's minute",
        (Swap(Visit, "_decided", _unbounded),),
        world=(Swap(MemoryWheelStore, "query", _with_a_bad_entry),),
        reshape=small(12),
    ),
    Mutant(
        "queue_error_set_aside",
        ("I1",),
        "an entry is set aside when a store or the queue fails, and the watermark goes over it",
        (Swap(Visit, "_entry", _any_error_aside),),
        reshape=both(
            small(260), scheduled("every 121m", "every 125m"), faulty(throttled=0.1, dies=0.02)
        ),
    ),
)
