"""The permits of an owner's runs that last: who asks, who takes one, who gives it back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime

from carillon.domain.admission import limits
from carillon.domain.admission.limits import Places
from carillon.domain.admission.state import PERMITS_ROW, AdmissionRow
from carillon.domain.decisions import Claim, Wait
from carillon.domain.message import Message
from carillon.domain.quotas import Quota
from carillon.domain.run import Run
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Report, defer
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.admission import change_admission, enter

_MOST_KNOWN = 1000
"""Owners that a process remembers at once."""


class Permits:
    """Without a limit of its owner nothing of a run is read or written here, and no timer runs."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._known: dict[str, tuple[datetime, AdmissionRow | None]] = {}

    def hold_back(self, message: Message, claim: Claim) -> Report | None:
        """Defer a run that would only wait, before it is claimed: a check in full costs six
        requests, and an owner at its limit has many runs that check, some all at once.

        A run that has yet to begin has no row until its second check. A takeover is not held
        back: its attempt counts at once; but a first attempt's message is not known for one, and
        may be held back once. Raises StoreUnavailableError and QueueUnavailableError.
        """
        limit = self._limit(message)
        if not limit or claim.is_takeover:
            return None
        gate, now = self._gate(message.key.owner), self._ports.clock.now()
        held = limits.hold_back(gate, limit, message, now, self._ports.entropy.fraction())
        if held is None:
            return None
        # Held back by a policy it is not late, however small its grace.
        again = message if message.waits else replace(message, wait_until=held.at)
        return defer(self._ports, again, held.at, held.reason)

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
        gate, now = self._gate(message.key.owner), self._ports.clock.now()
        if not limits.are_used_up(gate, limit, now):
            return None
        return limits.wait_for_permit(message, limit, now, self._ports.entropy.fraction())

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
        yield
        call_off()
        if is_requested:  # even where the answer was lost
            self._release(run)

    def _limit(self, message: Message) -> int:
        return self._ports.quotas.of(message.key.owner)[Quota.RUNS]

    def _is_strict(self, message: Message) -> bool:
        return bool(self._limit(message)) and message.waits > 0

    def _gate(self, owner: str) -> AdmissionRow | None:
        """The owner's permits as they were seen less than `KNOWN_FOR` ago, unless they have been
        changed here since."""
        now = self._ports.clock.now()
        known_at, gate = self._known.get(owner, (None, None))
        if known_at is None or not now - limits.KNOWN_FOR < known_at <= now:
            gate = self._ports.admission_rows.get(owner, PERMITS_ROW)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[owner] = now, gate
        return gate

    def _take(self, limit: int, claim: Claim, message: Message) -> Wait | None:
        places = Places(limit, "its owner's permits", is_share=True)
        outcome = enter(self._ports, PERMITS_ROW, places, claim, message)
        self._known.pop(message.key.owner, None)
        return outcome if isinstance(outcome, Wait) else None

    def _release(self, run: Run) -> None:
        with suppress(StoreUnavailableError):
            self._change(run, lambda gate: limits.leave(gate, run))

    def _change(self, run: Run, change: Callable[[AdmissionRow], AdmissionRow | None]) -> bool:
        changed = change_admission(self._ports.admission_rows, run.key.owner, PERMITS_ROW, change)
        self._known.pop(run.key.owner, None)
        return changed
