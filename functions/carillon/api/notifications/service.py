"""Operations on notifications, apart from HTTP: put, read, list, delete, test."""

from collections.abc import Sequence
from dataclasses import replace

from carillon.api.http.problems import (
    AlreadyThereError,
    ContendedError,
    MissingError,
    RevisionMismatchError,
)
from carillon.api.http.requests import Precondition
from carillon.api.jobs.service import ATTEMPTS
from carillon.api.jobs.validation import refuse_target
from carillon.api.notifications.models import NotificationBody
from carillon.clock import Clock
from carillon.domain.changes.change import Subject
from carillon.domain.notifying.notice import notice_of_test
from carillon.domain.notifying.notification import (
    AT_MOST_EVERY,
    MOST_NOTIFICATIONS,
    EmailChannel,
    Notification,
    SlackChannel,
    channel_text,
    delivery_key,
    notification_id,
)
from carillon.domain.notifying.window import Window
from carillon.domain.run import Run, RunKey
from carillon.domain.spec.owners import SYSTEM, Author
from carillon.errors import InvalidFieldError
from carillon.services.history import History
from carillon.services.notices import Notices
from carillon.settings import Settings
from carillon.stores.ports import ChangeStore, Page, VersionedRows
from carillon.stores.recording import RecordedRows

KIND = "notification"
TEST_SECONDS = 10
_RUNS_READ = 5
"""Of one fire time: a delivery, and those that deliver it again."""


class NotificationService:
    """The notifications of one owner at a time: no method can name one of another's.

    Methods that name one raise MissingError if the owner has none of that name, `put` apart. All
    raise StoreUnavailableError; they can be repeated then.
    """

    def __init__(
        self,
        notifications: VersionedRows[Notification],
        windows: VersionedRows[Window],
        changes: ChangeStore,
        history: History,
        notices: Notices,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._notifications = notifications
        self._windows = windows
        self._recorded = RecordedRows(notifications, changes)
        self._history = history
        self._notices = notices
        self._clock = clock
        self._settings = settings

    def put(
        self,
        owner: str,
        name: str,
        body: NotificationBody,
        condition: Precondition,
        author: Author = SYSTEM,
    ) -> tuple[Notification, bool]:
        """The notification as `body` has it, and True if there was none before.

        Raises RevisionMismatchError, AlreadyThereError, InvalidFieldError, or ContendedError.
        """
        self._refuse_channel(body)
        for _ in range(ATTEMPTS):
            stored = self._notifications.get(owner, name)
            revision = None if stored is None else stored.revision
            if not condition.holds(revision):
                if condition.must_be_absent and revision is not None:
                    raise AlreadyThereError(KIND, name, revision)
                raise RevisionMismatchError(condition.revision, revision, KIND)
            if stored is None:
                self._refuse_another(owner)
            wanted = self._made(owner, name, body, stored)
            if stored is not None and wanted == replace(
                stored, revision=wanted.revision, updated_at=wanted.updated_at
            ):
                return stored, False
            if self._recorded.put(wanted, stored, author):
                return wanted, stored is None
        raise ContendedError(repr(name), KIND)

    def _made(
        self, owner: str, name: str, body: NotificationBody, stored: Notification | None
    ) -> Notification:
        now = self._clock.now()
        return Notification(
            owner=owner,
            name=name,
            revision=self._recorded.next_revision(stored, owner, Subject.NOTIFICATION, name),
            on=body.on,
            to=channel_text(body.to),
            created_at=now if stored is None else stored.created_at,
            updated_at=now,
            jobs=body.jobs,
            tags=body.tags,
            at_most_every=body.at_most_every or AT_MOST_EVERY,
        )

    def _refuse_channel(self, body: NotificationBody) -> None:
        """A channel that would fail at every message."""
        if isinstance(body.to, EmailChannel) and not self._settings.email_sender:
            raise InvalidFieldError(
                "to.type", "this deployment sends no e-mail: set `email_sender` in the CDK context"
            )
        if not isinstance(body.to, EmailChannel | SlackChannel):
            refuse_target("to", body.to, self._settings)

    def _refuse_another(self, owner: str) -> None:
        if len(self._notifications.list(owner, MOST_NOTIFICATIONS).items) >= MOST_NOTIFICATIONS:
            message = f"would be one more than {MOST_NOTIFICATIONS}, the most that you can have"
            raise InvalidFieldError("name", message)

    def get(self, owner: str, name: str) -> tuple[Notification, Run | None]:
        """The notification, and the run of its last delivery."""
        found = self._notifications.get(owner, name)
        if found is None:
            raise MissingError(KIND, name)
        runs = self._history.latest(owner, notification_id(owner, name), _RUNS_READ)
        return found, _last(found, runs)

    def list(
        self, owner: str, limit: int, cursor: str | None
    ) -> tuple[Page[Notification], dict[str, Run]]:
        """One page, by name, and the last deliveries by name."""
        page = self._notifications.list(owner, limit, cursor)
        by_id = {notification_id(owner, each.name): each for each in page.items}
        latest = self._history.latest_of(owner, by_id, _RUNS_READ)
        last = {by_id[each].name: _last(by_id[each], runs) for each, runs in latest.items()}
        return page, {name: run for name, run in last.items() if run is not None}

    def delete(
        self, owner: str, name: str, revision: int | None = None, author: Author = SYSTEM
    ) -> Notification:
        """The notification, gone, and its window, if it is at `revision` (None: whichever it is
        at); what is on its way is not delivered any more.

        Raises RevisionMismatchError and ContendedError.
        """
        for _ in range(ATTEMPTS):
            found, _ = self.get(owner, name)
            if revision not in (None, found.revision):
                raise RevisionMismatchError(revision, found.revision, KIND)
            window = self._windows.get(owner, name)
            if window is not None and not self._windows.delete(owner, name, window.revision):
                continue
            if self._recorded.delete(found, author, self._clock.now()):
                return found
        raise ContendedError(repr(name), KIND)

    def test(self, owner: str, name: str) -> RunKey:
        """The run that delivers a test, which opens no window: the same for all that are asked for
        in TEST_SECONDS, or tests would be a flood of e-mail. Raises QueueUnavailableError."""
        found, _ = self.get(owner, name)
        now = self._clock.now()
        begin = now.replace(second=now.second - now.second % TEST_SECONDS, microsecond=0)
        key = delivery_key(owner, found.name, begin, "test")
        self._notices.record(key, notice_of_test(name))
        self._notices.send(key)
        return key


def _last(notification: Notification, runs: Sequence[Run]) -> Run | None:
    """The last delivery: a redrive has the fire time of the dead one before it. Those that ended
    before the notification was made were of one of the same name."""
    made_at = notification.created_at.replace(microsecond=0)
    own = [run for run in runs if (run.finished_at or run.updated_at) >= made_at]
    return max(own, key=lambda run: (run.key.fire_at, run.key.redrive), default=None)
