"""The window of a notification: from its first message until a period in which there was nothing to
tell (docs/notifications.md#how-few-they-are)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.domain.notifying.notification import (
    FAILURES,
    Notification,
    Told,
    delivery_key,
    notification_id,
)
from carillon.domain.run import RunKey, RunKind, cut

MOST_FAILING = 50
"""Jobs whose recovery a window watches."""
MOST_NOTED = 20
"""Events that a window keeps since no run tells of them."""
LONGEST_PERIOD = timedelta(hours=6)
"""While the same jobs fail, and nothing else happens, periods double up to this."""
FORGOTTEN_AFTER = timedelta(days=9)
"""A job that has neither failed nor run since is watched no longer. A step that follows the next
run of a weekly job comes up to a day later."""
OVERDUE = timedelta(hours=1)
"""A window that has not ended so long after its time has lost its message."""
BESIDE = timedelta(minutes=1)
"""Events so long before the first may have found its window open already."""
RECORDING = timedelta(seconds=10)
"""A record of the feed is stamped at most so long before it can be read."""
LIFETIME = timedelta(days=30)
FIRST_STEP = 1
_ERROR_BYTES = 200


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that happened to a job at `at`; `run_id` is "" where no run tells of it."""

    type: Told
    at: datetime
    job_id: str
    job_name: str
    run_id: str = ""
    error_kind: str = ""
    error_message: str = ""

    @property
    def event_id(self) -> str:
        """The same for the event and for the record of its run."""
        what = self.run_id or f"{self.job_id}/{self.at.timestamp():.3f}"
        return f"{self.type.value}/{what}"

    @property
    def of_callback(self) -> bool:
        """True for a callback that has failed: the job's own run may have been good."""
        return f"_{RunKind.CALLBACK}-" in self.run_id

    @property
    def what(self) -> tuple[str, bool]:
        """The job, or its callbacks."""
        return self.job_id, self.of_callback

    @property
    def short(self) -> "Noted":
        """With an error that leaves a window's row small."""
        return replace(self, error_message=cut(self.error_message, _ERROR_BYTES))


@dataclass(frozen=True, slots=True)
class Failing:
    """A job that has failed, or a callback of it, last at `since`, and not succeeded after that."""

    job_id: str
    job_name: str
    since: datetime
    of_callback: bool = False

    @property
    def what(self) -> tuple[str, bool]:
        return self.job_id, self.of_callback


@dataclass(frozen=True, slots=True)
class Window:
    """A window row, whole; a change is a new value with the next revision.

    It was opened by the event `first`, at `opened_at`, a whole second. What happens up to `until`
    is told by its step `step`, which reads what was recorded after `told_until`. Before
    `quiet_until` no message of another kind is sent. `goes_on`: something has happened after
    `until`, which a further step is to tell; `period_seconds` is 0 where that is news, for which it
    comes as soon as it may. `noted` are events that no run tells of. A window that
    is not open any more still says up to when everything was told. `last_delivery` is the run id of
    the message that was last recorded, which may have yet to be sent. `is_ordered`: its first
    message and its end have been sent for; until that is on record each event sends for them.
    """

    owner: str
    name: str
    opened_at: datetime
    until: datetime
    last_delivery: str
    told_until: datetime
    quiet_until: datetime
    first: Noted
    expires_at: datetime
    revision: int = 1
    step: int = FIRST_STEP
    period_seconds: int = 900
    failing: tuple[Failing, ...] = ()
    noted: tuple[Noted, ...] = ()
    goes_on: bool = False
    is_open: bool = True
    is_ordered: bool = True

    def is_of(self, notification: Notification) -> bool:
        """False for one that was opened for a notification of the same name, which had just been
        deleted."""
        return self.opened_at >= notification.created_at.replace(microsecond=0)

    @property
    def is_first(self) -> bool:
        """True while nothing but its first message was told."""
        return self.step == FIRST_STEP

    @property
    def untold(self) -> tuple[Noted, ...]:
        """The events that no run tells of and that may have yet to be told: the first, too, unless
        its message was sent for."""
        is_first_told = not self.is_first or self.is_ordered or self.first.run_id
        return self.noted if is_first_told else (self.first, *self.noted)[:MOST_NOTED]

    @property
    def has_all_noted(self) -> bool:
        """False once it keeps no more events that no run tells of: there may have been others."""
        return len(self.noted) < MOST_NOTED

    def is_owed(self, now: datetime) -> bool:
        """True if what the window has decided is to be sent for, again perhaps."""
        return not self.is_ordered or now > self.until + OVERDUE

    def ordered(self) -> "Window":
        """The window once all that it has decided was sent for."""
        return replace(self, is_ordered=True, revision=self.revision + 1)

    def unread(self, now: datetime) -> tuple[datetime, datetime]:
        """The span of the feed that the present step reads, by recording: both ends, in whole
        seconds. Records of the last moments may have yet to come."""
        until = now.replace(microsecond=0) - RECORDING
        return self.told_until.replace(microsecond=0) + timedelta(seconds=1), until

    def delivery_at(self, now: datetime) -> RunKey:
        """The run for the message that its present step tells, named by the revision that is to
        record it: another one may have more to tell."""
        at = now.replace(microsecond=0)
        return delivery_key(self.owner, self.name, at, self.revision + 1)

    def end_message(self, settle: timedelta) -> Message:
        """The order to do the present step, once what happened until then is on record."""
        key = RunKey(
            self.owner,
            notification_id(self.owner, self.name),
            RunKind.WINDOW,
            self.opened_at,
            f"end-{self.name}",
        )
        due_at = (self.until + settle).replace(microsecond=0)
        return Message(key, "", 0, Lane.NORMAL, due_at, attempt=self.step)


