"""A segment's lease, horizon, watermark and backlog, and how a damaged control item is mended."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from carillon.domain.wheel.entry import DATED_ENTRY_LIFETIME, minute_of
from carillon.domain.wheel.pace import Shares, bucket_of

LEASE = timedelta(seconds=45)
"""A tick that dies delays its segment by at most this."""
RENEW_AFTER = LEASE / 3
MOST_LOOK_AHEAD = timedelta(minutes=10)
"""No deployment announces minutes further ahead: the last second of them must lie well within SQS's
longest delay, 900 s."""

CAUGHT_UP = timedelta(minutes=1)
"""From the place of a late message to the row that its executor puts."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Minutes that no tick dispatched in time: (done, until], in epoch minutes.

    Catch-up is decided about those after `announced`, and against `until`; neither ever changes
    where there are any, so that every tick that works on the backlog decides alike. Minutes up to
    `announced` are sent whole: the tick that announced them, or a indexer, may have sent any part
    of them already. `taken_up_at` is when the gap was noticed, or the last part of it.
    """

    announced: int
    done: int
    until: int
    taken_up_at: datetime


@dataclass(frozen=True, slots=True)
class Cursor:
    """The progress in dispatching one minute: the last entry key handled in its slot."""

    minute: int
    slot_key: str
    entry_key: str


@dataclass(frozen=True, slots=True)
class Control:
    """A segment's control item, whole; minutes are epoch minutes.

    `horizon`: the last minute announced for dispatch. `watermark`: the last minute up to which
    every minute is dispatched or in `backlog`. Neither falls. `token` grows at each lease. `cursor`
    is how far the live minute that was begun has got, `backlog_cursor` that of the first backlog:
    live minutes come in between, and a minute of a backlog that began anew after each of them would
    never end, and take places ever later. `shares` has the places of what is late, by owner,
    `throttled_until` is the next one behind them, see `placed`. `idle`: the last visit found
    nothing to send. `tzdata` is the version of the time zone rules that the last tick had, and
    `tzdata_from` the first minute that was dispatched under it (0: no other has been known).
    """

    segment: int
    horizon: int
    watermark: int
    token: int = 0
    lease_owner: str = ""
    lease_until: datetime | None = None
    backlog: tuple[Backlog, ...] = ()
    cursor: Cursor | None = None
    tzdata: str = ""
    tzdata_from: int = 0
    backlog_cursor: Cursor | None = None
    throttled_until: datetime | None = None
    shares: Shares | None = None
    idle: bool = False

    def held_at(self, now: datetime) -> bool:
        return self.lease_until is not None and now < self.lease_until

    def has_live_work(self, now: datetime, look_ahead: int) -> bool:
        """True if a tick at `now` would find any live minute that is not dispatched."""
        return self.watermark < minute_of(now) + look_ahead

    def lag_minutes(self, now: datetime) -> int:
        """Whole minutes by which complete dispatch lags behind the previous minute (0 if not)."""
        return max(0, minute_of(now) - 1 - self.complete_until)

    @property
    def complete_until(self) -> int:
        """The last minute up to which every minute is completely dispatched."""
        return min((backlog.done for backlog in self.backlog), default=self.watermark)

    @property
    def settled_until(self) -> int:
        """The last minute up to which no occurrence is to come, nor to be represented by a later
        one: what an outage left out is settled when its last minute is dispatched."""
        return min([self.watermark, *(min(b.announced, b.done) for b in self.backlog)])

    def dispatched(self, instant: datetime) -> bool:
        """True if all occurrences up to the minute of `instant` are settled."""
        return minute_of(instant) <= self.settled_until

    def may_be_caught_up_on(self, instant: datetime, now: datetime) -> bool:
        """True if what was due at `instant`, or what stands for it, may have yet to be sent, or to
        start in its place in a catch-up's pace."""
        if not self.dispatched(instant):
            return True
        is_paced = self.throttled_until is not None and now < self.throttled_until + CAUGHT_UP
        return is_paced and self.shares is not None and minute_of(instant) <= self.shares.until


