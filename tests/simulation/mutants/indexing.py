"""Bugs planted into generations, their entries and what removes them, and the reads that decide."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import carillon.domain.execution.start_decision as starting
import carillon.domain.wheel.entry as wheel
import carillon.domain.wheel.stale as stale
import carillon.services.indexer as generation
from carillon.api.jobs.changes import Put
from carillon.api.jobs.planning import Planner
from carillon.domain.job import Generation, Job, JobState
from carillon.domain.message import Message
from carillon.domain.wheel.segment import Control
from carillon.errors import CarillonError
from carillon.services.indexer import Indexer
from carillon.stores.cursors import pages
from carillon.stores.memory.wheel import MemoryWheelStore
from tests.simulation.mutants.kit import (
    LANES,
    MEETING,
    Code,
    Mutant,
    Swap,
    asked,
    behind,
    both,
    faulty,
    given,
    instead,
    scheduled,
    small,
    then_put,
    then_renamed,
)


def _horizon_first(original: Code) -> Code:
    def index_job(self: Indexer, job: Job, revision: int | None) -> Any:
        horizon, hasty = self.control(job.segment), copy(self)
        hasty.control = lambda segment: horizon  # type: ignore[method-assign]
        return original(hasty, job, revision)

    return index_job


def _row_first(original: Code) -> Code:
    def index_job(self: Indexer, job: Job, revision: int | None) -> Any:
        held: list[Message] = []
        hasty = copy(self)
        hasty._send = lambda messages, **how: held.extend(messages)  # type: ignore
        committed = original(hasty, job, revision)
        if committed:
            self._send(list(dict.fromkeys(held)))
        return committed

    return index_job


def _any_entry_of_the_job(original: Code) -> Code:
    def remove_entries(self: MemoryWheelStore, segment: int, keys: Any) -> None:
        for slot, entry_key in keys:
            job_id = entry_key.partition("#")[0]
            for page in pages(partial(self.query, segment, slot)):
                of_the_job = [entry for entry in page.items if entry.job_id == job_id]
                original(self, segment, [(slot, entry.key) for entry in of_the_job])

    return remove_entries


def _owes_nothing_of(watch: bool) -> Callable[[Code], Code]:
    """What lies between an occurrence and its start, or its look, is forgotten."""

    def make(original: Code) -> Code:
        def owes_until(job: Any, ended_at: Any, spread: Any, *, is_watch: bool) -> Any:
            if is_watch is watch:
                return ended_at
            return original(job, ended_at, spread, is_watch=is_watch)

        return owes_until

    return make


def _never_sent_again(original: Code) -> Code:
    def send(self: Indexer, *what: Any, **how: Any) -> None:
        try:
            original(self, *what, **how)
        except CarillonError:
            return

    return send


def _unchecked(original: Code) -> Code:
    def schedule_message(self: Indexer, *what: Any, **how: Any) -> None:
        """Put late ones on the wheel, and rely on a tick's visit."""
        early = copy(self)
        early.control = lambda segment: Control(segment, -1, -1)  # type: ignore[method-assign]
        original(early, *what, **how)

    return schedule_message


def _pause_unseen(original: Code) -> Code:
    def decide_start(job: Job | None, *rest: Any) -> Any:
        if job is not None and job.state is JobState.PAUSED:
            job = replace(job, state=JobState.ACTIVE)
        return original(job, *rest)

    return decide_start


_JOB_KEY = instead(
    lambda job_id, generation_id, is_watch=False: f"{job_id}{'#w' if is_watch else ''}"
)

GENERATIONS = (
    Mutant(
        "horizon_before_entries",
        ("I1",),
        "a generation reads the horizon before its entries are put",
        (Swap(Indexer, "index_job", _horizon_first),),
        reshape=MEETING,
    ),
    Mutant(
        "query_not_consistent",
        ("I1",),
        "the tick's query may be behind",
        behind("wheel", "query"),
        reshape=both(MEETING, faulty(stale=0.3)),
    ),
    Mutant(
        "horizon_not_consistent",
        ("I1",),
        "the read of the control item may be behind",
        behind("wheel", "get_control"),
    ),
    Mutant(
        "job_not_consistent",
        ("pause", "delete", "I1"),
        "the read of the job's row after the claim may be behind",
        behind("jobs", "get"),
        reshape=both(
            small(8),
            scheduled("every 10s", overlap="allow"),
            asked("pause", 2),
            asked("delete", 1),
            faulty(stale=0.3),
        ),
    ),
    Mutant(
        "run_not_consistent",
        ("I1",),
        "the read of a run's row may be behind",
        behind("runs", "get"),
    ),
    Mutant(
        "row_before_sends",
        ("I1",),
        "the job's row is put before its announced occurrences are sent",
        (Swap(Indexer, "index_job", _row_first),),
    ),
    Mutant(
        "entry_overwritten",
        ("I1",),
        "an entry's key does not name its generation: another generation overwrites it",
        (Swap(wheel, "standing_key", _JOB_KEY), Swap(stale, "standing_key", _JOB_KEY)),
    ),
    Mutant(
        "entry_removed_whosever",
        ("I1",),
        "who meets a stale entry removes the job's entries there, of whichever generation",
        (Swap(MemoryWheelStore, "remove_entries", _any_entry_of_the_job),),
        reshape=both(
            small(70),
            scheduled("*/3 * * * *", "every 2m", overlap="allow"),
            asked("change", 1, *LANES),
        ),
    ),
    Mutant(
        "removed_before_dispatched",
        ("I1",),
        "entries of a generation that has ended are removed whatever they owe",
        (Swap(generation, "removable", instead(lambda ended, control: [e.key for e in ended])),),
    ),
    Mutant(
        "window_ignored",
        ("I1",),
        "entries are removed once the pause is dispatched, not the last start after it",
        (Swap(stale, "_owes_until", _owes_nothing_of(watch=False)),),
        reshape=both(
            small(60),
            scheduled("*/15 * * * *", "*/20 * * * *", window="14m59s", overlap="allow"),
            asked("pause", 2),
            asked("resume", 2),
        ),
    ),
    Mutant(
        "watch_removed",
        ("watch",),
        "entries of a watch are removed with those of its job, before it has looked",
        (Swap(stale, "_owes_until", _owes_nothing_of(watch=True)),),
        reshape=both(
            small(60),
            scheduled("*/10 * * * *", expect_within="15m", overlap="allow"),
            asked("pause", 2),
            asked("resume", 2),
            faulty(target_refuses=0.6),
        ),
    ),
    Mutant(
        "part_sent_taken_for_sent",
        ("I1",),
        "a batch that the queue took in part counts as sent",
        (Swap(Indexer, "_send", _never_sent_again),),
    ),
    Mutant(
        "late_retry_not_checked",
        ("I1",),
        "a late message is put on the wheel without a look at the horizon",
        (Swap(Indexer, "schedule_messages", _unchecked),),
    ),
    Mutant(
        "pause_unseen",
        ("pause",),
        "a pause is seen by the tick alone",
        (Swap(starting, "decide_start", _pause_unseen),),
    ),
)


