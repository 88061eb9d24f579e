"""The tick's protocol (docs/architecture.md#the-ticks-protocol).

Announce, query, send, and only then move the watermark.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from carillon.domain.wheel.delaying import Alignment
from carillon.domain.wheel.entry import minute_of
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
        """Serve the worker's own segments, then any other whose dispatch lags, then backlogs.

        Live minutes of every segment come before the backlog of any, so that catching up after an
        outage delays nothing that is due now. Segments are visited side by side, and none waits for
        another; the first one changes from minute to minute, so that none starves when time runs
        out. Only the worker's own, which come first, may wait for the end of a second.
        """
        now = self._ports.clock.now()
        first = minute_of(now) % len(own) if own else 0
        alignment = Alignment.of_tick(now, deadline, len(own))
        serve = partial(self.dispatch, deadline=deadline, alignment=alignment)
        live = self._visited((*own[first:], *own[:first]), serve)
        lags = self._visited(others, self._lags)
        lagging = [segment for segment, is_late in zip(others, lags, strict=True) if is_late]
        live += self._visited(lagging, partial(self.dispatch, deadline=deadline))
        behind = [report.segment for report in live if report.backlog]
        return live + self._visited(behind, partial(self._dispatch_backlog, deadline=deadline))

    def _visited(self, segments: Sequence[int], visit: Callable[[int], _T]) -> list[_T]:
        return self._ports.side_by_side([partial(visit, segment) for segment in segments])

    def _lags(self, segment: int) -> bool:
        try:
            return self._ports.indexer.control(segment).lag_minutes(self._ports.clock.now()) > 0
        except Exception:
            return True  # its dispatch will report the error

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
        visit = Visit(ports, self._calendars, lease, deadline, alignment, backlog=backlog)
        return visit.run()


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


def share_of(segments: int, workers: int, worker: int) -> tuple[Sequence[int], Sequence[int]]:
    """The worker's own segments, and all others."""
    own = range(worker % workers, segments, workers)
    return own, [segment for segment in range(segments) if segment not in own]