def after_event(
    window: Window | None, event: Noted, notification: Notification, now: datetime
) -> Window | None:
    """The window as an event leaves it, to be put over the one that was read; None where it is told
    by the window as it is. One that has ended unordered gives way to a new one."""
    event = event.short
    if window is None or not window.is_open:
        return _opened(window, event, notification, now)
    if window.is_first and window.first.event_id == event.event_id:
        return None
    if not window.is_ordered and now >= window.until:
        return _opened(window, event, notification, now)
    is_news = not event.run_id or event.what not in {each.what for each in window.failing}
    if window.quiet_until <= now < window.until and is_news:
        return _opened(window, event, notification, now)
    return _with(window, event, now, is_news=is_news)


def _opened(
    before: Window | None, event: Noted, notification: Notification, now: datetime
) -> Window:
    """A new window; it goes on where the one before has stopped telling."""
    opened_at = now.replace(microsecond=0)
    until = opened_at + notification.period
    revision = 1 if before is None else before.revision + 1
    is_open = before is not None and before.is_open
    told_until = notification.created_at if before is None else before.told_until
    if not is_open:
        told_until = max(told_until, min(event.at, now) - BESIDE)
    failing, noted = (before.failing, before.untold) if before is not None and is_open else ((), ())
    return Window(
        owner=notification.owner,
        name=notification.name,
        opened_at=opened_at,
        until=until,
        last_delivery=notification.delivery(opened_at, revision).run_id,
        told_until=told_until,
        quiet_until=until,
        first=event,
        expires_at=until + LIFETIME,
        revision=revision,
        period_seconds=notification.at_most_every,
        failing=_failing_with(failing, [event]),
        noted=noted,
        is_ordered=False,
    )


def _with(window: Window, event: Noted, now: datetime, *, is_news: bool) -> Window | None:
    """Only what the end would not see by itself is written: what no run tells of, that there was
    something after `until`, and that it, or the next one, is to come earlier, since it has news."""
    is_late, until = now >= window.until, window.until
    if is_news and now < window.quiet_until:
        until = min(until, window.quiet_until)
    is_new = not event.run_id and event.event_id not in {each.event_id for each in window.noted}
    noted = (*window.noted, event) if is_new and len(window.noted) < MOST_NOTED else window.noted
    after = replace(
        window,
        noted=noted,
        goes_on=window.goes_on or is_late,
        until=until,
        period_seconds=0 if is_late and is_news else window.period_seconds,
    )
    if after == window:
        return None
    is_ordered = window.is_ordered and until == window.until
    return replace(after, is_ordered=is_ordered, revision=window.revision + 1)


def events_to_tell(window: Window, recorded: Sequence[Noted]) -> tuple[Noted, ...]:
    """The recorded events, and those that the window has noted, but for the first, which was told
    when the window was opened; in the order of time."""
    by_id = {each.event_id: each for each in (*recorded, *window.noted)}
    by_id.pop(window.first.event_id, None)
    return tuple(sorted(by_id.values(), key=lambda each: (each.at, each.event_id)))


def watched(window: Window, events: Sequence[Noted], now: datetime) -> tuple[Failing, ...]:
    """The jobs whose last runs the end is to read."""
    since = now - FORGOTTEN_AFTER
    return tuple(x for x in _failing_with(window.failing, events) if x.since > since)


def after_end(
    window: Window,
    notification: Notification,
    events: Sequence[Noted],
    failing: Sequence[Failing],
    recovered: Collection[Failing],
    now: datetime,
    delivery: RunKey | None,
) -> Window:
    """The window after its step, at which `failing` were watched, and those have `recovered`;
    `delivery` is the run of its message, None where it has nothing to tell.

    It is closed when nothing was told, nothing happened since, and no job fails.
    """
    now = now.replace(microsecond=0)
    still = tuple(each for each in failing if each not in recovered)
    known = {each.what for each in window.failing}
    is_news = any(each.what not in known for each in events)
    period = timedelta(seconds=window.period_seconds)
    period = notification.period if is_news else max(notification.period, 2 * period)
    period = min(period, max(LONGEST_PERIOD, notification.period))
    until = now + period
    if delivery is not None:
        quiet_until = now + notification.period
        window = replace(window, last_delivery=delivery.run_id, quiet_until=quiet_until)
    return replace(
        window,
        revision=window.revision + 1,
        step=window.step + 1,
        told_until=window.unread(now)[1],
        until=until,
        period_seconds=int(period.total_seconds()),
        failing=still,
        noted=(),
        goes_on=False,
        is_open=bool(delivery or window.goes_on or still),
        is_ordered=True,
        expires_at=until + LIFETIME,
    )


def _failing_with(failing: Sequence[Failing], events: Sequence[Noted]) -> tuple[Failing, ...]:
    found = {each.what: each for each in failing}
    for event in events:
        if event.type in FAILURES and (event.what in found or len(found) < MOST_FAILING):
            found[event.what] = Failing(
                event.job_id, event.job_name, event.at, of_callback=event.of_callback
            )
    return tuple(found.values())
