"""Plain jobs that fire in the same seconds, beside the fleet: their occurrences go in chunks."""

from collections.abc import Iterable

from carillon.domain.chunks.chunk import Chunk
from carillon.domain.chunks.looking import places_of
from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Job
from carillon.domain.policies import Backoff, BackoffType, RetryPolicy
from carillon.domain.run import Run
from carillon.domain.targets import WebhookTarget
from carillon.stores.ports import Stores
from tests.support.standing import standing_jobs

JOBS = 40
"""Five of a segment on average: groups of three and more go in chunks."""
_RETRY = RetryPolicy(max_attempts=6, backoff=Backoff(base_seconds=1, type=BackoffType.FIXED))


def crowd(stores: Stores, owner: str, url: str, minutes: range, segments: int) -> list[Job]:
    """Jobs that call the witness every ten seconds of these epoch minutes, and in no other within
    the hour."""
    due = ",".join(str(minute % 60) for minute in minutes)
    schedules = ((f"crowd-{number}", f"*/10 {due} * * * *") for number in range(JOBS))
    target = WebhookTarget(url=url)
    return standing_jobs(
        stores, owner, schedules, segments, target=target, retry=_RETRY, timeout_seconds=1
    )


def chunks_of(stores: Stores, runs: Iterable[tuple[Job, Run]]) -> list[Chunk]:
    """The chunks that these runs may have been in, as they are now."""
    plans: dict[tuple[int, int], Plan | None] = {}
    keys = set()
    for job, run in runs:
        for look in places_of(job, run.key.fire_at):
            place = look.segment, look.minute
            if place not in plans:
                plans[place] = stores.chunks.get_plan(*place)
            keys.add(look.key_by(plans[place]))
    found = (stores.chunks.get(key) for key in keys if key is not None)
    return [chunk for chunk in found if chunk is not None]
