"""The end of a step of a window: what was recorded is told, once, and what works again."""

from contextlib import suppress
from datetime import datetime, timedelta

from carillon.domain.message import Message
from carillon.domain.notifying.notice import digest_notice
from carillon.domain.notifying.notification import Notification, Told, notification_of
from carillon.domain.notifying.window import (
    Failing,
    Window,
    after_end,
    events_to_tell,
    watched,
)
from carillon.domain.run import DEAD_LETTER, RunKey, RunKind, RunStatus
from carillon.errors import UnreadableRowError
from carillon.executor.batch import Handled, Report, defer, defer_early
from carillon.executor.ports import ExecutorPorts
from carillon.services.deviations import Deviations

_ROUNDS = 8
_RUNS_READ = (5, 200)
"""Of a job that fails: the newest that counts decides whether it works again. More are read where
none of the first does: while a run lasts, others are skipped."""
_LONGEST_READ = timedelta(seconds=20)
"""Of the feed, and no more than half of what its process has left: a step that does not come to its
end is begun anew for ever."""
_CHECK_AGAIN = timedelta(minutes=1)
"""After the time of a step its message has come, unless nobody has sent it."""
_DECISIVE = frozenset({RunStatus.SUCCEEDED, RunStatus.MISSED, *DEAD_LETTER})


class WindowEnd:
    """Handles messages of kind WINDOW; raises StoreUnavailableError, QueueUnavailableError.

    1. read what was recorded; 2. put the message on record; 3. put the window's next step, which
    names that record: the commit; 4. order the delivery and the next end. After a crash before 3
    all is done anew, after one behind it 4 is repeated: nothing is sent before it is decided.
    """

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._orders = ports.window_orders
        self._deviations = Deviations(ports.feed, ports.history)

    def end(self, message: Message, ends_at: datetime) -> Report:
        """Do the step that the message orders, once it is due; the process may be stopped at
        `ends_at`."""
        deferred = defer_early(self._ports, message)
        if deferred is not None:
            return deferred
        owner, name = message.key.owner, notification_of(message.key)
        for _ in range(_ROUNDS):
            notification = self._ports.notifications.get(owner, name)
            window = self._ports.windows.get(owner, name)
            if notification is None or window is None or not window.is_of(notification):
                return Report(Handled.DROPPED, message, reason="there is no such notification")
            is_present = window.is_open and window.opened_at == message.key.fire_at
            if not is_present or message.attempt != window.step:
                return self._repeated(message, window, is_present=is_present)
            if self._tell(window, notification, ends_at):
                return Report(Handled.CHECKED, message, reason="the window's step is done")
        return defer(self._ports, message, self._ports.clock.now(), "the window changed each time")

    def _repeated(self, message: Message, window: Window, *, is_present: bool) -> Report:
        """Send again what the executor that did the step may have died before: its message, and the
        order of the next step, but that not before it must have come. A window that was opened over
        this one, and not ordered, is ordered here: it tells what this one had yet to tell."""
        now = self._ports.clock.now()
        is_last = is_present and message.attempt == window.step - 1
        if is_last or not is_present:
            self._send_decided(window)
        if not is_present and window.is_open and window.is_owed(now):
            self._orders.all(window, now)
            self._ports.windows.put(window.ordered(), window.revision)
        if is_last:
            due_at = window.end_message(self._ports.settle).due_at
            if now < due_at + _CHECK_AGAIN:
                return defer(
                    self._ports, message, due_at + _CHECK_AGAIN, "the next step is to come"
                )
            self._orders.end(window, now)
        return Report(Handled.REPEATED, message, reason="the step was done")

    def _send_decided(self, window: Window) -> None:
        """Order the last delivery again, unless it has begun: a row that cannot be read says so,
        too."""
        last = RunKey.from_run_id(window.owner, window.last_delivery)
        with suppress(UnreadableRowError):
            if self._orders.notices.get(last) and self._ports.runs.get(last) is None:
                self._orders.notices.send(last)

    def _tell(self, window: Window, notification: Notification, ends_at: datetime) -> bool:
        """Do the step; False if the window was changed meanwhile."""
        # News may bring this step forward, before the one whose order failed is repeated.
        self._send_decided(window)
        now = self._ports.clock.now()
        read_until = now + min(_LONGEST_READ, (ends_at - now) / 2)
        span = window.unread(now)
        gone = self._deviations.between(
            window.owner,
            *span,
            notification.is_about,
            lambda: self._ports.clock.now() < read_until,
        )
        events = events_to_tell(window, [x for x in gone.events if x.type in notification.on])
        failing = watched(window, events, now)
        recovered = [each for each in failing if self._works(window.owner, each)]
        told = recovered if Told.RUN_RECOVERED in notification.on else []
        link = self._ports.console_url
        is_complete = gone.is_complete and window.has_all_noted
        notice = digest_notice(window.name, events, told, span, link, is_complete=is_complete)
        if notice is not None and not self._orders.notices.record(window.delivery_at(now), notice):
            return False  # another executor is at the step
        delivery = None if notice is None else window.delivery_at(now)
        after = after_end(window, notification, events, failing, recovered, now, delivery)
        if not self._ports.windows.put(after, window.revision):
            return False
        if delivery is not None:
            self._orders.notices.send(delivery)
        if after.is_open:
            self._orders.end(after, now)
        return True

    def _works(self, owner: str, failing: Failing) -> bool:
        """True if the last run that has ended since is a success, of the job or of its callbacks:
        whichever has failed."""
        for count in _RUNS_READ:
            runs = self._ports.history.latest(owner, failing.job_id, count)
            ended = [
                (run.finished_at or run.updated_at, run.status)
                for run in runs
                if run.status in _DECISIVE
                and (run.key.kind is RunKind.CALLBACK) is failing.of_callback
            ]
            if ended:
                break
        at, status = max(ended, default=(failing.since, RunStatus.MISSED))
        return status is RunStatus.SUCCEEDED and at > failing.since
