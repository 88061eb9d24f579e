"""Races of messages of several generations of a job for one run."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from carillon.domain.execution import transitions as running
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import (
    JOB_ID,
    OWNER,
    Race,
    at,
    create,
    cron,
    executor,
    lived,
    race,
    request,
    run_id,
)
from tests.simulation.races.replay import World
from tests.simulation.races.stores import FUNCTION_SECONDS, Contents, Delivered, Kept
from tests.support.requests import job_patch

_DUE_AT = at(5)
_RETRY = {"max_attempts": 8, "backoff": {"type": "fixed", "base_seconds": 5}}
_CHANGED = job_patch({"schedule": {"cron": "5,21 12 * * *"}})
_AGAIN = job_patch({"schedule": {"cron": "22 12 * * *"}})
_CHANGE = request("change", lambda api: api.jobs.change(OWNER, JOB_ID, _AGAIN, None))


def _died() -> Contents:
    """12:05 has a message of each of two generations. An executor has called it for the first one,
    before the second was committed, and died; the queue holds its message back a little longer."""
    asked = {
        at(0, 10): create(**cron("5,20"), retry=_RETRY),
        at(4, 50): lambda api: api.jobs.change(OWNER, JOB_ID, _CHANGED, None),
    }
    contents = lived(at(5, 30), asked, executors_down=at(1))
    older, newer = sorted(contents["queue"], key=lambda kept: _order_of(kept).generation_id)
    kept = (replace(older, visible_at=_DUE_AT + timedelta(seconds=1)), newer)
    lapsed_at = _DUE_AT + timedelta(seconds=FUNCTION_SECONDS + 1)
    terms = running.ClaimTerms("died", lapsed_at, at(50))
    run = replace(running.unseen(_order_of(older), _DUE_AT, terms), effective_at=None)
    called = Delivered(run.key.run_id, 1, "died", _DUE_AT, is_early=False)
    return contents | {"queue": tuple(sorted(kept)), "runs": (run,), "targets": (called,)}


def _order_of(kept: Kept) -> Message:
    assert isinstance(kept.message, Message)
    return kept.message


def _hurried() -> Actor:
    """An executor whose process has too little time left for a run."""

    def act(world: World) -> None:
        kept: Kept | None = world.lanes.receive(run_id(5))
        if kept is not None:
            world.deployment.router.lane(kept.body, world.now() + timedelta(seconds=4))
            world.lanes.delete(kept)

    return Actor("hurried", act, limit_seconds=FUNCTION_SECONDS)


def _second() -> Actor:
    """An executor that receives a message once the hurried one has claimed the run."""
    then = executor()
    key = RunKey.from_run_id(OWNER, run_id(5))

    def act(world: World) -> None:
        row = world.deployment.executor_ports.runs.get(key)
        if row is not None and row.token > 1:
            then.act(world)

    return replace(then, act=act)


def put_off_against_change() -> Setting:
    """Once the job is changed again, the first message represents nothing by itself."""
    return race(at(5, 30), _died(), [_hurried(), _second(), _CHANGE])


def put_off_forgotten() -> Any:
    """Who is put off leaves no trace in the row of an attempt that died: whose message represents
    nothing removes it then."""
    real = running.released

    def forgetting(run: Run, over: Run, message: Message, now: datetime) -> Run:
        back = real(run, over, message, now)
        return replace(back, other_generations=over.other_generations)

    return patch.object(running, "released", forgetting)


GENERATIONS = (
    # Before the second message has met the row, that of the first one removes it.
    Race(
        "put-off against change",
        put_off_against_change,
        "put_off_forgotten",
        crashes=0,
        losses=0,
    ),
)
