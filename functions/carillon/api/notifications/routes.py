"""/notifications: routes."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path

from carillon.api.http.callers import Caller
from carillon.api.http.problems import Kind
from carillon.api.http.requests import IfMatch, IfNoneMatch, etag, precondition
from carillon.api.http.routing import Resource, Routes, route
from carillon.api.jobs.routes import JSON, Cursor, Limit
from carillon.api.notifications.models import (
    NotificationBody,
    NotificationForm,
    NotificationPage,
    TestForm,
)
from carillon.api.notifications.service import NotificationService
from carillon.domain.notifying.notification import NAME_PATTERN, Notification
from carillon.domain.run import Run
from carillon.domain.spec.teams import Role
from carillon.telemetry import Action, Telemetry

NotificationName = Annotated[
    str,
    Path(pattern=NAME_PATTERN, description="Lower-case letters, digits and dash; at most 48."),
]
_ETAG = {"ETag": "The notification's revision, for If-Match."}
_PATH = "/notifications/<name>"


class NotificationRoutes(Resource):
    """Each method answers one route."""

    def __init__(self, routes: Routes, service: NotificationService, telemetry: Telemetry) -> None:
        super().__init__(routes)
        self._service = service
        self._telemetry = telemetry

    @route(
        f"PUT {_PATH}",
        "Create or replace a notification",
        {201: "The new notification", 200: "The notification as it is now"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,  # of a name that no path can carry
        Kind.CONTENDED,
        Kind.REVISION_MISMATCH,
        headers=_ETAG,
        role=Role.ADMIN,
    )
    def put_notification(
        self,
        name: NotificationName,
        body: Annotated[NotificationBody, Body()],
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
    ) -> Response[NotificationForm]:
        """Creates it, or replaces it whole. It counts within ten seconds."""
        caller, condition = self._caller(), precondition(self._app)
        owner = caller.owner
        found, is_new = self._service.put(owner, name, body, condition, caller.author)
        self._report(Action.NOTIFICATION_PUT, found, caller)
        last = None if is_new else self._service.get(owner, name)[1]
        return _answer(found, last, 201 if is_new else 200)

    @route(
        "GET /notifications",
        "List your notifications",
        {200: "A page of notifications"},
        role=Role.VIEWER,
    )
    def list_notifications(
        self, limit: Limit = 20, cursor: Cursor = None
    ) -> Response[NotificationPage]:
        """By name, each with its last delivery; a dead channel shows its error."""
        page, last = self._service.list(self._owner(), limit, cursor)
        form = NotificationPage.of_page(
            page, lambda each: NotificationForm.of(each, last.get(each.name))
        )
        return Response(200, JSON, form)

    @route(
        f"GET {_PATH}",
        "Read a notification",
        {200: "The notification"},
        Kind.NOT_FOUND,
        headers=_ETAG,
        role=Role.VIEWER,
    )
    def get_notification(self, name: NotificationName) -> Response[NotificationForm]:
        """With its last delivery."""
        return _answer(*self._service.get(self._owner(), name))

    @route(
        f"DELETE {_PATH}",
        "Delete a notification",
        {204: "Deleted"},
        Kind.INVALID_HEADER,
        Kind.NOT_FOUND,
        Kind.CONTENDED,
        Kind.REVISION_MISMATCH,
        role=Role.ADMIN,
    )
    def delete_notification(
        self, name: NotificationName, if_match: IfMatch = None
    ) -> Response[None]:
        """No message of it that is on its way is delivered any more."""
        caller, condition = self._caller(), precondition(self._app)
        found = self._service.delete(caller.owner, name, condition.revision, caller.author)
        self._report(Action.NOTIFICATION_DELETED, found, caller)
        return Response(204)

    @route(
        f"POST {_PATH}/test",
        "Send a test message",
        {202: "The run that delivers it, in a moment"},
        Kind.NOT_FOUND,
        role=Role.ADMIN,
    )
    def test_notification(self, name: NotificationName) -> Response[TestForm]:
        """Sends a message that says it is a test, whatever else is on its way. The notification
        shows its delivery as the last one. Tests within ten seconds are one."""
        key = self._service.test(self._owner(), name)
        return Response(202, JSON, TestForm(run_id=key.run_id))

    def _report(self, action: Action, notification: Notification, caller: Caller) -> None:
        self._telemetry.record(
            action,
            by=caller.author,
            owner=notification.owner,
            notification=notification.name,
            revision=notification.revision,
        )


def _answer(
    notification: Notification, last: Run | None, status: int = 200
) -> Response[NotificationForm]:
    headers = {"ETag": etag(notification.revision)}
    return Response(status, JSON, NotificationForm.of(notification, last), headers)
