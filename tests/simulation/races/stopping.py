"""The races about a run that is stopped while its target is called: who meets whom, over what."""

from collections.abc import Iterator
from dataclasses import replace

from carillon.domain.decisions import Claim
from carillon.domain.execution.transitions import ClaimTerms, decide_claim
from carillon.domain.job import Slow
from carillon.domain.run import RunStatus
from tests.simulation.races.ending import Ending
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import (
    JOB_ID,
    OWNER,
    Race,
    at,
    create,
    cron,
    doubled,
    executor,
    fails_first,
    lived,
    race,
    request,
    run_id,
)

_LASTS, _LAPSES = 3, 22
"""Seconds after which a call may be stopped, and after which the lease of its run has lapsed."""


def _stop(name: str) -> Actor:
    return request(name, lambda api: api.runs.cancel(OWNER, JOB_ID, run_id(4)))


def _setting(*actors: Actor, passing: tuple[int, ...] = (_LASTS,)) -> Setting:
    """12:04 is due, and its message is there twice; first attempts fail."""
    retry = {"max_attempts": 8, "backoff": {"type": "fixed", "base_seconds": 5}}
    create_it = {at(0, 10): create(**cron("4"), retry=retry)}
    contents = doubled(lived(at(4), create_it, executors_down=at(1)))
    return race(at(4, 1), contents, actors, passing_seconds=passing, behave=fails_first)


def stop_finish() -> Setting:
    return _setting(_stop("stop"), executor())


def stop_duplicate() -> Setting:
    return _setting(_stop("stop"), executor("executor a"), executor("executor b"))


def stop_takeover() -> Setting:
    """The lease may lapse under one of the executors before the stop, or after it."""
    actors = [_stop("stop"), executor("executor a"), executor("executor b", freezes=False)]
    return _setting(*actors, passing=(_LASTS, _LAPSES))


def stop_release() -> Setting:
    """The executor of the first attempt has died, and the job is in lane slow since: whoever takes
    the run over sends it on, and releases it at once."""
    contents = lived(at(4), {at(0, 10): create(**cron("4"))}, executors_down=at(1))
    (job,), (kept,) = contents["jobs"], contents["queue"]
    died = decide_claim(None, kept.message, at(2), ClaimTerms("died", at(3), at(59)))
    assert isinstance(died, Claim)
    contents |= {"jobs": (replace(job, slow=Slow(at(3), "slow")),), "runs": (died.run,)}
    actors = [_stop("stop"), executor()]
    return race(at(4, 1), contents, actors, passing_seconds=(_LASTS,))


def two_stops() -> Setting:
    return _setting(_stop("stop a"), _stop("stop b"), executor())


def stopped_well(ending: Ending) -> Iterator[str]:
    """A stop that was answered stands, and says what it has ended."""
    run = ending.run(run_id(4))
    assert run is not None
    if ending.told and run.status is not RunStatus.CANCELLED:
        yield f"a stop was answered, but the run is {run.status}"
    if run.status is RunStatus.CANCELLED:
        attempts = [record.attempt for record in run.attempts]
        if attempts != list(range(1, run.attempt + 1)):
            yield f"a run was stopped in attempt {run.attempt}, and tells of {attempts}"


_STOPPED = frozenset({RunStatus.SUCCEEDED, RunStatus.CANCELLED})

STOPS = tuple(
    Race(
        name,
        setting,
        planted,
        allowed=_STOPPED,
        check=stopped_well,
        crashes=crashes,
        losses=losses,
    )
    for name, setting, planted, crashes, losses in (
        ("stop against finish", stop_finish, "finish_without_token", 1, 1),
        ("stop against a duplicate", stop_duplicate, "claim_unconditional", 1, 0),
        ("stop against takeover", stop_takeover, "stop_unfenced", 1, 0),
        ("stop against release", stop_release, "attempt_not_compared", 1, 0),
        ("two stops", two_stops, "claim_unconditional", 1, 1),
    )
)
