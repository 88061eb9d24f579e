"""An owner's share: the permits of its runs that last (who asks, who takes one, who gives it back),
and what is held back because they, or its places in lane slow, are used up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime

from carillon.domain.admission import limits
from carillon.domain.admission.limits import Places
from carillon.domain.admission.state import PERMITS_ROW, SLOW_LANE_ROW, AdmissionRow
from carillon.domain.decisions import Claim, Defer, Redirect, Wait
from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.domain.quotas import Quota
from carillon.domain.run import Run
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Report, defer
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.admission import change_admission, enter, share_of_lane_slow

_MOST_KNOWN = 1000
"""Owners that a process remembers at once."""


class Permits:
    """Without a limit of its owner nothing of a run is read or written here, and no timer runs; but
    for lane slow, where each owner has a share."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._known: dict[tuple[str, str], tuple[datetime, AdmissionRow | None]] = {}

    def hold_back(self, message: Message) -> Report | None:
        """Defer a run that would only wait, before it is claimed: a check in full costs six
        requests, and an owner at its limit has many runs that check, some all at once.

        A run that has yet to begin has no row until its second check. A takeover is not to be held
        back: its attempt counts at once. Raises StoreUnavailableError and QueueUnavailableError.
        """
        held = self._held_back(message)
        if held is None:
            return None
        return defer(self._ports, _held_until(message, held), held.at, held.reason)

    def redirect(self, moved: Redirect) -> Redirect:
        """The same, delayed where the run would only wait in its lane: one message of lane slow
        costs an invocation."""
        held = None if moved.message.waits else self._held_back(moved.message)
        return moved if held is None else Redirect(_held_until(moved.message, held), held.reason)

    def enter(self, claim: Claim, message: Message) -> Wait | None:
        """The next check, if the owner's permits are used up.

        A run that has waited takes its permit now, in its turn: many that wait must not all find
        one that is free. `leave` gives it back. Raises StoreUnavailableError.
        """
        limit = self._limit(message)
        if not limit:
            return None
        if self._is_strict(message):
            return self._take(limit, claim, message)
        gate, now = self._gate(message.key.owner, PERMITS_ROW), self._ports.clock.now()
        places, fraction = _permits(limit), self._ports.entropy.fraction()
        return limits.wait_for_share(gate, places, message, now, fraction)

    def leave(self, run: Run, message: Message) -> None:
        """Release what `enter` took; where that fails, its lease ends it."""
        if self._is_strict(message):
            self._release(run)

    @contextmanager
    def around_call(self, run: Run, message: Message) -> Iterator[None]:
        """Let the run take a permit if its call lasts, and give it back at the end: its row is put
        by then, since the permits may be contended, and its claim ends with its process.

        A store that fails costs a permit, never the run. Where the row cannot be put, or the
        executor dies, the lease ends the permit, as it ends the run.
        """
        if not self._limit(message) or self._is_strict(message):
            yield
            self.leave(run, message)
            return
        is_requested = False

        def take() -> None:
            nonlocal is_requested
            is_requested = True
            now = self._ports.clock.now()
            with suppress(StoreUnavailableError):
                self._change(run, lambda gate: limits.with_permit(gate, run, now))

        call_off = self._ports.timers.after(limits.SHORT_SECONDS, take)
        try:
            yield
        finally:
            call_off()
        if is_requested:  # even where the answer was lost
            self._release(run)

    def _limit(self, message: Message) -> int:
        return self._ports.quotas.of(message.key.owner)[Quota.RUNS]

    def _is_strict(self, message: Message) -> bool:
        return bool(self._limit(message)) and message.waits > 0

    def _held_back(self, message: Message) -> Defer | None:
        for name, places in self._shares(message):
            gate, now = self._gate(message.key.owner, name), self._ports.clock.now()
            fraction = self._ports.entropy.fraction()
            held = limits.hold_back(gate, places, message, now, fraction)
            if held is not None:
                return held
        return None

    def _shares(self, message: Message) -> Iterator[tuple[str, Places]]:
        limit = self._limit(message)
        if limit:
            yield PERMITS_ROW, _permits(limit)
        if message.lane is Lane.SLOW:
            yield SLOW_LANE_ROW, share_of_lane_slow(self._ports)

    def _gate(self, owner: str, name: str) -> AdmissionRow | None:
        """The owner's row as it was seen less than `KNOWN_FOR` ago, unless a permit has been taken
        or given back here since."""
        now = self._ports.clock.now()
        known_at, gate = self._known.get((owner, name), (None, None))
        if known_at is None or not now - limits.KNOWN_FOR < known_at <= now:
            gate = self._ports.admission_rows.get(owner, name)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[owner, name] = now, gate
        return gate

    def _take(self, limit: int, claim: Claim, message: Message) -> Wait | None:
        outcome = enter(self._ports, PERMITS_ROW, _permits(limit), claim, message)
        self._known.pop((message.key.owner, PERMITS_ROW), None)
        return outcome if isinstance(outcome, Wait) else None

    def _release(self, run: Run) -> None:
        with suppress(StoreUnavailableError):
            self._change(run, lambda gate: limits.leave(gate, run))

    def _change(self, run: Run, change: Callable[[AdmissionRow], AdmissionRow | None]) -> bool:
        changed = change_admission(self._ports.admission_rows, run.key.owner, PERMITS_ROW, change)
        self._known.pop((run.key.owner, PERMITS_ROW), None)
        return changed

    def forget_lane_slow(self, owner: str) -> None:
        """A place of the owner's share may be free again."""
        self._known.pop((owner, SLOW_LANE_ROW), None)


def _permits(limit: int) -> Places:
    return Places(limit, "its owner's permits", is_share=True)


def _held_until(message: Message, held: Defer) -> Message:
    """The same message. Held back by a policy it is not late, however small its grace."""
    return message if message.waits else replace(message, wait_until=held.at)
