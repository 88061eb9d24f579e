"""Messages of notifications, by rows and feed: all is told, nothing else is, and by few of them."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from carillon.audit.evidence import Violation
from carillon.domain.activity.results import Result
from carillon.domain.notifying.notice import Notice
from carillon.domain.notifying.notification import Notification
from carillon.domain.notifying.window import RECORDING, Window
from carillon.domain.run import DEAD_LETTER, Run, RunKind, RunStatus
from tests.simulation.judging.evidence import Evidence, Recorded
from tests.simulation.judging.known import Known

_ENDS = frozenset({RunStatus.SUCCEEDED, *DEAD_LETTER})
_TYPES = {
    RunStatus.DEAD: "run.dead",
    RunStatus.TIMED_OUT: "run.dead",
    RunStatus.MISSED: "run.missed",
}
_KNOWN_AFTER = timedelta(seconds=40)
"""An executor may have read an owner's notifications before they could be read."""
_STEP = timedelta(seconds=90)
"""What the step at the end of a window may take, with the repetitions of a process that dies."""
_HINDERED = timedelta(seconds=10)
"""What comes later sends for what could not be told; clocks differ."""
_BEFORE = timedelta(minutes=5)
"""What could not be told had happened so long before at most: executors die in between."""


def _called_at(known: Known, row: Run) -> datetime:
    deliveries = known.deliveries.get(row.key.run_id, ())
    return deliveries[0].begun_at if deliveries else row.key.fire_at


def delivered(known: Known) -> Iterator[Violation]:
    """Each delivery that has ended did so as a call does (`unfinished` judges the others), and no
    two of a notification come too fast."""
    for notification in known.evidence.notifications:
        rows = _deliveries(known, notification)
        for row in rows:
            if row.is_final and row.status not in _ENDS:
                yield _found(row, f"is {row.status.value}: {row.reason}")
        for before, row in pairwise(rows):
            # One that is told late names when it happened, and is sent then.
            gap = max(
                row.key.fire_at - before.key.fire_at,
                abs(_called_at(known, row) - _called_at(known, before)),
            )
            if gap < notification.period:
                yield _found(row, f"comes {gap} after {before.key.run_id}")


def told(known: Known) -> Iterator[Violation]:
    """Each failure, and each missed run, is told by a first message of its own, or by the digest of
    a time in which it was recorded: by each executor that met it."""
    for notification in known.evidence.notifications:
        notices = [known.evidence.notices[row.key.run_id] for row in _sent(known, notification)]
        told_of = {_named(each) for each in notices}
        told_of |= {
            each.result.key.run_id
            for each in known.evidence.recorded
            if any(_covers(notice, each) for notice in notices)
        }
        for each in known.evidence.recorded:
            key, status = each.result.key, each.result.status.value
            if key.run_id not in told_of and _is_owed(known, notification, each):
                text = f"{key.run_id} is {status}, recorded at {each.at}, not told"
                text += f" by {notification.name} of {notification.owner}"
                yield Violation("notice", key.job_id, text, key.fire_at)


def true(known: Known) -> Iterator[Violation]:
    """Messages tell of what has happened, and of nothing twice in one."""
    for notification in known.evidence.notifications:
        for row in _sent(known, notification):
            for text in _untrue(known, notification, known.evidence.notices[row.key.run_id]):
                yield _found(row, text)


def _deliveries(known: Known, notification: Notification) -> Sequence[Run]:
    rows = known.rows.get(notification.as_job().job_id, ())
    return sorted((row for row in rows if not row.key.redrive), key=lambda row: row.key.fire_at)


def _sent(known: Known, notification: Notification) -> Iterator[Run]:
    return (x for x in _deliveries(known, notification) if x.key.run_id in known.evidence.notices)


def _is_owed(known: Known, notification: Notification, recorded: Recorded) -> bool:
    """Not what a process recorded that stood still: before, and so later than digests wait for, or
    as it put the record, which is stamped with a time that a digest has told of by then."""
    evidence, at, result = known.evidence, recorded.at, recorded.result
    if not _is_about(notification, result) or not result.job_name or at > evidence.until:
        return False
    if result.at < notification.created_at + _KNOWN_AFTER:
        return False
    is_late = at > result.at + evidence.settle or recorded.put_at > at + RECORDING
    if evidence.may_stand_still and is_late:
        return False
    window = evidence.windows.get((notification.owner, notification.name))
    if window is not None and _may_come(evidence, window, at):
        return False
    return not any(-_BEFORE <= result.at - each <= _HINDERED for each in evidence.untold)


def _may_come(evidence: Evidence, window: Window, at: datetime) -> bool:
    """True if what was recorded at that instant may be told once the world has ended: the step at
    the end of the window has yet to come, or its digest to be delivered."""
    if window.is_open and at > window.told_until:
        return window.until + evidence.settle + _STEP > evidence.until
    return window.told_until > evidence.until and window.last_delivery not in evidence.notices


def _is_about(notification: Notification, result: Result) -> bool:
    is_wanted = _TYPES.get(result.status) in notification.on
    is_own = result.key.kind is RunKind.NOTICE or result.key.owner != notification.owner
    return is_wanted and not is_own and notification.is_about(result.job_name, dict(result.tags))


def _named(notice: Notice) -> str | None:
    event = notice.get("event")
    return event["run_id"] if event else None


def _covers(notice: Notice, recorded: Recorded) -> bool:
    result = recorded.result
    if "until" not in notice or not _span(notice)[0] <= recorded.at <= _span(notice)[1]:
        return False
    is_counted = _TYPES[result.status] in notice["counts"] if result.status in _TYPES else False
    return is_counted and any(job["job_id"] == result.key.job_id for job in notice["jobs"])


def _span(notice: Notice) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(notice["from"]), datetime.fromisoformat(notice["until"])


def _untrue(known: Known, notification: Notification, notice: Notice) -> Iterator[str]:
    run_id = _named(notice)
    if run_id is not None:
        row = known.by_run_id.get(run_id)
        if row is None or _TYPES.get(row.status) != notice["event"]["type"]:
            yield f"tells of {run_id}, which is {row and row.status.value}"
    if "until" not in notice:
        return
    for what in ("run.dead", "run.missed"):
        there = {
            each.result.key.run_id
            for each in known.evidence.recorded
            if _covers(notice, each)
            and _is_about(notification, each.result)
            and _TYPES[each.result.status] == what
        }
        if notice["counts"].get(what, 0) > len(there):
            yield f"counts {notice['counts'][what]} {what}, the feed has {len(there)}"
    for each in notice["recovered"]:
        failed_at = datetime.fromisoformat(each["failed_at"])
        rows = known.rows.get(each["job_id"], ())
        ends = [x.finished_at for x in rows if x.status is RunStatus.SUCCEEDED and x.finished_at]
        if not any(end > failed_at for end in ends):
            yield f"says that {each['job_name']} works again, and no run of it has succeeded"


def _found(row: Run, text: str) -> Violation:
    return Violation("notice", row.key.job_id, f"{row.key.run_id} {text}", row.key.fire_at)
