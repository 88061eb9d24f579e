"""Operations, calendars, notifications, quotas, and who changed what."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Unpack

from carillon.client.paths import (
    calendar_path,
    job_path,
    notification_path,
    operation_path,
    quota_path,
)
from carillon.client.resources.jobs import condition, span_of
from carillon.client.steps import DriverT, Resource, Steps, Stream, call, stream

if TYPE_CHECKING:
    from carillon.client.types.answers import (
        Action,
        CalendarForm,
        NotificationForm,
        OperationForm,
        QuotasForm,
        RecordedChange,
        TestForm,
    )
    from carillon.client.types.requests import CalendarBody, NotificationBody, QuotaBody


class Operations(Resource[DriverT]):
    """Backfills, and what is done to many dead letters."""

    @stream
    def list(self, *, limit: int | None = None) -> Stream[OperationForm]:
        """The newest first."""
        yield from self._session.pages("/operations", limit)

    @call
    def get(self, operation_id: str) -> Steps[OperationForm]:
        answer: OperationForm = yield from self._session.ask("GET", operation_path(operation_id))
        return answer

    @call
    def cancel(self, operation_id: str) -> Steps[OperationForm]:
        """Stop it before its next step; Conflict if it has ended."""
        path = operation_path(operation_id, "/cancel")
        answer: OperationForm = yield from self._session.ask("POST", path)
        return answer

    @call
    def outcomes(self, operation_id: str) -> Steps[dict[str, int]]:
        """The number of a backfill's runs in each status; runs without a row yet are not in it."""
        counts: Counter[str] = Counter()
        path, cursor = operation_path(operation_id, "/outcomes"), None
        while True:
            query = None if cursor is None else {"cursor": cursor}
            answer = yield from self._session.ask("GET", path, query=query)
            counts.update(answer.get("counts", {}))
            cursor = answer.get("next_cursor")
            if cursor is None:
                return dict(counts)


class Changes(Resource[DriverT]):
    """Changes of your jobs, each with the one who made it."""

    @stream
    def list(
        self,
        *,
        job: str | None = None,
        by: str | None = None,
        action: Action | None = None,
        from_at: str | datetime | None = None,
        to: str | datetime | None = None,
        limit: int | None = None,
    ) -> Stream[RecordedChange]:
        """The newest first: all, or those of a job (its name or id), by one of an id or name, of an
        action, made from `from_at` to `to`."""
        query = span_of(from_at, to)
        query |= {name: text for name, text in (("by", by), ("action", action)) if text}
        path = "/changes"
        if job is not None:
            path = job_path((yield from self._session.job_id(job)), path)
        yield from self._session.pages(path, limit, query)


class Quotas(Resource[DriverT]):
    """The limits of what owners may have and take."""

    @call
    def get(self, owner: str | None = None) -> Steps[QuotasForm]:
        """Your limits, and their use; or, for operators, those of `owner`, as `team/billing`."""
        answer: QuotasForm = yield from self._session.ask("GET", quota_path(owner))
        return answer

    @call
    def put(self, owner: str, /, **limits: Unpack[QuotaBody]) -> Steps[QuotasForm]:
        """Replace the limits that an owner has in place of the deployment's, all of them; for
        operators."""
        answer: QuotasForm = yield from self._session.ask("PUT", quota_path(owner), body=limits)
        return answer


class Calendars(Resource[DriverT]):
    """Closed days, for jobs."""

    @stream
    def list(self, *, limit: int | None = None) -> Stream[CalendarForm]:
        """By name."""
        yield from self._session.pages("/calendars", limit)

    @call
    def get(self, name: str) -> Steps[CalendarForm]:
        answer: CalendarForm = yield from self._session.ask("GET", calendar_path(name))
        return answer

    @call
    def put(
        self,
        name: str,
        /,
        *,
        revision: int | None = None,
        only_new: bool = False,
        **days: Unpack[CalendarBody],
    ) -> Steps[CalendarForm]:
        """Create it, or replace it whole.

        `revision`: only over this one; `only_new`: only if there is none; else Conflict.
        """
        answer: CalendarForm = yield from self._session.ask(
            "PUT", calendar_path(name), body=days, headers=condition(revision, only_new)
        )
        return answer

    @call
    def delete(self, name: str) -> Steps[None]:
        """Conflict while a job follows it."""
        yield from self._session.send("DELETE", calendar_path(name))


class Notifications(Resource[DriverT]):
    """Messages about what goes wrong."""

    @stream
    def list(self, *, limit: int | None = None) -> Stream[NotificationForm]:
        """By name, each with its last delivery."""
        yield from self._session.pages("/notifications", limit)

    @call
    def get(self, name: str) -> Steps[NotificationForm]:
        answer: NotificationForm = yield from self._session.ask("GET", notification_path(name))
        return answer

    @call
    def put(
        self,
        name: str,
        /,
        *,
        revision: int | None = None,
        only_new: bool = False,
        **settings: Unpack[NotificationBody],
    ) -> Steps[NotificationForm]:
        """Create it, or replace it whole.

        `revision`: only over this one; `only_new`: only if there is none; else Conflict.
        """
        answer: NotificationForm = yield from self._session.ask(
            "PUT",
            notification_path(name),
            body=settings,
            headers=condition(revision, only_new),
        )
        return answer

    @call
    def delete(self, name: str) -> Steps[None]:
        yield from self._session.send("DELETE", notification_path(name))

    @call
    def test(self, name: str) -> Steps[TestForm]:
        """Send a message that says it is a test."""
        path = notification_path(name, "/test")
        answer: TestForm = yield from self._session.ask("POST", path)
        return answer
