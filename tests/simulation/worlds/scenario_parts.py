"""What a scenario is made of: jobs and requests."""

from dataclasses import dataclass
from enum import StrEnum

from carillon.domain.spec.names import job_id_of
from carillon.simulation.faults import Draws

OWNERS = ("owner-1", "owner-2", "owner-3")
CALENDAR = "holidays"


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job of one of OWNERS: `body` is that of POST /jobs, as JSON text. Its name, which no other
    job of the world has, is its idempotency key, too.

    Its target takes up to `seconds`, and fails in a share `failures` of its calls, faults apart.
    """

    name: str
    body: str
    seconds: float = 0.05
    failures: float = 0.0
    owner: str = OWNERS[0]

    @property
    def job_id(self) -> str:
        return job_id_of(self.owner, self.name)


class Chunks(StrEnum):
    """Whether a world's deployment sends chunks: always, never, or from, or up to, a deployment in
    the middle."""

    ON = "on"
    OFF = "off"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """`is_for_chunks`: the world has jobs for them, and lasts until they begin; the deployment
    `begins_with` them, and the one that follows, if it `switches`, does what that did not."""

    is_for_chunks: bool
    begins_with: bool
    switches: bool


def chunk_plan(seed: int, wanted: Chunks | None = None) -> ChunkPlan:
    """Unless it is said: half of the seeds are for chunks; of these three in four begin with them,
    and a third switches."""
    begins = Draws(seed, "chunks first").fraction() < 0.75
    if wanted is not None:
        is_switch = wanted is Chunks.SWITCH
        is_on = wanted is Chunks.ON
        return ChunkPlan(wanted is not Chunks.OFF, is_on or (is_switch and begins), is_switch)
    if Draws(seed, "chunks").fraction() >= 0.5:
        return chunk_plan(seed, Chunks.OFF)
    switches = Draws(seed, "switch").fraction() < 0.33
    return ChunkPlan(is_for_chunks=True, begins_with=begins, switches=switches)


def renamed_name(name: str) -> str:
    """The name that a job is renamed to."""
    return f"{name} renamed"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of its owner about a job, `after_us` microseconds after the start.

    `what` is create, put, apply, change, pause, resume, delete, run, cancel, stop, redrive,
    discard, redrive_all, discard_all, backfill, cancel_all, calendar, hand_over, or spread or
    reindex, an operator's;
    `body` is JSON text where it takes one. Under the same `key` it is the same request. One that
    got no answer is sent again, up to `repeats` times. Cancel, stop, redrive and discard wait from
    then on for a run that they can be about: stop for one whose call lasts.
    """

    name: str
    what: str
    job: str
    after_us: int
    key: str = ""
    body: str = ""
    repeats: int = 0