_AT_THE_END = Swap(Indexer, "remove_ended_entries", instead(lambda self, before, after: None))
_WHEN_MET = Swap(Indexer, "remove_stale_entry", instead(lambda self, job, message: None))
_ENDING = both(
    scheduled("every 20s", "every 40s"),
    asked("delete", 1),
    given(ticks_down=(), executors_down=()),
)

_REVIVED = both(
    small(8), asked("delete", 4), then_put, scheduled("every 10s", "every 20s", catch_up="all")
)


def _unended(original: Code) -> Code:
    """As if the job had been there until now."""

    def replaced_by(self: Job, job: Job) -> Job:
        there: Job = original(replace(self, state=JobState.ACTIVE, paused_at=None), job)
        return there

    return replaced_by


def _in_its_generation(original: Code) -> Code:
    """What the deletion has left of its entries goes on."""

    def replaced_by(self: Job, job: Job) -> Job:
        revived: Job = original(self, job)
        return replace(
            revived, generation=self.generation, previous=self.previous, earlier=self.earlier
        )

    return replaced_by


def _from_now_on(original: Code) -> Code:
    """The new name counts from when its row is made."""

    def rename(self: Planner, *args: Any) -> Put:
        put: Put = original(self, *args)
        now = self._clock.now().replace(microsecond=0)
        later = replace(put.job.generation, from_at=now)
        return replace(put, job=replace(put.job, generation=later))

    return rename


def _on_and_on(original: Code) -> Code:
    """The old name has its occurrences still."""

    def renamed(
        self: Job, generation: Generation, now: datetime, expires_at: datetime, *rest: Any
    ) -> Job:
        ended: Job = original(self, generation, now, expires_at, *rest)
        kept = replace(ended, state=self.state, generation=self.generation, schedule=self.schedule)
        return replace(kept, previous=self.previous, earlier=self.earlier)

    return renamed


_RENAMED = both(
    small(8), then_renamed, scheduled("every 10s", "every 20s", catch_up="all"), faulty(dies=0.1)
)


GONE = (
    Mutant(
        "renamed_from_now_on",
        ("renamed",),
        "a job that is renamed begins when its new row is made, not where the old one ended",
        (Swap(Planner, "rename", _from_now_on),),
        reshape=_RENAMED,
    ),
    Mutant(
        "renamed_and_still_there",
        ("renamed",),
        "a job that was renamed fires under its old name, too",
        (Swap(Job, "renamed", _on_and_on),),
        reshape=_RENAMED,
    ),
    Mutant(
        "revived_without_a_generation",
        ("I1",),
        "a deleted job is revived under the generation that it had",
        (Swap(Job, "replaced_by", _in_its_generation),),
        reshape=_REVIVED,
    ),
    Mutant(
        "revived_as_never_deleted",
        ("I1",),
        "a revived job still covers what came due while it was deleted",
        (Swap(Job, "replaced_by", _unended),),
        reshape=_REVIVED,
    ),
    Mutant(
        "entries_left",
        ("gone",),
        "the entries of a generation that has ended stay where they are",
        (_AT_THE_END, _WHEN_MET),
        reshape=both(small(16), _ENDING),
    ),
    Mutant(
        "entries_left_until_met",
        ("gone",),
        "the entries of a generation that has ended stay until what they send is met",
        (_AT_THE_END,),
        reshape=both(small(16), _ENDING),
    ),
    Mutant(
        "met_entries_left",
        ("gone",),
        "who meets what an entry of an ended generation has sent lets the entry stand",
        (_WHEN_MET,),
        reshape=both(small(100), _ENDING, faulty(throttled=0.1, dies=0.02)),
    ),
)

RACED = (
    Mutant(
        "young_message_dropped",
        ("I1",),
        "a message whose job has yet to be committed is dropped at once",
        (Swap(starting, "_young", instead(lambda generation_id, now: False)),),
    ),
)
"""Seeds hardly ever meet it: the race of indexing against the tick finds it (races/cases.py)."""
