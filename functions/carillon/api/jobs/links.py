"""Links between jobs: one that runs after another stands in the row of that one."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from carillon.api.http.problems import ContendedError
from carillon.clock import Clock
from carillon.domain.execution.successors import (
    YOUNG_LINK,
    link_of,
    linked,
    narrowed,
    predecessor_id,
    unlinked,
)
from carillon.domain.job import MOST_SUCCESSORS, Job, Successor
from carillon.domain.spec.names import folded
from carillon.errors import InvalidFieldError, StoreUnavailableError, UnreadableRowError
from carillon.stores.ports import JobStore

_ROUNDS = 2 * MOST_SUCCESSORS
"""As many may link jobs to one at once, each of which may change its row twice."""


Declared = Mapping[str, str | None]
"""The jobs of one apply, each with the one that it is to run after; names are folded."""


class Links:
    """The links that a change of a job needs: checked when it is planned, put before its commit,
    tidied up after it."""

    def __init__(self, jobs: JobStore, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def refuse_impossible(self, job: Job, before: Job | None, declared: Declared) -> None:
        """Refuse a job that cannot run after the one that it names, once those that are `declared`
        are so; one that runs after it already goes on. Raises InvalidFieldError,
        StoreUnavailableError."""
        after = job.spec.after
        if after is None or predecessor_id(job) == predecessor_id(before):
            return
        own, named = folded(job.spec.name), folded(after.job)
        if named == own:
            raise InvalidFieldError("after.job", "is the job itself: name another one")
        predecessor = self._predecessor(job, before)
        if predecessor is None and named not in declared:
            raise _no_predecessor(after.job)
        stored = None if predecessor is None or predecessor.spec.after is None else own
        if declared.get(named, stored) is not None:
            message = f"runs after another job itself: {after.job!r} must have a schedule"
            raise InvalidFieldError("after.job", message)
        if before is not None and (names := self.followers(before, declared)):
            message = f"cannot be, since {', '.join(names)} run after this job"
            raise InvalidFieldError("after", message)
        followers = {own, *(each for each, at in declared.items() if at == named)}
        linked_already = 0 if predecessor is None else len(predecessor.successors)
        if predecessor is not None and len(followers) + linked_already > MOST_SUCCESSORS:
            followers.update(map(folded, self.followers(predecessor, declared)))
        if len(followers) > MOST_SUCCESSORS:
            raise _no_room()

    def is_forgotten(self, job: Job) -> bool:
        """True if the job that this one runs after has no link to it: its row was gone for a while,
        and it was made anew."""
        with suppress(UnreadableRowError):
            predecessor = self._predecessor(job, job)
            links = () if predecessor is None else predecessor.successors
            return predecessor is not None and job.job_id not in {link.job_id for link in links}
        return False  # nobody can say

    def followers(self, predecessor: Job, declared: Declared) -> list[str]:
        """The names of the jobs that run after one, once those that are `declared` are so."""
        own = folded(predecessor.spec.name)
        rows = (self._jobs.get(predecessor.owner, link.job_id) for link in predecessor.successors)
        return [
            row.spec.name
            for row in rows
            if row is not None
            and predecessor_id(row) == predecessor.job_id
            and declared.get(folded(row.spec.name), own) == own
        ]

    def refuse_renaming(self, old: Job, job: Job) -> None:
        """A run that has ended would start others under the one name, and be looked for under the
        other. Raises InvalidFieldError, StoreUnavailableError."""
        if old.spec.after or job.spec.after or self.followers(old, {}):
            raise InvalidFieldError(
                "was",
                "cannot be used with a job that runs `after` another, or that others run after: "
                "let it keep its name, or delete it and create the other one",
            )

    def put(self, job: Job, before: Job | None) -> None:
        """Link a job that is about to be committed over `before` to the one that it runs after.

        Raises InvalidFieldError where that one is gone or has no room, ContendedError,
        StoreUnavailableError.
        """
        link = link_of(job)
        if link is None or _is_as_before(job, before):
            return
        for _ in range(_ROUNDS):
            predecessor = self._predecessor(job, before)
            if predecessor is None and predecessor_id(job) == predecessor_id(before):
                return  # it has expired, and its links with it
            if predecessor is None:
                raise _no_predecessor(job.spec.after.job if job.spec.after else "")
            wanted = linked(predecessor, link)
            if len(wanted.successors) > MOST_SUCCESSORS:
                wanted = linked(self._without_idle(predecessor), link)
            if len(wanted.successors) > MOST_SUCCESSORS:
                raise _no_room()
            if self._jobs.relink(wanted, predecessor.successors):
                return
        raise ContendedError(str(predecessor_id(job)))

    def tidy_up(self, job: Job, before: Job | None) -> None:
        """Take away what a committed change has left of links: whatever else the link stood for,
        and the one at the former predecessor. Raises nothing: such a link starts no run."""
        with suppress(StoreUnavailableError):
            self._tidy_up(job, before)

    def _tidy_up(self, job: Job, before: Job | None) -> None:
        link, former_id = link_of(job), predecessor_id(before)
        is_same = former_id == predecessor_id(job)
        if link is not None and not job.is_tombstone and not _is_as_before(job, before):
            self._change(
                self._predecessor(job, before), lambda row: narrowed(row, link, is_new=not is_same)
            )
        if former_id is not None and not is_same:
            self._change(self._jobs.get(job.owner, former_id), lambda row: unlinked(row, job))

    def _change(self, predecessor: Job | None, change: Callable[[Job], Job]) -> None:
        for _ in range(_ROUNDS):
            wanted = None if predecessor is None else change(predecessor)
            if predecessor is None or wanted is None or wanted == predecessor:
                return
            if self._jobs.relink(wanted, predecessor.successors):
                return
            predecessor = self._jobs.get(predecessor.owner, predecessor.job_id)

    def _predecessor(self, job: Job, before: Job | None) -> Job | None:
        """Its row; one that is gone is none, but for a job that ran after it before."""
        job_id = predecessor_id(job)
        row = None if job_id is None else self._jobs.get(job.owner, job_id)
        is_gone = row is None or (row.is_tombstone and job_id != predecessor_id(before))
        return None if is_gone else row

    def _without_idle(self, predecessor: Job) -> Job:
        """The predecessor without links to jobs that do not run after it."""
        return replace(predecessor, successors=tuple(self._kept(predecessor)))

    def _kept(self, predecessor: Job) -> Iterator[Successor]:
        for link in predecessor.successors:
            is_young = self._clock.now() - link.put_at < YOUNG_LINK
            row = None if is_young else self._jobs.get(predecessor.owner, link.job_id)
            if is_young or predecessor_id(row) == predecessor.job_id:
                yield link


def _no_predecessor(name: str) -> InvalidFieldError:
    return InvalidFieldError("after.job", f"you have no job {name!r}: create it first")


def _no_room() -> InvalidFieldError:
    message = f"has {MOST_SUCCESSORS} jobs that run after it, and takes no more"
    return InvalidFieldError("after.job", message)


def _is_as_before(job: Job, before: Job | None) -> bool:
    """True if the link of the row before stands for the job, too. Where nothing else is changed
    there is none any more."""
    if before is None or before.spec == job.spec:
        return False
    if predecessor_id(before) != predecessor_id(job):
        return False
    said = (job.spec.after, job.spec.priority, job.segment)
    return said == (before.spec.after, before.spec.priority, before.segment)
