"""A tick's lease on one segment: the only place that writes the control item."""

from carillon.clock import Clock
from carillon.domain.wheel.segment import LEASE, RENEW_AFTER, Control, acquired, freed, renewed
from carillon.stores.ports import WheelStore


class LeaseLostError(Exception):
    """Another tick took the segment over; what this one dispatched meanwhile are duplicates."""


class Lease:
    """The control item under this tick's token, from acquisition to freeing; `stored` is its stored
    form."""

    def __init__(self, wheel: WheelStore, clock: Clock, control: Control) -> None:
        self._wheel = wheel
        self._clock = clock
        self.stored = control

    @classmethod
    def acquire(
        cls,
        wheel: WheelStore,
        clock: Clock,
        seen: Control,
        lease_owner: str,
        look_ahead: int,
        tzdata: str,
    ) -> "Lease | None":
        """Take the lease and announce, in one conditional write; None if another holds it."""
        control = acquired(seen, lease_owner, clock.now(), look_ahead, tzdata)
        if control is None or not wheel.put_control(control, over=seen):
            return None
        return cls(wheel, clock, control)

    def renewal_due(self) -> bool:
        lease_until = self.stored.lease_until
        return lease_until is None or self._clock.now() >= lease_until - (LEASE - RENEW_AFTER)

    def checkpoint(self, progress: Control) -> None:
        """Record the progress and renew; raises LeaseLostError."""
        self._put(renewed(progress, self._clock.now()))

    def free(self, progress: Control, *, idle: bool) -> None:
        """Record the progress and free the lease; raises LeaseLostError."""
        self._put(freed(progress, idle))

    def _put(self, control: Control) -> None:
        if not self._wheel.put_control(control, over=self.stored):
            raise LeaseLostError
        self.stored = control
