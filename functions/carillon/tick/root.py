"""The root: the tick that the rule invokes, which has others help where there is much to send."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from carillon.clock import Clock
from carillon.domain.wheel.delaying import Alignment
from carillon.domain.wheel.entry import minute_of
from carillon.tick.counting import SegmentReport
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.ports import Invite, OnUninvited, TickPorts
from carillon.tick.segment_visit import Visit
from carillon.tick.sharing import Bound, Share, Shares, Weight, Worth, in_order, segments_of, shares

_WEIGHING = timedelta(seconds=1)
"""The root weighs its first segment for so long at most."""
_LOOK_SECONDS = 0.01
"""The root looks this often whether the first segment is weighed."""


class _First:
    """The visit to the first segment, which is weighed while it is under way."""

    def __init__(self, visit: Visit, clock: Clock) -> None:
        self._visit = visit
        self._clock = clock
        self._began_at = clock.now()
        self._has_ended = False

    def run(self) -> list[SegmentReport]:
        try:
            return [self._visit.run()]
        finally:
            self._has_ended = True

    def weight(self) -> Weight:
        """Of all of it as soon as that is known, but after a second of what is known by then."""
        while not self._is_weighed() and self._clock.now() < self._began_at + _WEIGHING:
            self._clock.sleep(_LOOK_SECONDS)
        return self._known()

    def _is_weighed(self) -> bool:
        return self._has_ended or self._visit.is_waiting or self._known().has_backlog

    def _known(self) -> Weight:
        return self._visit.weight((self._clock.now() - self._began_at).total_seconds())


class Root:
    """The root of one invocation. Nothing rests on the shares that it invites: leases decide who
    serves a segment, and what nobody has taken is taken by the ticks of the next minute.

    `shares` is how many ticks are to serve the minute, the root included, and why no more;
    `uninvited` are those that it could not invite; `own` are the segments that it begins with.
    """

    def __init__(
        self,
        ports: TickPorts,
        dispatcher: Dispatcher,
        invite: Invite,
        on_uninvited: OnUninvited,
        *,
        workers: int,
        worth: Worth,
    ) -> None:
        """At most `workers` ticks serve a minute; each of them has work of that `worth`."""
        self._ports = ports
        self._dispatcher = dispatcher
        self._invite = invite
        self._on_uninvited = on_uninvited
        self._workers = workers
        self._worth = worth
        self.shares = Shares(1, Bound.WORKERS)
        self.uninvited: list[Share] = []
        self.own: Sequence[int] = ()

    def tick(self, segments: int, deadline: datetime) -> list[SegmentReport]:
        """Serve all segments, or invite others and serve a share of them, then what nobody holds,
        then backlogs."""
        order = in_order(segments, minute_of(self._ports.clock.now()))
        if min(self._workers, segments - 1) < 2:
            self.own = order
            return self._dispatcher.tick(order, (), deadline)
        live = self._serve(order, deadline)
        others = [segment for segment in order if segment not in self.own]
        live += self._dispatcher.take_over(others, deadline)
        return live + self._dispatcher.catch_up(live, deadline)

    def _serve(self, order: Sequence[int], deadline: datetime) -> list[SegmentReport]:
        """Serve the first segment that can be had, and beside it what its weight leaves to the
        root: all of an ordinary minute, which waits for the same tenth of a second as that."""
        alignment = Alignment.of_tick(self._ports.clock.now(), deadline, len(order))
        reports: list[SegmentReport] = []
        for place, segment in enumerate(order):
            begun = self._dispatcher.begin(segment, deadline, alignment=alignment)
            if isinstance(begun, Visit):
                first = _First(begun, self._ports.clock)
                left = partial(self._left_to_root, first, order, order[place + 1 :])
                rest = partial(self._rest, left, deadline, alignment)
                calls: list[Callable[[], list[SegmentReport]]] = [first.run, rest]
                return sum(self._ports.side_by_side(calls), reports)
            reports.append(begun)
        self.own = order
        return reports

    def _rest(
        self, left: Callable[[], Sequence[int]], deadline: datetime, alignment: Alignment
    ) -> list[SegmentReport]:
        return self._dispatcher.serve(left(), deadline, alignment)

    def _left_to_root(
        self, first: _First, order: Sequence[int], left: Sequence[int]
    ) -> Sequence[int]:
        """Weigh the first segment and invite others; what remains of the segments that are left.

        The root's own are those of its share, and of the shares that it could not invite.
        """
        self.shares = shares(first.weight(), len(left), self._workers, self._worth)
        wanted = [Share(number, self.shares.of) for number in range(1, self.shares.of)]
        are_invited = self._ports.side_by_side([partial(self._is_invited, each) for each in wanted])
        pairs = zip(wanted, are_invited, strict=True)
        self.uninvited = [share for share, is_invited in pairs if not is_invited]
        mine = [Share(0, self.shares.of), *self.uninvited]
        self.own = [segment for share in mine for segment in segments_of(order, share)[0]]
        return [segment for segment in left if segment in self.own]

    def _is_invited(self, share: Share) -> bool:
        try:
            self._invite(share)
        except Exception as error:  # the root goes on without it
            self._on_uninvited(share, error)
            return False
        return True
