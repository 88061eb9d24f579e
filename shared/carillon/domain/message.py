"""The body of a queue message: a versioned list of occurrences to run, one at present."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from carillon.clock import id_created_at
from carillon.domain.calendar import CalendarUse
from carillon.domain.job import Job, Lane
from carillon.domain.policies import CatchUp, Rate
from carillon.domain.run import RunKey, RunKind
from carillon.errors import MalformedMessageError, reason_of
from carillon.schedules import CalendarRule, DstRule, Schedule, parse_schedule
from carillon.schedules.base import LAST_SECOND

VERSION = 1
_SLOT_KEY = re.compile(r"[hdm][0-9]{1,9}", re.ASCII)
LONGEST_DELAY_SECONDS = 900
"""The longest delay of one message; SQS sets it."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The occurrences that an outage left out: those of `schedule` after `since`, up to a message's
    own, which represents them by the policy `catch_up`. A message that represents only itself is
    left out, too: SKIP, whatever its job's policy.

    Schedule and calendar are copied, since the job may have others by the time it is read. The
    schedule is the nominal one, without the calendar.
    """

    since: datetime
    catch_up: CatchUp
    schedule: Schedule
    calendar: CalendarUse | None = None


@dataclass(frozen=True, slots=True)
class RateSlot:
    """A start that is granted for the instant `at`, under `rate`, in line `line_id` of its gate.

    `asked`: how many slots the run has asked for, this one included; those before came too late.
    """

    at: datetime
    rate: Rate
    line_id: str
    asked: int = 1


@dataclass(frozen=True, slots=True)
class Message:
    """The order to handle one occurrence (or manual run), under one generation, as one attempt.

    `due_at` is when this attempt may start: the fire time and the job's offset in its window, or a
    retry's own instant. `after_finish`: the end of this run makes the job's next occurrence.
    `moved_from` is the nominal time of an occurrence that the executor deferred to the key's, since
    its day is closed. `wait_until`: a policy holds it back until then, in the `waits`-th wait of
    its attempt; `rate_slot`, `owner_slot`: the start that its job's rate, or the limit of its
    owner, has granted. `in_time`: None but for what a tick catches up on; there whether it was
    within its job's grace when the tick that had been away came back, however long the pace of
    catching up holds it back since. `is_second`: a tick that died may have sent the occurrence in a
    chunk before. `returns` counts how often its lane's dead-letter queue has sent it back.
    `slot_key` names the wheel slot it was read in ("" when no tick sent it), so that a stale entry
    can be removed by its exact key.

    Two kinds are no runs. WATCH: see whether the occurrence at `key.fire_at` has succeeded.
    OPERATION: do step `attempt` of the operation that `key.job_id` names.
    """

    key: RunKey
    generation_id: str
    segment: int
    lane: Lane
    due_at: datetime
    attempt: int = 1
    slot_key: str = ""
    missed: Missed | None = None
    after_finish: bool = False
    moved_from: datetime | None = None
    wait_until: datetime | None = None
    waits: int = 0
    rate_slot: RateSlot | None = None
    owner_slot: RateSlot | None = None
    in_time: bool | None = None
    is_second: bool = False
    returns: int = 0
    store_waits: int = 0
    unreadable_since: datetime | None = None

    @classmethod
    def of(cls, job: Job, key: RunKey, due_at: datetime, **members: Any) -> "Message":
        """The message for a run of a job as it is now."""
        return cls(key, job.generation.generation_id, job.segment, job.lane, due_at, **members)

    @property
    def owners(self) -> tuple[str, ...]:
        """Of its one occurrence; a chunk has more."""
        return (self.key.owner,)

    @property
    def starts_at(self) -> datetime:
        """The instant before which it must not be handled."""
        return self.due_at if self.wait_until is None else max(self.due_at, self.wait_until)

    @property
    def nominal_at(self) -> datetime:
        """The nominal time of the occurrence: what generations cover."""
        return self.key.fire_at if self.moved_from is None else self.moved_from

    def delay_seconds(self, now: datetime) -> float:
        """Seconds until it may start, as far as a queue can delay; in whole ones, as a queue takes
        them, see `delaying.whole_delay`: the executor waits out the rest."""
        return delay_until(self.starts_at, now)

    def as_dict(self) -> dict[str, Any]:
        key = self.key
        form: dict[str, Any] = {
            "owner": key.owner,
            "job_id": key.job_id,
            "kind": key.kind.value,
            "fire_at": int(key.fire_at.timestamp()),
            "generation": self.generation_id,
            "segment": self.segment,
            "lane": self.lane.value,
            "due_at": _moment_form(self.due_at),
            "attempt": self.attempt,
        }
        if key.request_id:
            form["request_id"] = key.request_id
        if key.redrive:
            form["redrive"] = key.redrive
        if self.slot_key:
            form["slot"] = self.slot_key
        if self.after_finish:
            form["after_finish"] = True
        if self.moved_from is not None:
            form["moved_from"] = int(self.moved_from.timestamp())
        if self.wait_until is not None:
            form["wait_until"] = _moment_form(self.wait_until)
        if self.waits:
            form["waits"] = self.waits
        if self.rate_slot is not None:
            form["rate_slot"] = _slot_form(self.rate_slot)
        if self.owner_slot is not None:
            form["owner_slot"] = _slot_form(self.owner_slot)
        if self.in_time is not None:
            form["in_time"] = self.in_time
        if self.is_second:
            form["second"] = True
        if self.returns:
            form["returns"] = self.returns
        if self.store_waits:
            form["store_waits"] = self.store_waits
        if self.unreadable_since is not None:
            form["unreadable_since"] = int(self.unreadable_since.timestamp())
        if self.missed is not None:
            form["missed"] = _missed_form(self.missed)
        return form

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> "Message":
        """Raises some exception for a form that `as_dict` did not make."""
        missed, moved_from = form.get("missed"), form.get("moved_from")
        wait_until, in_time = form.get("wait_until"), form.get("in_time")
        unreadable_since = form.get("unreadable_since")
        return cls(
            key=RunKey(
                owner=str(form["owner"]),
                job_id=str(form["job_id"]),
                kind=RunKind(form["kind"]),
                fire_at=instant_of(form["fire_at"]),
                request_id=str(form.get("request_id", "")),
                redrive=int(form.get("redrive", 0)),
            ),
            generation_id=str(form["generation"]),
            segment=int(form["segment"]),
            lane=Lane(form["lane"]),
            due_at=_moment(form["due_at"]),
            attempt=int(form["attempt"]),
            slot_key=str(form.get("slot", "")),
            missed=None if missed is None else _missed(missed),
            after_finish=bool(form.get("after_finish", False)),
            moved_from=None if moved_from is None else instant_of(moved_from),
            wait_until=None if wait_until is None else _moment(wait_until),
            waits=int(form.get("waits", 0)),
            rate_slot=_slot(form.get("rate_slot")),
            owner_slot=_slot(form.get("owner_slot")),
            in_time=None if in_time is None else bool(in_time),
            is_second=bool(form.get("second", False)),
            returns=int(form.get("returns", 0)),
            store_waits=int(form.get("store_waits", 0)),
            unreadable_since=None if unreadable_since is None else instant_of(unreadable_since),
        )


def delay_until(instant: datetime, now: datetime) -> float:
    """Seconds from `now` to an instant, as far as a queue can delay."""
    return max(0.0, min(LONGEST_DELAY_SECONDS, (instant - now).total_seconds()))


def encode(message: Message) -> str:
    """The queue body of a message."""
    body = {"v": VERSION, "runs": [message.as_dict()]}
    return json.dumps(body, separators=(",", ":"))


def decode(body: str) -> Message:
    """Read a queue body; raises MalformedMessageError."""
    try:
        form = json.loads(body)
        if form["v"] != VERSION or len(form["runs"]) != 1:
            raise MalformedMessageError(f"version {form['v']} with {len(form['runs'])} runs")
        return _checked(Message.from_dict(form["runs"][0]))
    except MalformedMessageError:
        raise
    except Exception as error:  # whatever a body makes of the parsers, nobody can read it
        raise MalformedMessageError(reason_of(error)) from error


def _checked(message: Message) -> Message:
    """The message; raises some exception for one that reads well, and nobody could handle."""
    key = message.key
    if message.generation_id:
        id_created_at(message.generation_id)
    if message.slot_key and not _SLOT_KEY.fullmatch(message.slot_key):
        raise ValueError(f"{message.slot_key!r} is no slot")
    for text in (key.owner, key.job_id, key.request_id):
        text.encode()  # a lone surrogate can be sent, but in no row
    if key.kind is RunKind.AFTER:
        _ = key.predecessor
    return message


def came_back(body: str) -> bool:
    """True if a body has been in the dead-letter queue. Decided without parsing it, which may be
    what kills. No text of an owner can look like this, since its quotes are escaped."""
    return '"returns":' in body


def _slot_form(slot: RateSlot) -> list[Any]:
    rate = slot.rate
    at = int(slot.at.timestamp())
    return [at, rate.limit, rate.per, rate.key, slot.line_id, slot.asked]


def _slot(form: list[Any] | None) -> RateSlot | None:
    if form is None:
        return None
    at, limit, per_seconds, key, line_id, asked = form
    rate = Rate(int(limit), int(per_seconds), str(key))
    return RateSlot(instant_of(at), rate, str(line_id), int(asked))


def _missed_form(missed: Missed) -> dict[str, Any]:
    schedule = missed.schedule
    form: dict[str, Any] = {
        "since": int(missed.since.timestamp()),
        "catch_up": missed.catch_up.value,
        "schedule": schedule.text,
        "timezone": schedule.timezone,
    }
    if schedule.start_at is not None:
        form["start_at"] = int(schedule.start_at.timestamp())
    if schedule.end_at is not None:
        form["end_at"] = int(schedule.end_at.timestamp())
    if schedule.dst.text:
        form["dst"] = schedule.dst.text
    if missed.calendar is not None:
        form["calendar"] = {"name": missed.calendar.name, "rule": missed.calendar.rule.value}
    return form


def _missed(form: dict[str, Any]) -> Missed:
    start_at, end_at, calendar = form.get("start_at"), form.get("end_at"), form.get("calendar")
    schedule = parse_schedule(
        str(form["schedule"]),
        str(form["timezone"]),
        None if start_at is None else instant_of(start_at),
        None if end_at is None else instant_of(end_at),
        DstRule.from_text(str(form.get("dst", ""))),
    )
    return Missed(
        since=instant_of(form["since"]),
        catch_up=CatchUp(form["catch_up"]),
        schedule=schedule,
        calendar=None if calendar is None else _calendar_use(calendar),
    )


def _calendar_use(form: dict[str, Any]) -> CalendarUse:
    return CalendarUse(str(form["name"]), CalendarRule(form["rule"]))


def _moment_form(moment: datetime) -> float:
    """Epoch seconds, to the millisecond: whole where they can be."""
    seconds = round(moment.timestamp(), 3)
    return int(seconds) if seconds.is_integer() else seconds


def _moment(epoch_seconds: float) -> datetime:
    whole = instant_of(int(epoch_seconds))
    milliseconds = round((float(epoch_seconds) - int(epoch_seconds)) * 1000)
    return whole + timedelta(milliseconds=milliseconds)


def instant_of(epoch_seconds: int) -> datetime:
    """The instant in UTC; raises ValueError for one in which no job lives, and for no number."""
    if not 0 <= int(epoch_seconds) <= LAST_SECOND:
        raise ValueError(f"{epoch_seconds} lies outside of the time that jobs live in")
    return datetime.fromtimestamp(int(epoch_seconds), UTC)
