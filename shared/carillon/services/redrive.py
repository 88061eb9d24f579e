"""Redriving: running a dead letter again, or taking it off the list without that."""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from carillon.clock import Clock, Entropy
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.run import DEAD_LETTER, Resolution, Run, RunStatus
from carillon.errors import StoreUnavailableError
from carillon.services.indexer import Indexer
from carillon.stores.ports import RunStore

_ROUNDS = 4
"""A dead letter's row may change this often before its resolution is given up."""
_CANCELLED_BY_DISCARD = "its dead letter was discarded"
"""The reason of a new run that was never sent."""


class Refusal(StrEnum):
    """The reason why a run is not redriven, or not discarded."""

    NOT_DEAD = "it is not a dead letter"
    DISCARDED = "it was discarded"
    REDRIVEN = "it was redriven"
    JOB_GONE = "its job was deleted"
    EXPIRED = "it was redriven, and the run that was made of it has expired"


class Redriver:
    """Used by the api and the executor; raises StoreUnavailableError and QueueUnavailableError.

    A repetition continues where another one stopped, and answers the same run. The row of the new
    run decides between two who are at one dead letter at once: a discard first makes sure that this
    row is cancelled, putting it where there is none, unless the run has begun; then the dead letter
    is redriven.
    """

    def __init__(
        self,
        runs: RunStore,
        indexer: Indexer,
        clock: Clock,
        entropy: Entropy,
        run_lifetime: timedelta,
    ) -> None:
        self._runs = runs
        self._indexer = indexer
        self._clock = clock
        self._entropy = entropy
        self._run_lifetime = run_lifetime

    def redrive(self, dead: Run, job: Job | None, due_at: datetime) -> Run | Refusal:
        """The run that runs `dead` again, to start at `due_at`, a whole second.

        `dead` and its `job` are rows as they were read just now. 1. put the new run's row, unless
        it stands; 2. send its message; 3. settle the dead letter. A crash after 1 or 2 leaves a
        dead letter, whose next redrive goes on. A run that has yet to begin is sent again.
        """
        if dead.settled is Resolution.REDRIVEN:
            made = self._runs.get(dead.key.redriven)
            if made is not None and job is not None:
                self._send(made, job, due_at)
            return made or Refusal.EXPIRED
        refusal = _refusal(dead, job)
        if refusal is not None or job is None:
            return refusal or Refusal.JOB_GONE
        run = self._recorded(dead, job, due_at)
        self._send(run, job, due_at)
        settled = self._settle(dead)
        return Refusal.DISCARDED if settled.settled is Resolution.DISCARDED else run

    def discard(self, dead: Run) -> Run | Refusal:
        """The dead letter, discarded; one whose new run has begun is not.

        Its new run is cancelled before there is one, or where a redrive that died half-way has
        left it in wait.
        """
        if dead.settled is Resolution.DISCARDED:
            return dead
        if dead.settled is Resolution.REDRIVEN:
            return Refusal.REDRIVEN
        if dead.status not in DEAD_LETTER:
            return Refusal.NOT_DEAD
        self._cancel_what_follows(dead)
        settled = self._settle(dead)
        return Refusal.REDRIVEN if settled.settled is Resolution.REDRIVEN else settled

    def _cancel_what_follows(self, dead: Run) -> None:
        """Cancel the new run, unless it has begun: a redrive that comes now finds it so."""
        for _ in range(_ROUNDS):
            made = self._runs.get(dead.key.redriven)
            if made is not None and not _has_yet_to_begin(made):
                return
            now = self._clock.now()
            claim_id, expires_at = self._entropy.new_id(now), now + self._run_lifetime
            run = made or self._new_run(dead)
            cancelled = run.cancelled(_CANCELLED_BY_DISCARD, claim_id, now, expires_at)
            if self._runs.claim(cancelled, made):
                return

    def _new_run(self, dead: Run) -> Run:
        """The run of the dead letter's redrive, in its row for the first time."""
        now = self._clock.now()
        claim_id, expires_at = self._entropy.new_id(now), now + self._run_lifetime
        return Run.scheduled(dead.key.redriven, dead.generation_id, claim_id, now, expires_at)

    def _recorded(self, dead: Run, job: Job, due_at: datetime) -> Run:
        """The new run's row, put now unless it stands already."""
        generation_id = job.generation.generation_id
        run = replace(self._new_run(dead), generation_id=generation_id, effective_at=due_at)
        if self._runs.claim(run, None):
            return run
        stored = self._runs.get(run.key)
        if stored is None:
            raise StoreUnavailableError(f"{run.key.run_id} is neither put nor read")
        return stored

    def _send(self, run: Run, job: Job, due_at: datetime) -> None:
        """Send the new run, if it has yet to begin."""
        if _has_yet_to_begin(run):
            due_at = run.effective_at or due_at
            self._indexer.schedule_message(Message.of(job, run.key, due_at))

    def _settle(self, dead: Run) -> Run:
        """The dead letter's row, resolved as the new run's row has it: redriven, or discarded where
        there is none or it was cancelled."""
        for _ in range(_ROUNDS):
            made = self._runs.get(dead.key.redriven)
            is_gone = made is None or made.status is RunStatus.CANCELLED
            how = Resolution.DISCARDED if is_gone else Resolution.REDRIVEN
            if dead.settled is how:
                return dead
            now = self._clock.now()
            settled = replace(
                dead,
                settled=how,
                token=dead.token + 1,
                claim_id=self._entropy.new_id(now),
                updated_at=now,
                expires_at=max(dead.expires_at, now + self._run_lifetime),
            )
            if self._runs.claim(settled, dead):
                return settled
            stored = self._runs.get(dead.key)
            if stored is None:
                return settled  # it has expired meanwhile
            dead = stored
        raise StoreUnavailableError(f"the row of {dead.key.run_id} changed at every step")


def stands_for_a_discard(run: Run) -> bool:
    """True for the row of a run that never was: it says that its dead letter was discarded."""
    return run.status is RunStatus.CANCELLED and run.reason == _CANCELLED_BY_DISCARD


def _has_yet_to_begin(made: Run) -> bool:
    """True if no executor has received the new run's message."""
    return made.status is RunStatus.SCHEDULED and made.token == 0


def _refusal(dead: Run, job: Job | None) -> Refusal | None:
    if dead.settled is Resolution.DISCARDED:
        return Refusal.DISCARDED
    if not dead.is_dead_letter:
        return Refusal.NOT_DEAD
    if job is None or job.state is JobState.DELETED:
        return Refusal.JOB_GONE
    return None
