"""Races of a chunk: against whatever changes its job, against itself, and against its end."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast
from unittest.mock import patch

import carillon.executor.chunks.protocol as protocol
from carillon.domain.chunks.message import ChunkMessage, encode
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import RunStatus
from carillon.executor.chunks.protocol import ChunkProtocol
from carillon.services.indexer import Indexer
from carillon.simulation.services import Api
from tests.simulation.races.ending import Ending
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import (
    JOB_ID,
    OPTIONS,
    OWNER,
    Race,
    Request,
    at,
    create,
    doubled,
    executor,
    lived,
    put,
    race,
    request,
    run_id,
)
from tests.simulation.races.replay import World
from tests.simulation.races.stores import FUNCTION_SECONDS, Contents, Kept
from tests.simulation.worlds.runner import chunk_sizes
from tests.support.requests import job_patch

_CHUNKED = replace(OPTIONS, chunks=True)
_PLAIN: dict[str, object] = {
    "schedule": {"cron": "5,6 13 * * *"},
    "overlap": "allow",
    "retry": {"max_attempts": 3},
}
_LATER = job_patch({"schedule": {"cron": "5,7 13 * * *"}})


def _change(api: Api) -> object:
    return api.jobs.change(OWNER, JOB_ID, _LATER, None)


PAUSE = request("pause", lambda api: api.jobs.pause(OWNER, JOB_ID))
CANCEL = request("cancel", lambda api: api.runs.cancel(OWNER, JOB_ID, run_id(65)))
CHANGE = request("change", _change)


def _sent(then: Request | None = None) -> Contents:
    """The chunks of 13:05 and 13:06, by a job that was made at noon, are in the queue; `then` was
    asked in the next second."""
    asked = {at(0, 1): create(**_PLAIN)} | ({at(0, 2): then} if then else {})
    with chunk_sizes(is_small=True):
        contents = lived(at(64, 50), asked, ticks_down=at(64, 40), options=_CHUNKED)
    assert any(kept.body.startswith('{"v":2') for kept in contents["queue"])
    return contents


def _race(contents: Contents, *actors: Actor, second: int = 1, passing: int = 10) -> Setting:
    members = {
        "options": _CHUNKED,
        "passing_seconds": [passing],
        "forbidding": frozenset({"pause"}),
    }
    return race(at(65, second), contents, actors, **members)


def chunk_against_pause() -> Setting:
    return _race(_sent(), executor(), PAUSE)


def chunk_against_change() -> Setting:
    return _race(_sent(), executor("executor a"), CHANGE, executor("executor b"))


def chunk_against_itself() -> Setting:
    return _race(doubled(_sent()), executor("executor a"), executor("executor b"))


def two_versions() -> Setting:
    """Two jobs are in one chunk. Its message is there twice: a tick that came again has not met the
    entry of one of them any more."""
    contents = _sent(put(name="other", **_PLAIN))
    (whole,) = (kept for kept in contents["queue"] if kept.visible_at <= at(65))
    order = cast(ChunkMessage, whole.message)
    assert len(order.members) == 2
    part = replace(whole, body=encode(replace(order, members=order.members[:1])))
    queue = tuple(sorted((*contents["queue"], part)))
    return _race(contents | {"queue": queue}, executor("executor a"), executor("executor b"))


def two_generations() -> Setting:
    """13:05 is in its chunk by two generations of the job: who has changed that died before it
    removed the entry of the first one. The lease of the chunk may lapse."""
    with patch.object(Indexer, "remove_ended_entries", lambda self, before, after: None):
        contents = _sent(_change)
    (kept,) = (kept for kept in contents["queue"] if kept.visible_at <= at(65))
    members = cast(ChunkMessage, kept.message).members
    assert [each.job_id for each in members] == [JOB_ID] * 2
    actors = map(_restless, (executor("executor a"), executor("executor b")))
    return _race(doubled(contents), *actors, passing=FUNCTION_SECONDS + 2)


def _restless(actor: Actor) -> Actor:
    """Who tries again to put the row of an attempt that died waits no time before."""

    def act(world: World) -> None:
        with patch.object(protocol, "BETWEEN_TRIES_SECONDS", 0):
            actor.act(world)

    return replace(actor, act=act)


def generation_unasked() -> Any:
    """A chunk calls for each generation of an active job that it has."""
    real = ChunkProtocol._goes_in

    def goes_in(self: ChunkProtocol, job: Job, single: Message, ends_at: datetime) -> bool:
        generation_id = job.generation.generation_id
        return real(self, job, replace(single, generation_id=generation_id), ends_at)

    return patch.object(ChunkProtocol, "_goes_in", goes_in)


def disband_against_finish() -> Setting:
    """The lease of the first lapses meanwhile."""
    return _race(
        doubled(_sent()),
        executor("executor a"),
        executor("executor b"),
        passing=FUNCTION_SECONDS + 2,
    )


def cancel_against_finish() -> Setting:
    """The lease of the chunk may lapse before the request comes."""
    return _race(_sent(), executor(), CANCEL, passing=FUNCTION_SECONDS + 2)


def _consumer() -> Actor:
    def act(world: World) -> None:
        kept: Kept | None = world.lanes.receive("")
        if kept is not None:
            ends_at = world.now() + timedelta(seconds=FUNCTION_SECONDS)
            world.deployment.router.dead(kept.body, ends_at)
            world.lanes.delete(kept)

    return Actor("consumer", act, limit_seconds=FUNCTION_SECONDS)


def dead_letter_against_executor() -> Setting:
    return _race(doubled(_sent()), executor(), _consumer())


def _cancelled_for_good(ending: Ending) -> Iterator[str]:
    run = ending.run(run_id(65))
    if ending.told and (run is None or run.status is not RunStatus.CANCELLED):
        yield f"a cancellation was answered, but the run is {run and run.status}"


_RAN_OR_PAUSED = frozenset({RunStatus.SUCCEEDED, RunStatus.SKIPPED})
CHUNK_RACES = (
    Race(
        "chunk against pause",
        chunk_against_pause,
        "jobs_read_before_the_claim",
        allowed=_RAN_OR_PAUSED,
    ),
    Race("chunk against change", chunk_against_change, "died_member_not_sent"),
    Race("chunk against itself", chunk_against_itself, "final_chunk_acknowledged"),
    Race("two versions of a chunk", two_versions, "unlisted_member_dropped"),
    Race("two generations in a chunk", two_generations, "generation_unasked"),
    Race("disband against finish", disband_against_finish, "chunk_finished_by_anybody"),
    Race(
        "cancel against finish",
        cancel_against_finish,
        "death_over_a_cancelled_run",
        allowed=frozenset({RunStatus.SUCCEEDED, RunStatus.CANCELLED}),
        check=_cancelled_for_good,
    ),
    Race(
        "dead letter against executor", dead_letter_against_executor, "chunk_disbanded_alive", 5_000
    ),
)
