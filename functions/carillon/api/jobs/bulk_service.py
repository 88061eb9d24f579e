"""Many jobs in one call: creation item by item, and one change to all that a filter chooses.

Both work side by side for as long as one answer may take, and report what they did not reach.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pydantic import ValidationError

from carillon.api.http.callers import Caller
from carillon.api.http.fields import field_errors
from carillon.api.http.problems import (
    InvalidFieldsError,
    Kind,
    ManagedError,
    MissingError,
    ProblemError,
    problem_of,
)
from carillon.api.http.requests import key_of
from carillon.api.jobs.request_models import JobPatch
from carillon.api.jobs.service import Changed, Created, JobService
from carillon.clock import Clock
from carillon.domain.job import Job
from carillon.domain.spec.fields import Document, Flag
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.owners import Author
from carillon.domain.spec.teams import Role
from carillon.errors import CarillonError, InvalidFieldError, UnreadableRowError
from carillon.stores.ports import JobFilter, Page

TIME_BUDGET = timedelta(seconds=20)
"""After this long nothing more is begun: the gateway waits 29 s for an answer."""
PARALLEL_JOBS = 16
"""The clients of the stores hold twice as many connections."""
PAGE_SIZE = 50
"""Jobs that are changed before a cursor is at hand."""
MOST_TIDIED = 1_000
"""Jobs of one call whose entries are removed at once; a payload of each is kept until then."""
MOST_ERRORS = 10
"""The answer for a refused item has the first ones only: 1,000 items go into one answer."""

KEY_FIELD = "idempotency_key"

Tell = Callable[[Job], None]
"""Called for each job as soon as it was created or changed, from several threads: the change is on
record even when the call fails after it."""


@dataclass(frozen=True, slots=True)
class Item:
    """The result of one item: created (or found under its key), changed, or the problem."""

    created: Created | None = None
    changed: Job | None = None
    problem: ProblemError | None = None


class ChangeItem(Document):
    """A job by its id, and what is to change, as the body of `PATCH /jobs/{job_id}`; `force`: also
    of a job that a manifest or stack manages."""

    job_id: str
    patch: JobPatch
    force: Flag = False


def _unreached() -> Item:
    detail = "not reached in time: send the same call, or this item, again"
    return Item(problem=ProblemError(Kind.UNAVAILABLE, detail))


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """The number of jobs that a call has changed, and of those that it left to what manages them;
    `next_cursor` continues behind those it reached."""

    changed: int
    managed: int
    next_cursor: str | None


class BulkService:
    """Jobs of one owner at a time, many at once. It writes as JobService does, job by job."""

    def __init__(self, jobs: JobService, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def create(
        self, caller: Caller, items: Sequence[Any], key: str | None, tell: Tell
    ) -> list[Item]:
        """One outcome for each item; under a `key` those without one have `key/index`.

        Nothing of an item is an error of the call. Items not reached in time are UNAVAILABLE.
        """
        until = self._clock.now() + TIME_BUDGET

        def create(index: int) -> Item:
            default_key = None if key is None else f"{key}/{index}"
            item = self._create_one(caller, items[index], default_key, until)
            if item.created is not None and item.created.is_new:
                tell(item.created.job)
            return item

        with ThreadPoolExecutor(min(PARALLEL_JOBS, len(items))) as pool:
            return list(pool.map(create, range(len(items))))

    def change(self, caller: Caller, items: Sequence[Any], tell: Tell) -> list[Item]:
        """One outcome for each item, a job and its patch, whichever revision it is at; as for
        `create`. What a repetition repeats changes nothing more."""
        until = self._clock.now() + TIME_BUDGET

        def change(item: Any) -> Item:
            changed = self._change_one(caller, item, until)
            if changed.changed is not None:
                tell(changed.changed)
            return changed

        with ThreadPoolExecutor(min(PARALLEL_JOBS, len(items))) as pool:
            return list(pool.map(change, items))

    def pause(
        self,
        caller: Caller,
        only: JobFilter,
        cursor: str | None,
        tell: Tell,
        reason: str = "",
        until: datetime | None = None,
    ) -> ChangedPage:
        """Pause the jobs of the filter; raises what JobService.pause raises, and InvalidFieldError
        for `until`, before the first, and for the cursor. It can be repeated, as the others can."""
        resume_at = self._jobs.planner.end_of_pause(until)
        pause = partial(self._jobs.pause, reason=reason, resume_at=resume_at, only=only, tidy=False)
        return self._change_all(caller, only, cursor, pause, tell)

    def resume(
        self, caller: Caller, only: JobFilter, cursor: str | None, tell: Tell
    ) -> ChangedPage:
        """Resume the jobs of the filter that are paused."""
        resume = partial(self._jobs.resume, only=only)
        return self._change_all(caller, only, cursor, resume, tell)

    def delete(
        self, caller: Caller, only: JobFilter, cursor: str | None, tell: Tell, *, force: bool
    ) -> ChangedPage:
        """Delete the jobs of the filter; managed ones only if it is to `force` it."""

        def delete(owner: str, job_id: str, author: Author) -> Changed:
            return self._jobs.delete(
                owner, job_id, None, author, force=force, only=only, tidy=False
            )

        return self._change_all(caller, only, cursor, delete, tell)

    def _create_one(
        self, caller: Caller, item: Any, default_key: str | None, until: datetime
    ) -> Item:
        if self._clock.now() >= until:
            return _unreached()
        try:
            body, key = _body_and_key(item)
            return Item(self._jobs.create(caller.owner, body, key or default_key, caller.author))
        except (CarillonError, ProblemError) as error:
            return Item(problem=problem_of(error))

    def _change_one(self, caller: Caller, item: Any, until: datetime) -> Item:
        if self._clock.now() >= until:
            return _unreached()
        try:
            wanted = ChangeItem.model_validate(item)
            if wanted.force:
                caller.require(Role.ADMIN, "with force")
            job = self._jobs.change(
                caller.owner, wanted.job_id, wanted.patch, None, caller.author, force=wanted.force
            )
            return Item(changed=job)
        except ValidationError as error:
            return Item(problem=problem_of(InvalidFieldsError(field_errors(error.errors()))))
        except (CarillonError, ProblemError) as error:
            return Item(problem=problem_of(error))

    def _change_all(
        self,
        caller: Caller,
        only: JobFilter,
        cursor: str | None,
        change: Callable[[str, str, Author], Changed],
        tell: Tell,
    ) -> ChangedPage:
        def change_one(job: Job) -> Changed | ManagedError | UnreadableRowError | None:
            try:
                changed = change(caller.owner, job.job_id, caller.author)
            except MissingError:
                return None  # deleted since it was listed, or changed, and none of these any more
            except (ManagedError, UnreadableRowError) as error:
                return error
            if changed.before is None:
                return None
            tell(changed.job)
            return changed

        def tidy_up(changed: Changed) -> None:
            if self._clock.now() < until:
                self._jobs.tidy_up(changed)

        until = self._clock.now() + TIME_BUDGET
        count, managed, untidy = 0, 0, list[Changed]()
        unreadable: UnreadableRowError | None = None
        with ThreadPoolExecutor(PARALLEL_JOBS) as pool:
            while True:
                page = self._jobs.select(caller.owner, PAGE_SIZE, cursor, only)
                results = [*pool.map(change_one, page.items), *_errors_of(page)]
                changed = [each for each in results if isinstance(each, Changed)]
                count += len(changed)
                managed += sum(isinstance(each, ManagedError) for each in results)
                bad = (each for each in results if isinstance(each, UnreadableRowError))
                unreadable = next(bad, unreadable)
                untidy += changed[: max(0, MOST_TIDIED - len(untidy))]
                cursor = page.next_cursor
                if cursor is None or self._clock.now() >= until:
                    break
            # The changes come first: up to sixty entries of each job are left to the time left.
            list(pool.map(tidy_up, untidy))
        if unreadable is not None:
            raise unreadable  # time does not mend it: it is to hold up no other job
        return ChangedPage(count, managed, cursor)


def _errors_of(page: Page[Job]) -> list[UnreadableRowError]:
    """Of the jobs that are to be changed, too, and cannot be read."""
    return list(map(UnreadableRowError, page.unreadable.values()))


def _body_and_key(item: Any) -> tuple[JobSpec, str | None]:
    """The job of an item, and the item's own key; raises InvalidFieldError, InvalidFieldsError."""
    if not isinstance(item, dict):
        raise InvalidFieldError("body", "must be an object")
    members = dict(item)
    text = members.pop(KEY_FIELD, None)
    key = None
    if text is not None:
        key = key_of(text) if isinstance(text, str) else None
        if key is None:
            raise InvalidFieldError(KEY_FIELD, "must be 1 to 255 printable ASCII characters")
    try:
        return JobSpec.model_validate(members), key
    except ValidationError as error:
        raise InvalidFieldsError(field_errors(error.errors())) from error
