"""Applying a manifest: all of it is planned first, then carried out item by item."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from carillon.api.apply.models import ApplyBody
from carillon.api.apply.plan import (
    BLOCKING,
    Applied,
    Item,
    ItemAction,
    ItemKind,
    calendar_item,
    digest_of,
    failed,
    job_item,
)
from carillon.api.calendars.models import CalendarBody
from carillon.api.calendars.service import CalendarPut, CalendarService
from carillon.api.http.fields import field_errors
from carillon.api.http.problems import (
    ContendedError,
    InvalidFieldsError,
    Kind,
    MissingError,
    PlanChangedError,
    ProblemError,
    RevisionMismatchError,
    problem_of,
)
from carillon.api.jobs.bulk_service import PARALLEL_JOBS, TIME_BUDGET
from carillon.api.jobs.changes import Put
from carillon.api.jobs.planning import Beside
from carillon.api.jobs.service import ATTEMPTS, PAGE_SIZE, JobService
from carillon.clock import Clock
from carillon.domain.calendar import CalendarName
from carillon.domain.execution.successors import predecessor_id
from carillon.domain.job import Job, JobState
from carillon.domain.spec.job_spec import JobSpec, Name
from carillon.domain.spec.names import folded, job_id_of
from carillon.domain.spec.owners import Author
from carillon.domain.spec.together import former_of, predecessor_of
from carillon.errors import (
    CarillonError,
    InvalidFieldError,
    QueueUnavailableError,
    StoreUnavailableError,
    UnreadableRowError,
)
from carillon.stores.ports import JobFilter

Tell = Callable[[Item], None]
"""Called for each item as soon as it is carried out, from several threads."""
_STAGES = 3
"""Jobs may follow calendars, and run after other jobs."""
_Work = TypeVar("_Work")
_CALENDAR_NAME: TypeAdapter[str] = TypeAdapter(CalendarName)


@dataclass(frozen=True, slots=True)
class _Step:
    """`plan` says what is to become of an item; `carry_out` does so, False if it was changed
    meanwhile. All steps of a `stage` are done before those of the next."""

    kind: ItemKind
    name: str
    plan: Callable[[], Item]
    carry_out: Callable[[Item], bool]
    stage: int = 1


class _DeclaredJob(JobSpec):
    was: Name | None = None


class ApplyService:
    """The jobs and calendars of one manager of one owner at a time, `threads` of them side by
    side."""

    def __init__(
        self,
        jobs: JobService,
        calendars: CalendarService,
        clock: Clock,
        threads: int = PARALLEL_JOBS,
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._clock = clock
        self._threads = threads

    def apply(
        self, owner: str, author: Author, manager: str, body: ApplyBody, tell: Tell
    ) -> Applied:
        """Plan the items of the body, and carry them out unless it is a dry run or one of them
        hinders it. It can be repeated: what is as it should be stays so.

        Raises InvalidFieldError, PlanChangedError, StoreUnavailableError.
        """
        until = self._clock.now() + TIME_BUDGET
        steps = sorted(self._steps(owner, author, manager, body), key=lambda step: step.stage)
        plan = list[Item]()
        for stage in range(_STAGES):
            of_stage = [step for step in steps if step.stage == stage]
            plan += self._each(stage, partial(self._planned, until=until), of_stage)
        plan = self._within_quotas(owner, _without_orphans(plan))
        applied = Applied(plan, digest_of(plan), is_written=False)
        if not applied.is_complete:
            return applied
        if body.expect not in (None, applied.digest):
            raise PlanChangedError(str(body.expect), applied.digest)
        if body.dry_run or any(item.action in BLOCKING for item in plan):
            return applied
        done = list[Item]()
        for stage in range(_STAGES):
            pairs = [pair for pair in zip(steps, plan, strict=True) if pair[0].stage == stage]
            if any(item.action is ItemAction.UNAVAILABLE for item in done):
                # A job without its calendar would run on days that are closed.
                until = self._clock.now()
            done += self._of_stage(stage, pairs, until, tell)
        return Applied(done, applied.digest, is_written=True)

    def _within_quotas(self, owner: str, plan: Sequence[Item]) -> list[Item]:
        """The plan; those of its items are refused for which the owner has no room, in order."""
        puts = [item.put for item in plan if item.is_to_write and isinstance(item.put, Put)]
        refusals = iter(self._jobs.quotas.refusals(owner, [put.load.rise for put in puts]))
        errors = {id(put): error for put, error in zip(puts, refusals, strict=True) if error}
        return [
            failed(item.kind, item.name, ItemAction.REFUSED, errors[id(item.put)])
            if id(item.put) in errors
            else item
            for item in plan
        ]

    def _each(
        self, stage: int, work: Callable[[_Work], Item], items: Sequence[_Work]
    ) -> list[Item]:
        # The time that the text of an iCalendar file may take is limited in the main thread only.
        if self._threads == 1 or stage == 0:
            return list(map(work, items))
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(work, items))

    def _of_stage(
        self, stage: int, pairs: Sequence[tuple[_Step, Item]], until: datetime, tell: Tell
    ) -> list[Item]:
        return self._each(stage, lambda pair: self._carried_out(*pair, until, tell), pairs)

    def _steps(self, owner: str, author: Author, manager: str, body: ApplyBody) -> Iterator[_Step]:
        if body.keep is not None:
            if body.jobs or body.calendars:
                raise InvalidFieldError("keep", "goes without jobs and calendars: prune last")
            yield from self._deletions(owner, author, manager, body.keep)
            return
        for name, members in body.calendars.items():
            plan = partial(self._calendar, owner, name, members)
            yield _Step(ItemKind.CALENDAR, name, plan, partial(self._put_calendar, author), stage=0)
        spellings = Counter(map(folded, body.jobs))
        former = Counter(map(former_of, body.jobs.values()))
        declared = {folded(name): predecessor_of(members) for name, members in body.jobs.items()}
        beside = Beside(body.calendars, declared)
        for name, members in body.jobs.items():
            was = former_of(members)
            is_twice = spellings[folded(name)] > 1
            is_claimed = was is not None and former[was] > 1
            job = partial(
                self._job, owner, author, manager, body, beside, name, members, is_twice, is_claimed
            )
            stage = 1 if declared[folded(name)] is None else 2
            yield _Step(ItemKind.JOB, name, job, self._put_job, stage)

    def _deletions(
        self, owner: str, author: Author, manager: str, keep: Sequence[str]
    ) -> Iterator[_Step]:
        """One for each job of the manager whose name is not among those to keep."""
        kept = set(map(folded, keep))
        cursor: str | None = None
        while True:
            page = self._jobs.select(owner, PAGE_SIZE, cursor, JobFilter(managed_by=manager))
            for job in page.items:
                if folded(job.spec.name) not in kept:
                    plan = partial(self._deletion, owner, manager, job.spec.name)
                    yield _Step(ItemKind.JOB, job.spec.name, plan, partial(self._delete, author))
            cursor = page.next_cursor
            if cursor is None:
                return

    def _calendar(self, owner: str, name: str, members: dict[str, Any]) -> Item:
        try:
            _CALENDAR_NAME.validate_python(name)
            body = CalendarBody.model_validate(members)
        except ValidationError as error:
            raise InvalidFieldsError(field_errors(error.errors())) from error
        return calendar_item(self._calendars.planned(owner, name, body))

    def _job(
        self,
        owner: str,
        author: Author,
        manager: str,
        body: ApplyBody,
        beside: Beside,
        name: str,
        members: dict[str, Any],
        is_twice: bool,
        is_claimed: bool,
    ) -> Item:
        if is_twice:
            raise InvalidFieldError("name", "differs from another one in its case only")
        if is_claimed:
            raise InvalidFieldError("was", "is the former name of another job, too")
        if "name" in members:
            raise InvalidFieldError("name", "is the key here: omit it")
        try:
            declared = _DeclaredJob.model_validate({**members, "name": name})
        except ValidationError as error:
            raise InvalidFieldsError(field_errors(error.errors())) from error
        was = declared.was
        spec = JobSpec.model_validate(
            declared.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"was"})
        )
        stored = self._jobs.find(owner, job_id_of(owner, name))
        old = None
        if was is not None and (stored is None or stored.is_tombstone):
            old = self._renamed(owner, was, name, stored, body)
        if old is None:
            put = self._jobs.planner.put(owner, spec, stored, author, beside)
        else:
            put = self._jobs.planner.rename(old, spec, stored, author, beside)
        now = self._clock.now()
        return job_item(put, manager, author, now, force=body.force, adopt=body.adopt)

    def _renamed(
        self, owner: str, was: str, name: str, stored: Job | None, body: ApplyBody
    ) -> Job | None:
        """The job of the name `was`, also where it has begun to be renamed; None if there is none
        any more. `stored` is the tombstone of the new name, if any. Raises InvalidFieldError."""
        if folded(was) == folded(name):
            raise InvalidFieldError("was", "is the same name: names differ in more than their case")
        if folded(was) in map(folded, body.jobs):
            raise InvalidFieldError("was", f"is a job of this manifest, too: {was!r}")
        old = self._jobs.find(owner, job_id_of(owner, was))
        if old is None or old.state in (JobState.DELETED, JobState.COMPLETED):
            return None
        is_to_be = old.renamed_to in ("", job_id_of(owner, name))
        # What has ended under the new name since was renamed: its own row says what becomes of it,
        # or has expired before the former one, whose retries may be waited for.
        if stored is None:
            is_done = self._clock.now() >= old.updated_at + self._jobs.tombstone_lifetime
        else:
            is_done = stored.updated_at > old.updated_at
        is_done = is_done and old.is_tombstone
        return old if is_to_be and not is_done else None

    def _deletion(self, owner: str, manager: str, name: str) -> Item:
        """A job that was deleted, or that another one manages by now, is left alone."""
        job = self._jobs.find(owner, job_id_of(owner, name))
        if job is None or job.is_tombstone or job.managed_by != manager:
            return Item(ItemKind.JOB, name, ItemAction.NONE)
        return Item(ItemKind.JOB, name, ItemAction.DELETE, job=job)

    def _put_calendar(self, author: Author, item: Item) -> bool:
        assert isinstance(item.put, CalendarPut)
        return self._calendars.commit(item.put, author)

    def _put_job(self, item: Item) -> bool:
        assert isinstance(item.put, Put)
        return self._jobs.commit(item.put)

    def _delete(self, author: Author, item: Item) -> bool:
        job = item.job
        assert job is not None
        try:
            self._jobs.delete(job.owner, job.job_id, job.revision, author, force=True)
        except (MissingError, RevisionMismatchError, ContendedError):
            return False
        return True

    def _planned(self, step: _Step, until: datetime) -> Item:
        unavailable = partial(failed, step.kind, step.name, ItemAction.UNAVAILABLE)
        if self._clock.now() >= until:
            return unavailable(_late())
        try:
            return step.plan()
        except (CarillonError, ProblemError) as error:
            if _may_pass(error):
                return unavailable(error)
            return failed(step.kind, step.name, ItemAction.REFUSED, error)

    def _carried_out(self, step: _Step, item: Item, until: datetime, tell: Tell) -> Item:
        """The item, UNAVAILABLE unless it was written, or was to stay as it is."""
        wanted = item
        for _ in range(ATTEMPTS):
            if not item.is_to_write:
                return item
            try:
                if self._clock.now() >= until:
                    raise _late()
                if step.carry_out(item):
                    tell(item)
                    return item
            except (CarillonError, ProblemError) as error:
                return replace(item, action=ItemAction.UNAVAILABLE, problem=problem_of(error))
            item = self._planned(step, until)
            if (item.action, item.changes) != (wanted.action, wanted.changes):
                break
        contended = problem_of(ContendedError(repr(step.name), step.kind))
        return replace(wanted, action=ItemAction.UNAVAILABLE, problem=contended)


def _without_orphans(plan: Sequence[Item]) -> list[Item]:
    """The plan; those of its jobs are refused whose predecessor it renames, which is gone then."""
    puts = [item.put for item in plan if isinstance(item.put, Put)]
    names = {put.renamed.job.job_id: put.job.spec.name for put in puts if put.renamed is not None}
    return [_refused_orphan(item, names) for item in plan]


def _refused_orphan(item: Item, names: Mapping[str, str]) -> Item:
    """`names` are those that jobs are to get, by the ids that they had."""
    job = item.put.job if isinstance(item.put, Put) else None
    name = names.get(predecessor_id(job) or "")
    if job is None or name is None:
        return item
    error = InvalidFieldError("after.job", f"is renamed by this manifest: name it {name!r}")
    return failed(item.kind, item.name, ItemAction.REFUSED, error)


def _late() -> ProblemError:
    return ProblemError(Kind.UNAVAILABLE, "not reached, in time or after what failed: apply again")


def _may_pass(error: Exception) -> bool:
    """True for what another try may not meet; time does not mend a row that cannot be read."""
    if isinstance(error, ProblemError):
        return error.kind is Kind.UNAVAILABLE
    passing = (StoreUnavailableError, QueueUnavailableError)
    return isinstance(error, passing) and not isinstance(error, UnreadableRowError)
