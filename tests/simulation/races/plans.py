"""Races about the plan of a minute: of ticks that cut it differently, or where chunks are off."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import carillon.domain.chunks.placing as placing
from carillon.domain.chunks.placing import Plan
from carillon.domain.wheel.entry import minute_start
from carillon.tick.chunking import Gathered
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import OPTIONS, Race, at, create, executor, lived, race, tick
from tests.simulation.races.replay import World
from tests.simulation.worlds.runner import chunk_sizes

_CHUNKS = 100
"""Of one occurrence: two salts hardly ever choose the same one."""


def _tick(name: str, *, has_chunks: bool = True) -> Actor:
    """A tick that sends one job's occurrence in a chunk: its plan's salt says in which one."""
    ordinary = tick(name)

    def act(world: World) -> None:
        deployment = world.deployment
        deployment.tick_ports = replace(deployment.tick_ports, chunked=has_chunks)
        with chunk_sizes(is_small=True), patch.object(placing, "_count", lambda size: _CHUNKS):
            ordinary.act(world)

    return replace(ordinary, act=act)


def _race(*ticks: Actor) -> Setting:
    """13:05 is announced in its last second before. The lease of the first tick may lapse under it;
    then the minute has begun, and the plan that stands is read first."""
    options = replace(OPTIONS, chunks=True)
    plain = create(schedule={"cron": "5 13 * * *"}, overlap="allow", retry={"max_attempts": 3})
    contents = lived(at(64, 50), {at(0, 1): plain}, ticks_down=at(62, 30), options=options)
    actors = [*ticks, executor()]
    return race(at(64, 59), contents, actors, options=options, passing_seconds=[46])


def plan_against_plan() -> Setting:
    return _race(_tick("tick a"), _tick("tick b"))


def switch_against_dispatch() -> Setting:
    """Chunks are turned on, or off, between two ticks: either may be the first."""
    return _race(_tick("tick"), _tick("tick without chunks", has_chunks=False))


def plan_overlooked() -> Any:
    """A tick sends alone where chunks are off, whatever plan stands, and puts none."""
    real = Gathered._known_plan

    def known_plan(self: Gathered) -> Plan | None:
        if self._ports.chunked:
            return real(self)
        return Plan(self._segment, self._minute, self._salt, minute_start(self._minute))

    return patch.object(Gathered, "_known_plan", known_plan)


PLAN_RACES = (
    Race("plan against plan", plan_against_plan, "plan_not_obeyed"),
    Race("switch against dispatch", switch_against_dispatch, "plan_overlooked"),
)
