"""The tick's protocol (docs/architecture.md#the-ticks-protocol).

Announce, query, send, and only then move the watermark.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from carillon.domain.wheel.delaying import Alignment
from carillon.domain.wheel.segment import Control
from carillon.errors import reason_of
from carillon.services.calendar_reader import CalendarReader
from carillon.tick.counting import SegmentOutcome, SegmentReport
from carillon.tick.lease import Lease
from carillon.tick.ports import TickPorts
from carillon.tick.segment_visit import Visit

_T = TypeVar("_T")

BACKLOG_SPAN = timedelta(seconds=45)
"""The time that one visit works on a backlog: less than the look-ahead, so that no live minute
waits."""


class Dispatcher:
    """Dispatches segments for one invocation of the tick, which keeps the calendars it has read."""

    def __init__(self, ports: TickPorts, *, lease_owner: str, look_ahead_minutes: int) -> None:
        self._ports = ports
        self._calendars = CalendarReader(ports.calendars)
        self._lease_owner = lease_owner
        self._look_ahead = look_ahead_minutes

    def tick(
        self, own: Sequence[int], others: Sequence[int], deadline: datetime
    ) -> list[SegmentReport]:
        """Serve a tick's own segments, then of the others what nobody holds, then backlogs.

        Live minutes of every segment come before the backlog of any, so that catching up after an
        outage delays nothing that is due now. Own segments are visited side by side, and none waits
        for another; they alone may wait for the end of a second.
        """
        alignment = Alignment.of_tick(self._ports.clock.now(), deadline, len(own))
        live = self.serve(own, deadline, alignment)
        live += self.take_over(others, deadline)
        return live + self.catch_up(live, deadline)

    def serve(
        self, segments: Sequence[int], deadline: datetime, alignment: Alignment
    ) -> list[SegmentReport]:
        """Dispatch the live minutes of these segments side by side, in this order."""
        return self._visited(
            segments, partial(self.dispatch, deadline=deadline, alignment=alignment)
        )

    def take_over(self, segments: Sequence[int], deadline: datetime) -> list[SegmentReport]:
        """Dispatch the live minutes of those segments that nobody holds, one after the other: a
        tick that took many at once would leave none to one that comes a little later."""
        are_free = self._visited(segments, self._is_free)
        free = [segment for segment, is_free in zip(segments, are_free, strict=True) if is_free]
        return [self.dispatch(segment, deadline) for segment in free]

    def catch_up(self, live: Sequence[SegmentReport], deadline: datetime) -> list[SegmentReport]:
        """Work on the backlogs that were met in live minutes, each once: a segment that was held
        at first, and free a little later, has two reports."""
        behind = list(dict.fromkeys(report.segment for report in live if report.backlog))
        return self._visited(behind, partial(self._dispatch_backlog, deadline=deadline))

    def _visited(self, segments: Sequence[int], visit: Callable[[int], _T]) -> list[_T]:
        return self._ports.side_by_side([partial(visit, segment) for segment in segments])

    def _is_free(self, segment: int) -> bool:
        """True if live work is there that nobody holds."""
        try:
            control, now = self._ports.indexer.control(segment), self._ports.clock.now()
        except Exception:
            return True  # its dispatch will report the error
        return control.has_live_work(now, self._look_ahead) and not control.held_at(now)

    def _dispatch_backlog(self, segment: int, deadline: datetime) -> SegmentReport:
        """Work on a backlog, but give the lease back in time for the next live minutes."""
        until = min(deadline, self._ports.clock.now() + BACKLOG_SPAN)
        return self.dispatch(segment, until, backlog=True)

    def dispatch(
        self,
        segment: int,
        deadline: datetime,
        *,
        backlog: bool = False,
        alignment: Alignment | None = None,
    ) -> SegmentReport:
        """Dispatch one segment: its live minutes, or (`backlog`) those an outage left behind.

        1. acquire the lease, announcing the minutes to come; 2. dispatch minute by minute,
        recording progress whenever a third of the lease has gone; 3. move the watermark and free
        the lease in one write.
        """
        begun = self.begin(segment, deadline, backlog=backlog, alignment=alignment)
        return begun.run() if isinstance(begun, Visit) else begun

    def begin(
        self,
        segment: int,
        deadline: datetime,
        *,
        backlog: bool = False,
        alignment: Alignment | None = None,
    ) -> Visit | SegmentReport:
        """The visit that is to dispatch a segment, whose lease is taken; a report if there is none
        to make."""
        ports = self._ports
        if ports.clock.now() >= deadline:
            return SegmentReport(segment, SegmentOutcome.OUT_OF_TIME)
        try:
            seen = ports.indexer.control(segment)
            now = ports.clock.now()
            has_work = seen.backlog if backlog else seen.has_live_work(now, self._look_ahead)
            if not has_work:
                return _untouched(seen, SegmentOutcome.CURRENT, now)
            lease = Lease.acquire(
                ports.wheel,
                ports.clock,
                seen,
                self._lease_owner,
                self._look_ahead,
                ports.tzdata,
            )
        except Exception as error:  # only this segment fails: the others continue
            return SegmentReport(segment, SegmentOutcome.FAILED, reason=reason_of(error))
        if lease is None:
            return _untouched(seen, SegmentOutcome.HELD, ports.clock.now())
        return Visit(ports, self._calendars, lease, deadline, alignment, backlog=backlog)


def _untouched(seen: Control, outcome: SegmentOutcome, now: datetime) -> SegmentReport:
    """Of a segment that is left as it is."""
    lag_minutes = seen.lag_minutes(now)
    return SegmentReport(
        seen.segment,
        outcome,
        lag_minutes=lag_minutes,
        backlog=bool(seen.backlog),
        was_idle=seen.idle,
        idle=seen.idle,
    )
