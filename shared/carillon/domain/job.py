"""The job: the durable definition a user creates."""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from carillon.domain.calendar import shifts_back
from carillon.domain.changes.change import Action, Change
from carillon.domain.chunks.placing import Place, chunked_from, is_plain
from carillon.domain.policies import Lane as Lane
from carillon.domain.policies import Priority as Priority
from carillon.domain.spec.after import Outcome
from carillon.domain.spec.job_spec import REINDEX, JobSpec, members_marked
from carillon.domain.spec.names import list_name
from carillon.domain.spec.owners import SYSTEM, Author
from carillon.domain.wheel.generations import Generation as Generation
from carillon.domain.wheel.generations import PastGeneration as PastGeneration
from carillon.schedules import Every, Schedule
from carillon.schedules.base import ENDLESS_FROM

PAYLOAD_LIMIT_BYTES = 64 * 1024
"""Largest payload as compact JSON; the job row is read at every run, 1 read unit per 4 KiB."""

DEFAULT_TIMEOUT_SECONDS = 10
"""The time limit of an attempt of a job that states none and has no interval."""
MOST_FORMER_KEYS = 8
"""A job remembers so many keys of jobs of its name: a repetition of their creation may be late."""
MOST_REPLACED = 4
"""A job remembers this many replaced generations: in an outage or a window each may still be
needed."""


class JobState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"
    """A tombstone: it holds the idempotency key, so that a late repetition of the creation cannot
    bring the job back, and what the job still owes when another request does."""
    COMPLETED = "completed"
    """A tombstone too: its last occurrence is over and it was to be deleted then. It keeps its
    payload, since runs of it may still be retried. (A completed job that is kept stays ACTIVE.)"""
    RENAMED = "renamed"
    """A tombstone, too: what came due until then still runs, and may be retried; whatever comes
    after that is the job's that it was renamed to, or handed over as."""


@dataclass(frozen=True, slots=True)
class Slow:
    """The mark of a job that is served in lane slow: since when, and why."""

    since: datetime
    reason: str


MOST_SUCCESSORS = 10
"""Jobs that run after one."""


@dataclass(frozen=True, slots=True)
class Successor:
    """The link to a job that runs after this one: runs that end from `since` on, so as `when` says,
    start a run of it.

    It may stand for more than that job's own setting, never for less: it is put before the job's
    row is committed, at `put_at` for the job's `revision` that is to be.
    """

    job_id: str
    when: Outcome
    segment: int
    lane: Lane
    revision: int
    since: datetime
    put_at: datetime


