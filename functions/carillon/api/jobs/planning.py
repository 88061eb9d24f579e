"""The job that a request makes of what is stored, before anything is written."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from carillon.api.http.problems import unavailable
from carillon.api.jobs.changes import Put, job_with, new_job, renamed_job
from carillon.api.jobs.drafts import EVERY_SETTING, Draft, changed_draft, patched_draft
from carillon.api.jobs.links import Declared, Links
from carillon.api.jobs.request_models import JobPatch
from carillon.clock import Clock, Entropy, ceil_second, utc_text
from carillon.domain.calendar import Calendar, shifts
from carillon.domain.changes.handing_over import is_in_hand
from carillon.domain.execution.next_run import needed_until
from carillon.domain.execution.resuming import (
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    is_over,
    resumed_after,
)
from carillon.domain.job import Generation, Job, JobState, fires_differently
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import Author
from carillon.errors import InvalidFieldError
from carillon.settings import Settings
from carillon.stores.ports import VersionedRows

LONGEST_RENAMING = timedelta(minutes=1)
"""What came due while a renaming was not done yet is sent at once, unless it is older."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Calendars and jobs that are to be there by then: their names, and with each job the one that
    it runs after."""

    calendars: Collection[str] = ()
    jobs: Declared = field(default_factory=dict)


NOTHING = Beside()


class Planner:
    """Nothing here writes; all raise StoreUnavailableError where a calendar, or another job, cannot
    be looked up."""

    def __init__(
        self,
        links: Links,
        calendars: VersionedRows[Calendar],
        clock: Clock,
        entropy: Entropy,
        settings: Settings,
    ) -> None:
        self._links = links
        self._calendars = calendars
        self._clock = clock
        self._entropy = entropy
        self._settings = settings

    def put(
        self,
        owner: str,
        spec: JobSpec,
        stored: Job | None,
        author: Author,
        beside: Beside = NOTHING,
    ) -> Put:
        """The job of a name with these settings, where `stored` is its row, by a PUT. `beside` is
        to be there by then.

        A completed job that was to be deleted then stays gone under the same settings: they have
        been carried out.
        """
        if stored is not None and (not stored.is_tombstone or stored.state is JobState.COMPLETED):
            now = self._clock.now()
            draft = changed_draft(stored, spec, EVERY_SETTING, self._settings, now)
            if not stored.is_tombstone or job_with(stored, draft) == stored:
                return Put(self._changed(stored, draft, now, author, beside), stored)
        return Put(self.created(owner, spec, stored, author, beside), stored)

    def rename(
        self,
        old: Job,
        spec: JobSpec,
        stored: Job | None,
        author: Author,
        beside: Beside = NOTHING,
    ) -> Put:
        """The job `old` under another name, with these settings; `stored` is the tombstone of that
        name, if any. A paused job stays paused.

        The one ends at the instant at which the other begins. One that has ended already, by a
        request that got no further, is continued from there on for a minute, else from now on.
        Raises what `created_draft` raises, and ProblemError where it is about to be resumed.
        """
        now = self._clock.now()
        self._refuse_in_hand(stored)
        _refuse_overdue(old, now)
        job_id = job_id_of(old.owner, spec.name)
        generation = self.generation(now, stored.generation if stored else None)
        tombstone = old
        if old.state is not JobState.RENAMED:
            until = needed_until(old, now, self._settings.run_lifetime)
            ended = self.generation(now, old.generation)
            tombstone = old.renamed(ended, now, until, author, job_id)
        began_at = tombstone.generation.from_at
        if now - began_at <= LONGEST_RENAMING:
            generation = replace(generation, from_at=began_at)
        job = renamed_job(tombstone, spec, generation, self._settings, now)
        _refuse_moving(old, job)
        self._links.refuse_renaming(old, job)
        self._refuse_missing_calendar(job, beside)
        made = replace(job, author=author)
        if stored is not None:
            made = stored.replaced_by(made)
        return Put(made, stored, Put(tombstone, old))

    def patch(self, job: Job, patch: JobPatch, author: Author) -> Put:
        """The job after a patch; raises what `patched_draft` raises."""
        now = self._clock.now()
        draft = patched_draft(job, patch, self._settings, now)
        return Put(self._changed(job, draft, now, author), job)

    def paused(self, job: Job, reason: str, resume_at: datetime | None, author: Author) -> Job:
        """The job, paused; as it is where it is paused until then already."""
        if job.state is JobState.PAUSED and job.resume_at == resume_at:
            return job
        return job.paused(self._clock.now(), reason, author, resume_at)

    def resumed(self, job: Job, author: Author) -> Job:
        """The paused job, active from now on, or from the end of its pause if that is over."""
        now = self._clock.now()
        generation = self.generation(now, job.generation)
        generation = replace(generation, from_at=resumed_after(job, now))
        return job.in_new_generation(generation, now, author)

    def end_of_pause(self, until: datetime | None) -> datetime | None:
        """The end of a pause that begins now, in whole seconds; raises InvalidFieldError."""
        now = self._clock.now()
        if until is None or now + SHORTEST_PAUSE <= until <= now + LONGEST_PAUSE:
            return until and ceil_second(until)
        earliest = utc_text(ceil_second(now + SHORTEST_PAUSE))
        raise InvalidFieldError(
            "until", f"must lie in the {LONGEST_PAUSE.days} days from {earliest} on, a minute ahead"
        )

    def created(
        self,
        owner: str,
        spec: JobSpec,
        stored: Job | None,
        author: Author,
        beside: Beside = NOTHING,
    ) -> Job:
        """A new job, in place of the one of its name if there is one; raises what `created_draft`
        raises."""
        now = self._clock.now()
        self._refuse_in_hand(stored)
        generation = self.generation(now, stored.generation if stored else None)
        job = new_job(owner, spec, generation, self._settings, now, author)
        self._refuse_missing_calendar(job, beside)
        self._links.refuse_impossible(job, stored, beside.jobs)
        return job if stored is None else stored.replaced_by(job)

    def _changed(
        self, job: Job, draft: Draft, now: datetime, author: Author, beside: Beside = NOTHING
    ) -> Job:
        """The job with other settings, of the next revision if they differ: of a new generation if
        it fires otherwise, unless it is paused: then it gets that when it is resumed. Raises
        ProblemError where that is overdue."""
        changed = job_with(job, draft)
        if changed == job and not self._links.is_forgotten(job):
            return job
        if changed.spec.calendar != job.spec.calendar:
            self._refuse_missing_calendar(changed, beside)
        self._links.refuse_impossible(changed, job, beside.jobs)
        if fires_differently(job, changed):
            _refuse_overdue(job, now)
            if job.state is JobState.ACTIVE:
                generation = self.generation(now, job.generation)
                # The generation before is placed in chunks as it was, not as it is changed.
                return job_with(job.in_new_generation(generation, now, author), draft)
        return replace(changed, revision=job.revision + 1, updated_at=now, author=author)

    def generation(self, now: datetime, before: Generation | None = None) -> Generation:
        """A generation from now on, of an id behind the one before."""
        made_at = now if before is None else before.next_id_at(now)
        return Generation(self._entropy.new_id(made_at), now.replace(microsecond=0))

    def _refuse_in_hand(self, stored: Job | None) -> None:
        """The name of a job is not free before its new owner has it. Raises ProblemError."""
        if is_in_hand(stored):
            raise unavailable("the job of this name is being handed over: repeat the request")

    def _refuse_missing_calendar(self, job: Job, beside: Beside) -> None:
        """A job could follow one that is not there, as if every day were open: never by a slip."""
        use = job.spec.calendar
        if use is None or use.name in beside.calendars:
            return
        if self._calendars.get(job.owner, use.name) is None:
            raise InvalidFieldError(
                "calendar.name", f"you have no calendar {use.name!r}: PUT /calendars/{use.name}"
            )


def _refuse_overdue(job: Job, now: datetime) -> None:
    """Raise ProblemError for a job whose resumption is overdue: what has come due since the end of
    its pause is by its schedule as it is."""
    if job.state is JobState.PAUSED and is_over(job, now):
        raise unavailable("its pause is over: wait until it is resumed, or resume it")


def _refuse_moving(*jobs: Job) -> None:
    """An occurrence that a calendar moves would be moved under one of the names, and counted under
    the other."""
    if any(shifts(job.spec.calendar) for job in jobs):
        raise InvalidFieldError(
            "was",
            "cannot be used with a calendar whose rule moves occurrences to other days: let the "
            "job keep its name, or delete it and create the other one",
        )
