"""What a mutant is: one planted bug, as names to be swapped in the real code while a seed runs."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from carillon.simulation.faults import Draws
from carillon.simulation.seams import EVENTUAL, SimulatedStores
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_parts import Request, renamed_name

Code = Callable[..., Any]
Reshape = Callable[[Scenario], Scenario]
"""Makes what a mutant needs more likely; it scripts nothing."""

MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Swap:
    """`name` of a module or a class becomes what `make` makes of that which it was."""

    owner: Any
    name: str
    make: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug. `breaks` are the invariants that may be found broken, the first one that it
    is planted against. `world` are swaps of the simulated surroundings, which the code without the
    bug must stand, too. `cannot_break`: why no invariant can fall, where that is proven.
    """

    name: str
    breaks: tuple[str, ...]
    planted: str
    swaps: tuple[Swap, ...]
    reshape: Reshape = lambda scenario: scenario
    world: tuple[Swap, ...] = ()
    cannot_break: str = ""


@contextmanager
def swapped(swaps: Sequence[Swap]) -> Iterator[None]:
    """Let these names be others inside; whatever happens they are as before afterwards."""
    undo: list[tuple[Any, str, Any]] = []
    try:
        for swap in swaps:
            undo.append((swap.owner, swap.name, vars(swap.owner)[swap.name]))
            setattr(swap.owner, swap.name, swap.make(getattr(swap.owner, swap.name)))
        yield
    finally:
        for owner, name, before in reversed(undo):
            setattr(owner, name, before)


def instead(value: Any) -> Callable[[Any], Any]:
    """For a swap that does not need what was there before."""
    return lambda original: value


def behind(port: str, *methods: str) -> tuple[Swap, ...]:
    """These reads, too, may be answered by a replica that is behind."""
    reads = {**EVENTUAL, port: EVENTUAL.get(port, frozenset()) | set(methods)}
    return (Swap(SimulatedStores, "eventual", instead(reads)),)


def both(*reshapes: Reshape) -> Reshape:
    """One after the other."""

    def reshape(scenario: Scenario) -> Scenario:
        for each in reshapes:
            scenario = each(scenario)
        return scenario

    return reshape


def faulty(**probabilities: float) -> Reshape:
    """These faults, with these probabilities, beside the seed's own."""
    return lambda scenario: replace(scenario, faults=replace(scenario.faults, **probabilities))


def given(**members: Any) -> Reshape:
    """Other members of the scenario."""
    return lambda scenario: replace(scenario, **members)


def lasting(seconds: float) -> Reshape:
    """Every call lasts for up to so long, and succeeds."""

    def reshape(scenario: Scenario) -> Scenario:
        jobs = (replace(job, seconds=seconds, failures=0.0) for job in scenario.jobs)
        return replace(scenario, jobs=tuple(jobs))

    return reshape


def bodied(change: Callable[[dict[str, Any], Draws], dict[str, Any]]) -> Reshape:
    """Every job's body as `change` makes it of the seed's."""

    def reshape(scenario: Scenario) -> Scenario:
        bodies = {
            job.name: json.dumps(change(json.loads(job.body), Draws(scenario.seed, job.name)))
            for job in scenario.jobs
        }
        jobs = tuple(replace(job, body=bodies[job.name]) for job in scenario.jobs)
        requests = tuple(
            replace(each, body=bodies[each.job]) if each.what in ("create", "put") else each
            for each in scenario.requests
        )
        return replace(scenario, jobs=jobs, requests=requests)

    return reshape


def at_the_ticks(scenario: Scenario) -> Scenario:
    """Each request comes within the second in which a tick works: a whole minute's first."""
    return moved(scenario, 0, 1_000_000)


def moved(scenario: Scenario, from_us: int, span_us: int) -> Scenario:
    """The same with each request in a span of its own minute."""
    offset_us = scenario.start.second * 1_000_000

    def at_us(request: Request) -> int:
        minute_us = (request.after_us + offset_us) // MINUTE_US * MINUTE_US - offset_us
        chance_us = Draws(scenario.seed, f"tick {request.name}").below(span_us)
        return max(0, minute_us + from_us + chance_us)

    requests = tuple(replace(each, after_us=at_us(each)) for each in scenario.requests)
    return replace(scenario, requests=requests)


