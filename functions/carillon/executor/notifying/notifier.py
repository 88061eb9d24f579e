"""From an event of a run or job to the first message of a window (docs/notifications.md)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from carillon.clock import Clock
from carillon.domain.events import Event
from carillon.domain.notifying.notification import MOST_NOTIFICATIONS, OCCURRING, Notification, Told
from carillon.domain.notifying.window import MOST_NOTED, Noted, Window, after_event
from carillon.domain.run import RunKey, RunKind
from carillon.errors import StoreUnavailableError
from carillon.executor.notifying.orders import WindowOrders
from carillon.stores.ports import VersionedRows

KEPT_FOR = timedelta(seconds=10)
"""An owner's notifications are read this often at most, and only when there is something to
tell."""
_MOST_OWNERS = 1_000
_ROUNDS = MOST_NOTED + 4
"""So many others may note something in the same window meanwhile."""
_TOLD = {each.value: each for each in OCCURRING}


class Notifier:
    """Tells the owner's notifications of an event; usable from several threads.

    `on_error` gets what goes wrong here: no run fails for a message's sake.
    """

    def __init__(
        self,
        notifications: VersionedRows[Notification],
        windows: VersionedRows[Window],
        orders: WindowOrders,
        clock: Clock,
        on_error: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._notifications = notifications
        self._windows = windows
        self._orders = orders
        self._clock = clock
        self._on_error = on_error
        self._known: dict[str, tuple[datetime, tuple[Notification, ...]]] = {}
        self._open: dict[tuple[str, str, datetime], Window] = {}

    def heard(self, owner: str, event: Event) -> None:
        """Tell those whom it may concern. A repeated event is told once, unless its window has
        ended meanwhile. Raises nothing."""
        told = _TOLD.get(event.type.value)
        if told is None or event.data.get("kind") == RunKind.NOTICE.value:
            return
        try:
            notifications = self._of(owner)
        except Exception as error:
            self._on_error(error)
            return
        name, tags = event.data["job_name"], event.data["tags"]
        for each in notifications:
            try:
                if told in each.on and each.is_about(name, tags):
                    self._tell(each, _noted(told, event))
            except Exception as error:  # the owner's others are told all the same
                self._on_error(error)

    def _of(self, owner: str) -> tuple[Notification, ...]:
        now = self._clock.now()
        known = self._known.get(owner)
        if known is None or not now - KEPT_FOR < known[0] <= now:
            if len(self._known) >= _MOST_OWNERS:
                self._known.clear()
            items = self._notifications.list(owner, MOST_NOTIFICATIONS).items
            known = self._known[owner] = (now, items)
        return known[1]

    def _tell(self, notification: Notification, event: Noted) -> None:
        """Put the window first, then send, then put that it was sent: where anything fails or dies
        in between, the next event, or the repetition of this one, sends again."""
        for _ in range(_ROUNDS):
            now = self._clock.now()
            window = self._window(notification, now)
            after = after_event(window, event, notification, now)
            if window is not None and after is not None:
                self._send_decided(window, after)
            if after is not None and not self._put(notification, after, window):
                continue
            current = after or window
            if current is not None and current.is_owed(now):
                self._orders.all(current, self._clock.now())
                self._put(notification, current.ordered(), current)
            return
        raise StoreUnavailableError(f"the window of {notification.name} changed at every step")

    def _window(self, notification: Notification, now: datetime) -> Window | None:
        """The window as it is; one that is quiet changes in nothing that matters here, so that it
        is read once. One from before the notification was made is over."""
        kept = self._open.get(_place(notification))
        if kept is not None and now < min(kept.quiet_until, kept.until):
            return kept
        window = self._windows.get(notification.owner, notification.name)
        if window is not None and not window.is_of(notification):
            window = replace(window, is_open=False)
        self._keep(notification, window)
        return window

    def _put(self, notification: Notification, after: Window, before: Window | None) -> bool:
        """Put the window over the one that was read; where that is not the stored one any more, it
        is to be read again."""
        is_put = self._windows.put(after, None if before is None else before.revision)
        self._keep(notification, after if is_put else None)
        return is_put

    def _send_decided(self, window: Window, after: Window) -> None:
        """Order again the digest that a step has decided and may not have sent, where the window is
        opened anew and so names it no more. A delivery that has begun meets its run. What a first
        message tells is told by the digest of the new window."""
        is_named = after.last_delivery == window.last_delivery
        if is_named or window.is_first or not window.is_open:  # one that closed had sent it
            return
        decided = RunKey.from_run_id(window.owner, window.last_delivery)
        if self._orders.notices.get(decided) is not None:
            self._orders.notices.send(decided)

    def _keep(self, notification: Notification, window: Window | None) -> None:
        """Only one that is ordered: of another each event has something to send."""
        if window is None or not (window.is_open and window.is_ordered):
            self._open.pop(_place(notification), None)
            return
        if len(self._open) >= _MOST_OWNERS:
            self._open.clear()
        self._open[_place(notification)] = window


def _place(notification: Notification) -> tuple[str, str, datetime]:
    return notification.owner, notification.name, notification.created_at


def _noted(told: Told, event: Event) -> Noted:
    data = event.data
    error = data.get("error") or {}
    return Noted(
        type=told,
        at=event.occurred_at,
        job_id=data["job_id"],
        job_name=data["job_name"] or data["job_id"],
        run_id=data.get("run_id", ""),
        error_kind=error.get("kind", ""),
        error_message=error.get("message", ""),
    )