def first_control(segment: int, now: datetime) -> Control:
    """The control item that the first use of a segment creates."""
    minute = minute_of(now) - 1
    return Control(segment, horizon=minute, watermark=minute)


def acquired(
    seen: Control, lease_owner: str, now: datetime, look_ahead: int, tzdata: str = ""
) -> Control | None:
    """The control item that takes the lease and announces the minutes to come.

    None while another tick holds the lease. Minutes that are past move to the backlog in the same
    write: whatever dies next, they are in one of the two. `tzdata` is the version of the taker's
    time zone rules.
    """
    if seen.held_at(now) and seen.lease_owner != lease_owner:
        return None
    this_minute = minute_of(now)
    previous = this_minute - 1
    backlog, backlog_cursor = seen.backlog, seen.backlog_cursor
    if seen.watermark < previous:
        announced = min(seen.horizon if seen.token else _unannounced(seen, look_ahead), previous)
        gap = Backlog(announced, done=seen.watermark, until=previous, taken_up_at=now)
        if not backlog:  # the minute that was begun is the first of it
            backlog_cursor = seen.cursor
        backlog = _with_gap(backlog, gap)
    upgraded = seen.tzdata not in ("", tzdata)
    return replace(
        seen,
        horizon=max(seen.horizon, this_minute + look_ahead),
        watermark=max(seen.watermark, previous),
        token=seen.token + 1,
        lease_owner=lease_owner,
        lease_until=now + LEASE,
        backlog=backlog,
        backlog_cursor=backlog_cursor,
        tzdata=tzdata,
        tzdata_from=seen.complete_until + 1 if upgraded else seen.tzdata_from,
    )


def _with_gap(backlog: tuple[Backlog, ...], gap: Backlog) -> tuple[Backlog, ...]:
    """The backlog with another gap. One that was announced whole goes on with one that was, too:
    ticks that fail every minute for days would leave more of them than an item can hold."""
    last = backlog[-1] if backlog else None
    if last and last.announced == last.until == gap.done and gap.announced == gap.until:
        return (*backlog[:-1], replace(gap, done=last.done))
    return (*backlog, gap)


def _unannounced(seen: Control, look_ahead: int) -> int:
    """The minutes that a tick would have announced in the minute in which an indexer made the
    control item: no outage can have begun before."""
    return seen.horizon + 1 + look_ahead


def renewed(held: Control, now: datetime) -> Control:
    return replace(held, lease_until=now + LEASE)


def with_cursor(held: Control, cursor: Cursor | None) -> Control:
    """Record the progress in the live minute."""
    return replace(held, cursor=cursor)


def with_backlog_cursor(held: Control, cursor: Cursor | None) -> Control:
    """Record the progress in the next minute of the first backlog."""
    return replace(held, backlog_cursor=cursor)


def shared_out(
    held: Control, counts: tuple[int, ...], until: int, now: datetime, share: int
) -> Control:
    """Reserve starts for the late messages up to the minute `until`, counted by bucket: owners
    alternate, behind all starts that were reserved before."""
    begins_at = now if held.throttled_until is None else max(now, held.throttled_until)
    shares = Shares(until, begins_at, counts, placed=(0,) * len(counts))
    return replace(held, shares=shares, throttled_until=begins_at + sum(counts) * _spacing(share))


def placed(held: Control, owner: str, now: datetime, share: int) -> tuple[Control, datetime]:
    """The next late message of an owner takes its place, the instant at which it may start.

    Places lie as far apart as `share` of them fill a minute; none is before `now`. What was not
    counted comes behind all that was.
    """
    bucket, spacing = bucket_of(owner), _spacing(share)
    if held.shares is not None and held.throttled_until and held.shares.has_share(bucket):
        shares, place, passed = held.shares.taken(bucket, now, spacing)
        return replace(
            held, shares=shares, throttled_until=held.throttled_until + passed * spacing
        ), place
    place = now if held.throttled_until is None else max(now, held.throttled_until)
    return replace(held, throttled_until=place + spacing), place