@dataclass(frozen=True, slots=True)
class HandOver:
    """Another owner that a job was handed over to or from: both rows name the generation, without
    occurrences, under which it has ended. `is_done`, on the tombstone: the other row is there."""

    owner: str
    ended_id: str
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A job row, whole: its ids, its state, and its settings. A change is a new value with the next
    revision.

    `schedule` is that of the settings, up to the earlier of their `end_at` and the `max_runs`-th
    occurrence: `schedule.end_at` is that instant. `spread_seconds` is the job's own offset in its
    window: an occurrence with the nominal time `fire_at` starts at `fire_at + spread_seconds`.

    `creation_key` is a digest of the creating request's idempotency key ("" without), `fingerprint`
    one of the request: a repetition under the same key must carry the same one. `former_keys` are
    those of the jobs of this name before, newest first. `paused_at` is set
    while the state is PAUSED, and on the tombstone of a job that was; `resume_at`, in whole
    seconds, where it is to resume by itself then; `expires_at` only on
    tombstones. `earlier` are the generations before `previous`, newest first. `note` has the reason
    of a pause that was not its owner's. `managed_by` is the manifest or stack that applies the
    settings ("" without), `applied` the digest of those that it applied last: others have changed
    what differs. `author` made the last revision; `last_change` is what it was, put by the store
    (stores/recording.py). `renamed_to` and `renamed_from` are job ids, "" without; of another
    owner's job where `handed_to` or `handed_from` names one. Up to `renamed_at` the occurrences of
    one that has a `renamed_from` were that job's. `spec.priority` is the owner's, `lane`
    where it is served; `slow` is no change of the owner's, so it comes and goes under the same
    revision. So do `successors`, which other jobs put: a write by revision that has not seen them
    all loses.
    """

    owner: str
    job_id: str
    spec: JobSpec
    schedule: Schedule
    segment: int
    generation: Generation
    created_at: datetime
    updated_at: datetime
    state: JobState = JobState.ACTIVE
    revision: int = 1
    previous: PastGeneration | None = None
    earlier: tuple[PastGeneration, ...] = ()
    slow: Slow | None = None
    note: str = ""
    fingerprint: str = ""
    creation_key: str = ""
    former_keys: tuple[str, ...] = ()
    managed_by: str = ""
    applied: str = ""
    author: Author = SYSTEM
    renamed_to: str = ""
    renamed_from: str = ""
    renamed_at: datetime | None = None
    handed_to: HandOver | None = None
    handed_from: HandOver | None = None
    successors: tuple[Successor, ...] = ()
    spread_seconds: int = 0
    paused_at: datetime | None = None
    resume_at: datetime | None = None
    expires_at: datetime | None = None
    last_change: Change | None = field(default=None, compare=False)

    @property
    def lane(self) -> Lane:
        """The lane that its runs are served in."""
        return self.spec.priority if self.slow is None else Lane.SLOW

    @property
    def is_plain(self) -> bool:
        """True if its occurrences may go in chunks."""
        return is_plain(self.spec, self.schedule)

    @property
    def place(self) -> Place | None:
        """Where its generation's occurrences may go in chunks; None where they all go alone."""
        if not self.is_plain:
            return None
        return Place(self.segment, self.spec.priority, self.spread_seconds)

    def is_chunked(self, effective_at: datetime) -> bool:
        """True if an occurrence of its generation, effective then, may go in a chunk: a tick that
        has found its entry sends it."""
        minute = int(effective_at.timestamp()) // 60
        return self.is_plain and chunked_from(self.generation.generation_id) <= minute

    @property
    def list_key(self) -> str:
        """The job's place in lists: by name, then by id. Since no name has a control character,
        none reaches into the id."""
        return f"{list_name(self.spec.name)}\x1f{self.job_id}"

    @property
    def ends(self) -> bool:
        """True if no occurrence is left one day, unless a calendar moves one there."""
        return self.spec.after is None and self.schedule.next(ENDLESS_FROM) is None

    @property
    def is_tombstone(self) -> bool:
        """True if it is gone for its owner: deleted, or completed and to be deleted then."""
        return self.state in (JobState.DELETED, JobState.COMPLETED, JobState.RENAMED)

    def time_limit_seconds(self, longest_seconds: int) -> int:
        """The time limit of an attempt where processes allow for `longest_seconds`.

        A job with an interval and no limit of its own has half the interval, so that it ends before
        the next run of it begins (the seed 004_0db9a28ac7739f5f).
        """
        wanted = self.spec.timeout_seconds
        if wanted is None:
            every = self.interval_seconds
            wanted = DEFAULT_TIMEOUT_SECONDS if every is None else max(1, every // 2)
        return min(wanted, longest_seconds)

    @property
    def interval_seconds(self) -> int | None:
        """The interval of an `every` schedule; None for all others."""
        return self.schedule.interval_seconds if isinstance(self.schedule, Every) else None

    @property
    def pause(self) -> tuple[datetime | None, datetime | None]:
        """Its begin, and its end by itself; None of what there is not."""
        return self.paused_at, self.resume_at

    @property
    def replaced(self) -> tuple[PastGeneration, ...]:
        """The replaced generations that are remembered, newest first."""
        return () if self.previous is None else (self.previous, *self.earlier)

    @property
    def is_as_filed(self) -> bool:
        """False if it was changed in its pause: what its generation had before that followed a
        schedule and policies that are gone. Clocks differ: so the last change counts, too. A move
        to another segment changes none of these."""
        if self.paused_at is None:
            return True
        last = self.last_change
        is_kept = last is None or last.action in (Action.PAUSE, Action.MOVE)
        return self.updated_at <= self.paused_at and is_kept

    def ended_at(self, generation_id: str) -> datetime | None:
        """The instant until which the occurrences of a generation count; None for those that go on
        or that are unknown. Of one older than all that are remembered it is the latest instant
        possible."""
        if generation_id == self.generation.generation_id:
            return self.paused_at or (self.updated_at if self.state is JobState.DELETED else None)
        for known in self.replaced:
            if generation_id == known.generation_id:
                return known.until_at
        if self.replaced and generation_id < self.replaced[-1].generation_id:
            return self.replaced[-1].from_at
        return None

    def has_counted(self, generation_id: str) -> bool:
        """True if a generation is or was the job's, for all that the row remembers: False for one
        that never was committed, unless it may be one of those that are forgotten."""
        known = (self.generation.generation_id, *(each.generation_id for each in self.replaced))
        is_full = len(self.replaced) == MOST_REPLACED
        return generation_id in known or (is_full and generation_id < known[-1])

    def in_new_generation(
        self, generation: Generation, now: datetime, author: Author = SYSTEM
    ) -> "Job":
        """The active job under a new generation, with the next revision (resume, change of
        schedule, revival of a tombstone).

        What the old generation still covers ends now, or at the pause or deletion that preceded;
        the new one never begins before that, whatever the clocks say.
        """
        ended_at = self.paused_at or (self.updated_at if self.is_tombstone else None)
        until_at = max(ended_at or generation.from_at, self.generation.from_at)
        from_at = max(generation.from_at, until_at.replace(microsecond=0))
        generation = replace(generation, from_at=from_at)
        own = self.generation
        previous = PastGeneration(
            own.generation_id, own.from_at, until_at, self.place, self._owes_until(until_at)
        )
        return replace(
            self,
            state=JobState.ACTIVE,
            revision=self.revision + 1,
            generation=generation,
            previous=previous,
            earlier=self.replaced[: MOST_REPLACED - 1],
            paused_at=None,
            resume_at=None,
            expires_at=None,
            note="",
            author=author,
            updated_at=now,
        )

    def _owes_until(self, until_at: datetime) -> datetime | None:
        """The start of the last occurrence of its generation, which ends at `until_at`, if the
        window puts it off beyond that. One that a calendar moves to an earlier day is not sent."""
        if not self.spread_seconds or shifts_back(self.spec.calendar):
            return None
        last = self.schedule.previous(until_at + timedelta.resolution)
        if last is None or last <= self.generation.from_at:
            return None
        starts_at = last + timedelta(seconds=self.spread_seconds)
        return starts_at if starts_at > until_at else None

    def replaced_by(self, job: "Job") -> "Job":
        """`job` in place of this one of the same id, which may be a tombstone: in its own segment,
        with the next revision and what its generations still cover."""
        again = self.in_new_generation(job.generation, job.created_at)
        keys = (self.creation_key, *self.former_keys) if self.creation_key else self.former_keys
        return replace(
            job,
            former_keys=keys[:MOST_FORMER_KEYS],
            handed_from=job.handed_from or self.handed_from,
            successors=self.successors,
            revision=again.revision,
            generation=again.generation,
            previous=again.previous,
            earlier=again.earlier,
        )

    def paused(
        self,
        now: datetime,
        note: str = "",
        author: Author = SYSTEM,
        resume_at: datetime | None = None,
    ) -> "Job":
        """The job, paused from now on, or, where it is paused already, until another time."""
        return replace(
            self,
            state=JobState.PAUSED,
            revision=self.revision + 1,
            paused_at=self.paused_at or now,
            resume_at=resume_at,
            note=note or self.note,
            author=author,
            updated_at=now,
        )

    def deleted(self, now: datetime, expires_at: datetime, author: Author = SYSTEM) -> "Job":
        """The tombstone: payload dropped, key held until `expires_at`."""
        return replace(
            self,
            state=JobState.DELETED,
            resume_at=None,
            revision=self.revision + 1,
            spec=self.spec.model_copy(update={"payload": "null"}),
            author=author,
            updated_at=now,
            expires_at=expires_at,
        )

    def renamed(
        self, generation: Generation, now: datetime, expires_at: datetime, author: Author, to: str
    ) -> "Job":
        """The tombstone of a job that is renamed `to` the job of this id: none of its occurrences
        counts from `generation` on, which begins where that job's does."""
        return replace(
            self.in_new_generation(generation, now, author),
            state=JobState.RENAMED,
            note=self.note,
            paused_at=self.paused_at,
            resume_at=self.resume_at,
            expires_at=expires_at,
            renamed_to=to,
        )

    def completed(self, now: datetime, expires_at: datetime | None) -> "Job":
        """The tombstone of a job whose last run has ended; retries of others still find it. It
        stays where `expires_at` is None."""
        return replace(
            self,
            state=JobState.COMPLETED,
            revision=self.revision + 1,
            author=SYSTEM,
            updated_at=now,
            expires_at=expires_at,
        )


def fires_differently(before: Job, after: Job) -> bool:
    """True if the entries of `before` are not those of `after`: a change needs a new generation.

    They carry the schedule with its bounds and DST rule, the offset, each setting that is marked
    REINDEX, and whether they go in chunks.
    """
    return _indexed(before) != _indexed(after)


def fraction_of(job_id: str) -> float:
    """A stable number in [0, 1) of a job: its place in a window."""
    digest = hashlib.sha256(f"window\0{job_id}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def segment_of(job_id: str, segments: int) -> int:
    """The segment a new job is put in. An existing one keeps that of its row until it is moved."""
    digest = hashlib.sha256(job_id.encode()).digest()
    return int.from_bytes(digest[:4], "big") % segments


def _indexed(job: Job) -> tuple[object, ...]:
    return (
        job.schedule,
        job.spread_seconds,
        job.is_plain,
        *(getattr(job.spec, member) for member in _REINDEXING),
    )


_REINDEXING = members_marked(REINDEX)
