"""The messages that a tick sends for an entry: a minute's occurrences, and catch-up after an
outage.

Minutes, slots and backlogs count effective times; fire times, generations and what a catch-up
covers are nominal.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.clock import id_created_at
from carillon.domain.calendar import Resolved, resolve, shifts, shifts_back
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message, Missed
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind
from carillon.domain.wheel.entry import YOUNG_ENTRY, Entry, minute_end, minute_of
from carillon.domain.wheel.segment import Backlog
from carillon.schedules import Recurrence, Schedule, SlotKind
from carillon.schedules.base import EPOCH


def messages_of(
    entry: Entry,
    minute: int,
    horizon: int,
    backlogs: Sequence[Backlog],
    resolved: Resolved | None = None,
    rules_since: datetime | None = None,
) -> Iterator[Message]:
    """The messages for an entry that was read in one of the slots of `minute`.

    A standing entry yields the minute's own occurrences; a dated link walks its chain up to the
    horizon; a dated message is sent as it is. Catch-up decides about those occurrences that lie in
    one of the `backlogs` and were never announced. `resolved` is the entry's schedule under its
    calendar; without it, as if every day were open. `rules_since`: see `Entry.chain`.
    """
    if entry.message is not None:
        yield entry.message
        return
    if entry.schedule is None:
        return
    sent = entry.schedule if resolved is None else resolved.sent
    if entry.slot.kind is SlotKind.DATED:
        fire_times: Iterable[datetime] = entry.chain(minute_end(horizon), rules_since)
    else:
        fire_times = _standing_times(entry, sent, minute)
    outages: dict[Backlog, _Outage] = {}
    for fire_at in fire_times:
        message = entry.message_at(fire_at)
        backlog = _backlog_of(message, backlogs)
        if backlog is None:
            yield message
            continue
        if backlog not in outages:
            outages[backlog] = _Outage.of(entry, entry.schedule, backlog, resolved)
        found = outages[backlog].message(message)
        if found is not None:
            yield found


def waits_for_a_start(message: Message, late_until: int) -> bool:
    """True if a message is of a backlog, which ends with minute `late_until`, and starts a run, or
    asks after one. The end of a pause does neither: its job's live occurrences wait for it."""
    return minute_of(message.starts_at) <= late_until and message.key.kind is not RunKind.RESUME


def continues_sequence(
    entry: Entry, job: Job | None, now: datetime, following: datetime | None = None
) -> bool:
    """True if an entry's generation counts, or may yet: the next entry of its sequence is to be
    put.

    `following` is the occurrence of that link: one that the generation still had, and that starts
    later by its window, is sent whatever has become of the job since. A watch looks after those,
    too, unless the job was deleted.
    """
    ended_at, is_deleted = None, job is not None and job.state is JobState.DELETED
    if job is not None and not (entry.is_watch and is_deleted):
        ended_at = job.ended_at(entry.generation_id)
    if ended_at is not None and (entry.is_watch or following is not None):
        return following is None or following <= ended_at
    if job is not None and job.generation.generation_id == entry.generation_id:
        return job.state is JobState.ACTIVE or (entry.is_watch and not is_deleted)
    if job is not None and entry.generation_id < job.generation.generation_id:
        return False
    return now - id_created_at(entry.generation_id) < YOUNG_ENTRY


def _standing_times(entry: Entry, sent: Recurrence, minute: int) -> Iterator[datetime]:
    """The nominal times of the occurrences that are effective in an epoch minute."""
    nominal_minute, into = divmod(minute * 60 - entry.spread_seconds, 60)
    seconds = [nominal_minute * 60 + s for s in sent.seconds_of_minute(nominal_minute) if s >= into]
    if into:
        later = (nominal_minute + 1) * 60
        seconds += [later + s for s in sent.seconds_of_minute(nominal_minute + 1) if s < into]
    instants = (EPOCH + timedelta(seconds=second) for second in seconds)
    return (fire_at for fire_at in instants if fire_at > entry.from_at)