_OF_A_SCHEDULE = (
    *("schedule", "timezone", "dst", "except", "start_at", "end_at", "max_runs", "window"),
    *("tolerance", "calendar", "rate", "concurrency"),
)


def scheduled(*texts: str, **members: Any) -> Reshape:
    """Every job with one of these schedules and these members, and otherwise as the seed has it."""

    def change(body: dict[str, Any], draws: Draws) -> dict[str, Any]:
        kept = {name: value for name, value in body.items() if name not in _OF_A_SCHEDULE}
        return {**kept, "schedule": draws.choice(texts), **members}

    return bodied(change)


def small(minutes: int, jobs: int = 2) -> Reshape:
    """The seed's first jobs, and no more minutes of chaos than these; requests come in them."""

    def reshape(scenario: Scenario) -> Scenario:
        kept = scenario.jobs[:jobs]
        names, most_us = {job.name for job in kept}, minutes * MINUTE_US
        requests = tuple(
            replace(each, after_us=each.after_us % most_us)
            for each in scenario.requests
            if each.job in names
        )
        return replace(scenario, jobs=kept, requests=requests, minutes=minutes)

    return reshape


def asked(what: str, times: int, *bodies: str) -> Reshape:
    """So many more requests of a kind about each job, anywhere in the minutes of chaos; with these
    bodies in turn."""

    def reshape(scenario: Scenario) -> Scenario:
        more = []
        for job in scenario.jobs:
            for number in range(times):
                name = f"{what} {job.name} more {number}"
                draws = Draws(scenario.seed, name)
                after_us = draws.below(scenario.minutes * MINUTE_US)
                body = bodies[number % len(bodies)] if bodies else ""
                more.append(Request(name, what, job.name, after_us, "", body, 1))
        return replace(scenario, requests=(*scenario.requests, *more))

    return reshape


def then_put(scenario: Scenario) -> Scenario:
    """Each deleted job is put again up to two minutes later, as it was."""
    bodies = {job.name: job.body for job in scenario.jobs}

    def put(deletion: Request) -> Request:
        later_us = Draws(scenario.seed, f"put after {deletion.name}").below(2 * MINUTE_US)
        return replace(
            deletion,
            name=f"put after {deletion.name}",
            what="put",
            after_us=deletion.after_us + later_us,
            body=bodies[deletion.job],
        )

    puts = (put(each) for each in scenario.requests if each.what == "delete")
    return replace(scenario, requests=(*scenario.requests, *puts))


def then_renamed(scenario: Scenario) -> Scenario:
    """Each job is renamed once, as it was, in the last half of the minutes of chaos."""

    def rename(name: str, body: dict[str, Any]) -> Request:
        half_us = scenario.minutes * MINUTE_US // 2
        after_us = half_us + Draws(scenario.seed, f"rename {name}").below(half_us)
        members = {key: value for key, value in body.items() if key != "name"}
        text = json.dumps({renamed_name(name): {**members, "was": name}})
        return Request(f"rename {name} once", "apply", name, after_us, "", text, 3)

    renames = (rename(job.name, json.loads(job.body)) for job in scenario.jobs)
    return replace(scenario, requests=(*scenario.requests, *renames))


def after_an_outage(scenario: Scenario) -> Scenario:
    """No tick for longer than rows live, from the beginning on."""
    lives, out = timedelta(hours=3), timedelta(hours=3, minutes=10)
    return replace(
        scenario,
        ticks_down=((scenario.start - timedelta(minutes=1), scenario.start + out),),
        executors_down=(),
        options=replace(scenario.options, run_lifetime=lives),
    )


LANES = tuple(json.dumps({"priority": lane}) for lane in ("low", "high", "normal"))
"""Changes, each of which makes another generation."""

MEETING = both(
    small(6),
    scheduled("every 20s", "every 40s", "*/30 * * * * *", overlap="allow"),
    asked("change", 3, *LANES),
    asked("pause", 3),
    asked("resume", 5),
    at_the_ticks,
    given(most_latency_us=400_000, ticks_down=(), executors_down=()),
    faulty(slow=0.1),
)
"""Generations and ticks that come together all the time, over slow stores."""