def _spacing(share: int) -> timedelta:
    return timedelta(minutes=1) / share


def freed(held: Control, idle: bool = False) -> Control:
    return replace(held, lease_until=None, lease_owner="", idle=idle)


def with_minute_done(held: Control, minute: int) -> Control:
    """A live minute is completely dispatched."""
    return replace(held, watermark=max(held.watermark, minute), cursor=None)


def with_backlog_minute_done(held: Control, minute: int) -> Control:
    """The next minute of the first backlog is completely dispatched."""
    first, *others = held.backlog
    rest = () if minute >= first.until else (replace(first, done=minute),)
    return replace(held, backlog=(*rest, *others), backlog_cursor=None)


LONGEST_LEASE = timedelta(minutes=5)
"""A lease that ends later than this from now is none that a tick has taken."""
_RULES_BEFORE = timedelta(days=1)
"""After a day no entry is one of older rules of its time zone."""


@dataclass(frozen=True, slots=True)
class Remains:
    """The readable part of a stored control item.

    `members` are those of Control that can be read, by name; `unreadable` has the others, each with
    what is wrong with it. `stored` is the item as its store keeps it: only the store looks into it.
    """

    segment: int
    members: Mapping[str, Any]
    unreadable: Mapping[str, str]
    stored: Any = field(repr=False)


def with_lease_checked(remains: Remains, now: datetime) -> Remains:
    """The same, where a lease that no tick can have taken counts as unreadable."""
    lease_until = remains.members.get("lease_until")
    if lease_until is None or lease_until <= now + LONGEST_LEASE:
        return remains
    members = {name: value for name, value in remains.members.items() if name != "lease_until"}
    reason = f"a lease until {lease_until:%Y-%m-%dT%H:%M:%SZ} is longer than any tick's"
    unreadable = {**remains.unreadable, "lease_until": reason}
    return Remains(remains.segment, members, unreadable, remains.stored)


def mended(remains: Remains, now: datetime) -> Control:
    """The control item that is to replace a damaged one; nothing that was due is lost by it.

    What can be read is kept, so horizon and token never fall, and the watermark never rises. For
    the rest: a token above all that were given; a horizon ahead of whatever was announced; and
    where watermark or backlog are lost, the longest outage that there may have been becomes a
    backlog that counts as announced, and so is sent whole: claims absorb what ran.
    """
    kept, lost = dict(remains.members), remains.unreadable
    previous = minute_of(now) - 1
    if "token" in lost:
        kept["token"] = int(now.timestamp() * 1000)
    if "lease_until" in lost or "lease_owner" in lost:
        kept["lease_until"], kept["lease_owner"] = None, ""
    if "watermark" in lost:
        kept["watermark"] = previous
    if "horizon" in lost:
        kept["horizon"] = max(minute_of(now + MOST_LOOK_AHEAD), kept["watermark"])
    known: tuple[Backlog, ...] = kept.get("backlog", ())
    if "watermark" in lost or "backlog" in lost:
        since = max([minute_of(now - DATED_ENTRY_LIFETIME), *(each.until for each in known)])
        until = kept["watermark"]
        gap = Backlog(announced=until, done=since, until=until, taken_up_at=now)
        kept["backlog"] = (*known, gap) if since < until else known
        kept["backlog_cursor"] = kept.get("backlog_cursor") if known else None
    if "tzdata" in lost or "tzdata_from" in lost:
        kept["tzdata"], kept["tzdata_from"] = "", minute_of(now - _RULES_BEFORE)
    for name in lost:
        if name in _MAY_BE_FORGOTTEN:
            kept.pop(name, None)
    return Control(remains.segment, **kept)


_MAY_BE_FORGOTTEN = ("cursor", "backlog_cursor", "throttled_until", "shares", "idle")
"""Without these members a minute is sent again, or the throttling begins anew."""
