"""Runs by their ids, and those that failed for good."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from carillon.client.paths import dead_letter_path, run_path
from carillon.client.resources.jobs import span_of
from carillon.client.steps import DriverT, Resource, Steps, Stream, call, stream

if TYPE_CHECKING:
    from carillon.client.types.answers import OperationForm, RunDetail, RunForm
    from carillon.client.types.requests import DeadReason


class Runs(Resource[DriverT]):
    """Runs of any job: a run's id begins with its job's."""

    @call
    def get(self, run_id: str) -> Steps[RunDetail]:
        """The run with each of its attempts."""
        answer: RunDetail = yield from self._session.ask("GET", run_path(run_id))
        return answer

    @call
    def cancel(self, run_id: str) -> Steps[RunDetail]:
        """Cancel a run that waits, or end its call; Conflict for one that has ended otherwise."""
        answer: RunDetail = yield from self._session.ask("POST", run_path(run_id, "/cancel"))
        return answer


class Letters(TypedDict, total=False):
    """A choice of dead letters: of a job (its name or id), for a reason, with a kind of error, of
    fire times from `from_at` to `to`, both included."""

    job: str | None
    reason: DeadReason | None
    error: str | None
    from_at: str | datetime | None
    to: str | datetime | None


class DeadLetters(Resource[DriverT]):
    """Runs that have failed for good, until they are redriven or discarded, or expire."""

    @stream
    def list(self, *, limit: int | None = None, **only: Unpack[Letters]) -> Stream[RunForm]:
        """All, newest first, or a choice of them."""
        query = yield from self._filter(**only)
        yield from self._session.pages("/dead-letters", limit, query)

    @call
    def redrive(self, run_id: str) -> Steps[RunDetail]:
        """Run one again; the new run."""
        path = dead_letter_path(run_id, "/redrive")
        answer: RunDetail = yield from self._session.ask("POST", path)
        return answer

    @call
    def discard(self, run_id: str) -> Steps[None]:
        """Take one off the list."""
        yield from self._session.send("DELETE", dead_letter_path(run_id))

    @call
    def redrive_many(
        self,
        *,
        per_minute: int | None = None,
        idempotency_key: str | None = None,
        **only: Unpack[Letters],
    ) -> Steps[OperationForm]:
        """Run again all that the filter leaves, without one all of them, as an operation."""
        return (yield from self._settle("redrive", only, per_minute, idempotency_key))

    @call
    def discard_many(
        self,
        *,
        per_minute: int | None = None,
        idempotency_key: str | None = None,
        **only: Unpack[Letters],
    ) -> Steps[OperationForm]:
        """Discard all that the filter leaves, without one all of them, as an operation."""
        return (yield from self._settle("discard", only, per_minute, idempotency_key))

    def _settle(
        self, action: str, only: Letters, per_minute: int | None, key: str | None
    ) -> Steps[OperationForm]:
        pace = {} if per_minute is None else {"per_minute": per_minute}
        chosen = yield from self._filter(**only)
        body = (chosen or {"all": True}) | pace
        answer: OperationForm = yield from self._session.once(f"/dead-letters/{action}", body, key)
        return answer

    def _filter(
        self,
        job: str | None = None,
        reason: DeadReason | None = None,
        error: str | None = None,
        from_at: str | datetime | None = None,
        to: str | datetime | None = None,
    ) -> Steps[dict[str, Any]]:
        job_id = None if job is None else (yield from self._session.job_id(job))
        given = {"job_id": job_id, "reason": reason, "error": error}
        only = {name: value for name, value in given.items() if value is not None}
        return only | span_of(from_at, to)