def _backlog_of(message: Message, backlogs: Sequence[Backlog]) -> Backlog | None:
    """The backlog that a message is of, which is late then; None for a live one."""
    if not backlogs:
        return None
    minute = minute_of(message.due_at)
    return next((backlog for backlog in backlogs if minute <= backlog.until), None)


@dataclass(frozen=True, slots=True)
class _Outage:
    """The effect of an outage on one entry; instants are nominal.

    Occurrences after `since` and up to `last` were not sent in time. Those after `in_time` are
    within the job's grace all the same; `stand_in` is the first of these that runs. All of it is
    decided against the backlog's own instants, so that every tick that works on it decides alike.
    """

    entry: Entry
    resolved: Resolved
    since: datetime
    last: datetime
    in_time: datetime
    stand_in: datetime | None

    @classmethod
    def of(
        cls, entry: Entry, schedule: Schedule, backlog: Backlog, resolved: Resolved | None
    ) -> "_Outage":
        resolved = resolved or resolve(schedule, None, None)
        # The occurrence that a check examines decides whether it is needed.
        spread = entry.spread - timedelta(seconds=entry.within_seconds)
        last = minute_end(backlog.until) - spread
        in_time = backlog.taken_up_at - timedelta(seconds=entry.grace_seconds) - spread
        since = max(minute_end(backlog.announced) - spread, entry.from_at)
        within_grace = max(since, in_time)
        return cls(
            entry=entry,
            resolved=resolved,
            since=since,
            last=last,
            in_time=in_time,
            stand_in=resolved.first_to_run(within_grace, last) if entry.grace_seconds else None,
        )

    def message(self, message: Message) -> Message | None:
        """The message for one of its occurrences; None when a later one represents it.

        For a missed-run check, the check of an occurrence: none if a later one represents it.
        """
        fire_at, policy = message.key.fire_at, self.entry.catch_up
        late = replace(message, in_time=fire_at > self.in_time)
        has_policy = policy is not CatchUp.ALL and self.resolved.schedule.is_recurring
        found = self._by_policy(late) if has_policy and fire_at > self.since else late
        return message if found is not None and self.entry.is_watch else found

    def _by_policy(self, message: Message) -> Message | None:
        """The message for an occurrence that was missed.

        The first one within the grace runs, as all that follow, and represents those before. If
        there is none within it, the last one represents the others, by the policy. An occurrence
        that the calendar leaves out represents only itself; so does one that a later day is moved
        to, which is to find a row there. One that is itself moved out of the outage, to a later day
        or an earlier one, or into the grace, has missed nothing.
        """
        fire_at, resolved = message.key.fire_at, self.resolved
        if fire_at == self.stand_in:
            return self._for(message, self.since, self.entry.catch_up)
        if message.in_time:
            is_before = self.stand_in is not None and fire_at < self.stand_in
            return None if is_before and not shifts(self.entry.calendar) else message
        landing = resolved.landing(fire_at)
        if landing is None and shifts_back(self.entry.calendar):
            return self._for(message, fire_at, CatchUp.SKIP)
        if landing is not None and not fire_at <= landing <= self.last:
            return message
        lands_in_time = landing is not None and landing > self.in_time
        message = replace(message, in_time=lands_in_time)
        if self.stand_in is not None or resolved.first_to_run(fire_at, self.last):
            if lands_in_time:
                return message
            moved_to = resolved.is_moved_to(fire_at)
            return self._for(message, fire_at, CatchUp.SKIP) if moved_to else None
        if landing is None:
            return self._for(message, fire_at, CatchUp.SKIP)
        return self._for(message, self.since, self.entry.catch_up)

    def _for(self, message: Message, since: datetime, catch_up: CatchUp) -> Message:
        schedule, calendar = self.resolved.schedule, self.entry.calendar
        return replace(message, missed=Missed(since, catch_up, schedule, calendar))
