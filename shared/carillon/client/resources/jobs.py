"""Jobs: by name or id, and many at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack

from carillon.client.paths import instant, job_path, named_job_path, split_job
from carillon.client.resources.following import Follower
from carillon.client.session import Query
from carillon.client.steps import (
    DriverT,
    Page,
    Resource,
    Steps,
    Stream,
    Wait,
    call,
    collected,
    only,
    stream,
)
from carillon.errors import InvalidFieldError

if TYPE_CHECKING:
    from carillon.client.session import Session
    from carillon.client.types.answers import (
        BulkForm,
        JobForm,
        JobReport,
        MissedList,
        OccurrenceForm,
        OperationForm,
        PutReport,
        RunDetail,
        RunForm,
        RunStatus,
    )
    from carillon.client.types.requests import JobPatch, JobSpec, NamedJob, Only, PauseBody, RunBody

NEWEST = 20
"""Runs that following begins with, where nobody says how many."""


def span_of(from_at: str | datetime | None, to: str | datetime | None) -> dict[str, str | int]:
    """The bounds of a span as a query or a body names them."""
    bounds = {"from": from_at, "to": to}
    return {name: instant(value) for name, value in bounds.items() if value is not None}


def condition(revision: int | None, only_new: bool = False) -> dict[str, str]:
    """The headers of a change that holds over one revision only, or over nothing."""
    found = {} if revision is None else {"If-Match": f'"{revision}"'}
    return {**found, "If-None-Match": "*"} if only_new else found


class Changed(TypedDict):
    """The number of jobs changed, and of those that a manifest manages, which were left alone."""

    changed: int
    managed: int


class Jobs(Resource[DriverT]):
    """All jobs of the owner; `jobs["nightly"]` is one of them, by its name or its id."""

    def __getitem__(self, job: str) -> Job[DriverT]:
        return Job(self._session, self._driver, job)

    @call
    def put(
        self,
        name: str,
        /,
        *,
        dry_run: bool = False,
        force: bool = False,
        revision: int | None = None,
        only_new: bool = False,
        **settings: Unpack[NamedJob],
    ) -> Steps[PutReport]:
        """Create the job of this name, or give it these settings and no others.

        `revision`: only over this one; `only_new`: only if there is none; else Conflict. `force`:
        also where a manifest manages it, else Managed.
        """
        answer: PutReport = yield from self._session.ask(
            "PUT",
            named_job_path(name),
            query=_flags(dry_run=dry_run, force=force),
            body=settings,
            headers=condition(revision, only_new),
        )
        return answer

    @call
    def create(
        self, *, idempotency_key: str | None = None, **settings: Unpack[JobSpec]
    ) -> Steps[JobReport]:
        """Create a job; Conflict if its name is taken."""
        answer: JobReport = yield from self._session.once("/jobs", settings, idempotency_key)
        return answer

    @call
    def create_many(
        self, jobs: Iterable[JobSpec], *, idempotency_key: str | None = None
    ) -> Steps[BulkForm]:
        """Create up to 1,000 jobs, item by item: the answer says what became of each."""
        body = {"items": list(jobs)}
        answer: BulkForm = yield from self._session.once("/jobs/bulk", body, idempotency_key)
        return answer

    @stream
    def list(
        self,
        *,
        name: str | None = None,
        parent: str | None = None,
        tags: Mapping[str, str] | None = None,
        managed_by: str | None = None,
        limit: int | None = None,
    ) -> Stream[JobForm]:
        """Your jobs by name: all, or those whose names begin so, of a parent, with all the tags, of
        a manifest (`manifest/billing`)."""
        query = _filter(parent, tags)
        query |= {"name": name} if name else {}
        query |= {"managed_by": managed_by} if managed_by else {}
        yield from self._session.pages("/jobs", limit, query)

    @call
    def pause(
        self,
        *,
        parent: str | None = None,
        tags: Mapping[str, str] | None = None,
        all: bool = False,
        **why: Unpack[PauseBody],
    ) -> Steps[Changed]:
        """Pause all jobs of a parent, with all the tags, or both; with `all` every job."""
        query = _filter(parent, tags) | _flags(all=all)
        return (yield from self._change("POST", "/jobs/pause", query, why or None))

    @call
    def resume(
        self,
        *,
        parent: str | None = None,
        tags: Mapping[str, str] | None = None,
        all: bool = False,
    ) -> Steps[Changed]:
        """Resume such jobs."""
        query = _filter(parent, tags) | _flags(all=all)
        return (yield from self._change("POST", "/jobs/resume", query))

    @call
    def delete(
        self,
        *,
        parent: str | None = None,
        tags: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> Steps[Changed]:
        """Delete such jobs; with `force` also those that a manifest manages."""
        query = _filter(parent, tags) | _flags(force=force)
        return (yield from self._change("DELETE", "/jobs", query))

    @call
    def hand_over(
        self,
        to: str,
        *,
        job: str | None = None,
        parent: str | None = None,
        tags: Mapping[str, str] | None = None,
        all: bool = False,
        force: bool = False,
        idempotency_key: str | None = None,
    ) -> Steps[OperationForm]:
        """Hand a job, such jobs or all over to the team `to`, of which you must be an admin, too;
        with `force` also those that a manifest manages."""
        body: dict[str, object] = {"to": to}
        if job is not None:
            body["job_id"] = yield from self._session.job_id(job)
        if parent is not None:
            body["parent"] = parent
        given = {"tags": dict(tags or {}), "all": all, "force": force}
        body |= {name: value for name, value in given.items() if value}
        answer: OperationForm = yield from self._session.once(
            "/jobs/hand-over", body, idempotency_key
        )
        return answer

    def _change(self, method: str, path: str, query: Query, body: object = None) -> Steps[Changed]:
        answers = yield from collected(self._session.changes(method, path, query, body))
        changed = sum(int(answer["changed"]) for answer in answers)
        return {"changed": changed, "managed": sum(int(answer["managed"]) for answer in answers)}


def _filter(parent: str | None, tags: Mapping[str, str] | None) -> dict[str, str | int]:
    # An empty one is the API's to refuse: a script's unset variable must not choose more jobs.
    found: dict[str, str | int] = {} if parent is None else {"parent": parent}
    if tags:
        found["tag"] = ",".join(f"{key}:{value}" for key, value in tags.items())
    return found


def _flags(**flags: bool) -> dict[str, str | int]:
    return {name: "true" for name, is_set in flags.items() if is_set}


class Job(Resource[DriverT]):
    """One job; nothing is read before a method asks for it."""

    def __init__(self, session: Session, driver: DriverT, job: str) -> None:
        super().__init__(session, driver)
        self._id, self._name = split_job(job)

    @call
    def id(self) -> Steps[str]:
        """The job's id; NotFound if there is no job of the name."""
        return (yield from self._known_id())

    @call
    def get(self) -> Steps[JobForm]:
        path = named_job_path(self._name) if self._id is None else job_path(self._id)
        answer: JobForm = yield from self._session.ask("GET", path)
        return answer

    @call
    def change(
        self,
        *,
        revision: int | None = None,
        force: bool = False,
        **settings: Unpack[JobPatch],
    ) -> Steps[JobReport]:
        """Change these settings, and no others; None sets one to its default.

        `revision`: only over this one, else Conflict; `force`: as for `put`.
        """
        path, query = (yield from self._path()), _flags(force=force)
        headers = {"If-Match": "*", **condition(revision)}
        answer: JobReport = yield from self._session.ask(
            "PATCH", path, query=query, body=settings, headers=headers
        )
        return answer

    @call
    def delete(self, *, revision: int | None = None, force: bool = False) -> Steps[None]:
        path = named_job_path(self._name) if self._id is None else job_path(self._id)
        query, headers = _flags(force=force), condition(revision)
        yield from self._session.send("DELETE", path, query=query, headers=headers)

    @call
    def pause(self, **why: Unpack[PauseBody]) -> Steps[JobForm]:
        path = yield from self._path("/pause")
        answer: JobForm = yield from self._session.ask("POST", path, body=why or None)
        return answer

    @call
    def resume(self) -> Steps[JobForm]:
        answer: JobForm = yield from self._session.ask("POST", (yield from self._path("/resume")))
        return answer

    @call
    def run(
        self, *, idempotency_key: str | None = None, **asked: Unpack[RunBody]
    ) -> Steps[RunDetail]:
        """Run it now, whatever its schedule is, with its payload or another one; the run, which
        starts in a moment."""
        path = yield from self._path("/run")
        answer: RunDetail = yield from self._session.once(path, asked or None, idempotency_key)
        return answer

    @stream
    def runs(
        self,
        *,
        status: Collection[RunStatus] = (),
        from_at: str | datetime | None = None,
        to: str | datetime | None = None,
        limit: int | None = None,
        follow: bool = False,
        interval_seconds: float = 2.0,
    ) -> Stream[RunForm]:
        """The history, newest first: all of it, or `limit` runs; of these the ones in a `status`.

        With `follow` it never ends: the newest 20 runs or `limit`, oldest first, then each run that
        is new, or whose status or attempt has changed; none with a fire time before those.
        """
        path, span = (yield from self._path("/runs")), span_of(from_at, to)
        if follow and span:
            raise InvalidFieldError("follow", "shows what comes: give no from_at and no to")
        runs = self._session.pages(path, limit, span)
        if follow:
            runs = _followed(Follower(self._session, path, limit or NEWEST), interval_seconds)
        yield from only(runs, lambda run: not status or run["status"] in status)

    @call
    def missed(
        self,
        *,
        from_at: str | datetime | None = None,
        to: str | datetime | None = None,
        limit: int = 100,
    ) -> Steps[MissedList]:
        """The occurrences without a success, since the last pause or of the last 24 hours."""
        path, query = (yield from self._path("/missed")), span_of(from_at, to)
        answer: MissedList = yield from self._session.ask(
            "GET", path, query={**query, "limit": limit}
        )
        return answer

    @call
    def backfill(
        self,
        *,
        from_at: str | datetime,
        to: str | datetime,
        only: Only = "all",
        per_minute: int | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[OperationForm]:
        """Run the occurrences of a span, all or the `missed`, as an operation."""
        path = yield from self._path("/backfill")
        body = {**span_of(from_at, to), "only": only}
        body |= {} if per_minute is None else {"per_minute": per_minute}
        answer: OperationForm = yield from self._session.once(path, body, idempotency_key)
        return answer

    @call
    def upcoming(self, *, count: int = 10) -> Steps[list[OccurrenceForm]]:
        """The next occurrences."""
        path = yield from self._path("/upcoming")
        answer = yield from self._session.ask("GET", path, query={"count": count})
        items: list[OccurrenceForm] = answer["items"]
        return items

    def _path(self, suffix: str = "") -> Steps[str]:
        return job_path((yield from self._known_id()), suffix)

    def _known_id(self) -> Steps[str]:
        if self._id is None:
            # It stays: an id follows from owner and name.
            self._id = yield from self._session.job_id(f"name:{self._name}")
        return self._id


def _followed(follower: Follower, interval_seconds: float) -> Stream[RunForm]:
    while True:
        yield Page((yield from follower.changes()))
        yield Wait(interval_seconds)
