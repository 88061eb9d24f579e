"""The mend of a control item that cannot be read: what is kept of it, and what takes the rest's
place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from carillon.domain.wheel.entry import DATED_ENTRY_LIFETIME, minute_of
from carillon.domain.wheel.segment import MOST_LOOK_AHEAD, Backlog, Control

LONGEST_LEASE = timedelta(minutes=5)
"""A lease that ends later than this from now is none that a tick has taken."""
_RULES_BEFORE = timedelta(days=1)
"""After a day no entry is one of older rules of its time zone."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What can be read of a stored control item.

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


_MAY_BE_FORGOTTEN = ("cursor", "backlog_cursor", "paced_until", "shares", "idle")
"""Without them a minute is sent again, or a pace begins anew."""
