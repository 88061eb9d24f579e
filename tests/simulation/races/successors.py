"""Races about jobs that run after another one: here FOLLOWER, after the job NAME."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from carillon.domain.execution.successors import messages_after, predecessor_id
from carillon.domain.job import Job
from carillon.domain.message import encode
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.simulation.services import Api
from tests.simulation.races.ending import Ending
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import (
    JOB_ID,
    NAME,
    OWNER,
    Request,
    at,
    create,
    cron,
    doubled,
    executor,
    lived,
    put,
    race,
    request,
    run_id,
)
from tests.simulation.races.stores import Kept
from tests.support.requests import job_patch

FOLLOWER = "follower"
FOLLOWER_ID = job_id_of(OWNER, FOLLOWER)


def follow(when: str = "succeeded") -> Request:
    return put(name=FOLLOWER, after={"job": NAME, "when": when}, catch_up=None)


def _waiting(requests: dict[object, Request], actors: list[Actor], **members: object) -> Setting:
    """12:04 of the predecessor is in the queue, twice; 12:06 comes when all is well again."""
    first = {at(0, 10): create(**cron("4,6")), **requests}
    contents = lived(at(4), first, executors_down=at(1))  # type: ignore[arg-type]
    return race(at(4, 1), doubled(contents), actors, **members)


def creation_against_end() -> Setting:
    actors = [request("follow", follow()), executor("executor", run_id(4))]
    return _waiting({}, [*actors, executor("follower's executor", FOLLOWER_ID)])


def end_against_end() -> Setting:
    """Two executors meet the run of the predecessor; one of them may die between any two calls."""
    actors = [executor("executor a", run_id(4)), executor("executor b", run_id(4))]
    return _waiting({at(0, 20): follow()}, actors)


def deletion_against_start() -> Setting:
    """The run of the predecessor is over, and has been followed up twice."""
    actors = [
        request("delete", lambda api: api.jobs.delete(OWNER, FOLLOWER_ID)),
        executor("executor a", FOLLOWER_ID),
        executor("executor b", FOLLOWER_ID),
    ]
    setting = _waiting({at(0, 20): follow()}, actors, forbidding=frozenset({"delete"}))
    (predecessor,) = (job for job in setting.contents["jobs"] if job.job_id == JOB_ID)
    generation_id, expires_at = predecessor.generation.generation_id, at(4) + timedelta(days=25)
    key = RunKey(OWNER, JOB_ID, RunKind.SCHEDULED, at(4))
    begun = Run.scheduled(key, generation_id, "claim", at(4), expires_at)
    ended = replace(begun, status=RunStatus.SUCCEEDED, attempt=1, finished_at=at(4))
    (message,) = messages_after(ended, predecessor)
    queue = tuple(Kept(at(4), encode(message)) for _ in range(2))
    return replace(setting, contents=setting.contents | {"runs": (ended,), "queue": queue})


def creation_against_change() -> Setting:
    """The predecessor's row is put by its owner, as whole as it was read."""
    described = job_patch({"description": "other"})
    change = request("change", lambda api: api.jobs.change(OWNER, JOB_ID, described, None))
    return _waiting({}, [request("follow", follow()), change])


def creation_against_revival() -> Setting:
    """The predecessor is deleted, and made again."""

    def revive(api: Api) -> object:
        api.jobs.delete(OWNER, JOB_ID)
        return put(**cron("4,6"))(api)

    return _waiting({}, [request("follow", follow()), request("revive", revive)])


def change_against_change() -> Setting:
    actors = [request("failed", follow("failed")), request("finished", follow("finished"))]
    return _waiting({at(0, 20): follow()}, actors)


def deletion_against_creation() -> Setting:
    actors = [
        request("delete", lambda api: api.jobs.delete(OWNER, FOLLOWER_ID)),
        request("follow", follow("finished")),
    ]
    return _waiting({at(0, 20): follow()}, actors)


def followed_well(ending: Ending) -> Iterator[str]:
    """A job that is committed has its link, whatever crashed; no run is followed twice, and the
    last one of the predecessor is followed once, if its end fits."""
    jobs: dict[str, Job] = {job.job_id: job for job in ending.contents["jobs"]}
    predecessor, follower = jobs[JOB_ID], jobs.get(FOLLOWER_ID)
    followed = [
        run
        for run in ending.contents["runs"]
        if run.key.kind is RunKind.AFTER and run.key.fire_at == at(4)
    ]
    if len(followed) > 1:
        yield f"I2: {len(followed)} runs follow one run"
    if follower is None or predecessor_id(follower) != JOB_ID:
        return
    if not _stands(predecessor, follower):
        yield "I1: a committed job has no link that stands for it"
    if not predecessor.is_tombstone and not list(_good_rows(ending, follower)):
        yield "I1: the last run of the predecessor is not followed"


def _stands(predecessor: Job, follower: Job) -> bool:
    after = follower.spec.after
    assert after is not None
    return any(
        link.job_id == follower.job_id
        and link.since <= follower.updated_at
        and {status for status in RunStatus if after.when.fits(status)}
        <= {status for status in RunStatus if link.when.fits(status)}
        for link in predecessor.successors
    )


def _good_rows(ending: Ending, follower: Job) -> Iterator[Run | None]:
    """The row of the run after 12:06, which has succeeded; None where its end does not fit."""
    after = follower.spec.after
    if after is None or not after.when.fits(RunStatus.SUCCEEDED):
        yield None
    for run in ending.contents["runs"]:
        is_last = run.key.job_id == FOLLOWER_ID and run.key.fire_at == at(6)
        if is_last and run.status is RunStatus.SUCCEEDED:
            yield run
