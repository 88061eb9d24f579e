"""Bugs to plant in the protocols, one for each race: who finds none of them explores nothing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, cast
from unittest.mock import patch

import carillon.api.jobs.links as links
import carillon.domain.execution.successors as successors
import carillon.domain.wheel.announced as announced
import carillon.services.indexer as generation
import carillon.stores.memory.runs as runs
from carillon.api.jobs.links import Links
from carillon.domain.decisions import Drop, Proceed
from carillon.domain.job import Job, JobState, Successor
from carillon.domain.message import Message
from carillon.domain.run import Resolution, Run
from carillon.domain.wheel.entry import Entry
from carillon.domain.wheel.segment import Control
from carillon.executor.runs import resuming
from carillon.executor.runs.catching_up import CatchingUp
from carillon.executor.runs.completions import Completions
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.follow_up import FollowUp
from carillon.executor.runs.protocol import RunProtocol
from carillon.services.indexer import Indexer
from carillon.services.redrive import Redriver
from carillon.stores.memory.rows import MemoryJobStore
from carillon.stores.memory.runs import MemoryRunStore
from carillon.stores.memory.wheel import MemoryWheelStore
from carillon.stores.ports import JobStore, WheelStore
from carillon.tick.counting import SegmentReport
from carillon.tick.segment_visit import Visit
from tests.simulation.mutants import chunks, handing_over, indexing, ticks
from tests.simulation.mutants.kit import swapped
from tests.simulation.races.chunks import generation_unasked
from tests.simulation.races.generations import put_off_forgotten
from tests.simulation.races.plans import plan_overlooked


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The bug of this name, for as long as the block lasts."""
    with _BUGS[name]():
        yield


class _HorizonKnown:
    """A wheel whose control item was read before the entries were put."""

    def __init__(self, wheel: WheelStore, control: Control) -> None:
        self._wheel, self._control = wheel, control

    def __getattr__(self, method: str) -> Any:
        return getattr(self._wheel, method)

    def get_control(self, segment: int) -> Control:
        return self._control


@contextmanager
def _horizon_first() -> Iterator[None]:
    index_job, schedule_messages = Indexer.index_job, Indexer.schedule_messages

    def first(indexer: Indexer, segment: int) -> Indexer:
        known = _HorizonKnown(indexer._wheel, indexer.control(segment))
        return Indexer(
            indexer._jobs,
            cast(WheelStore, known),
            indexer._queue,
            indexer._clock,
            indexer._calendars,
            indexer._longest_delay_seconds,
        )

    def job(self: Indexer, job: Job, revision: int | None) -> bool:
        return index_job(first(self, job.segment), job, revision)

    def messages(self: Indexer, messages: Sequence[Message], *others: Any, **named: Any) -> None:
        indexer = first(self, messages[0].segment) if messages else self
        schedule_messages(indexer, messages, *others, **named)

    with (
        patch.object(Indexer, "index_job", job),
        patch.object(Indexer, "schedule_messages", messages),
    ):
        yield


@contextmanager
def _row_first() -> Iterator[None]:
    index_job = Indexer.index_job

    def job(self: Indexer, job: Job, revision: int | None) -> bool:
        is_put = self._jobs.create(job) if revision is None else self._jobs.replace(job, revision)
        return is_put and index_job(self, job, revision)

    with patch.object(Indexer, "index_job", job):
        yield


@contextmanager
def _control_unconditional() -> Iterator[None]:
    def put_control(self: MemoryWheelStore, control: Control, over: Control | None) -> bool:
        self._controls[control.segment] = control
        return True

    with patch.object(MemoryWheelStore, "put_control", put_control):
        yield


@contextmanager
def _claim_unconditional() -> Iterator[None]:
    def claim(self: MemoryRunStore, run: Run, over: Run | None) -> bool:
        return self._put(run, self._rows.get(run.key), True)

    with patch.object(MemoryRunStore, "claim", claim):
        yield


@contextmanager
def _finish_without_token() -> Iterator[None]:
    def finish(self: MemoryRunStore, run: Run) -> bool:
        return self._put(run, self._rows.get(run.key), True)

    with patch.object(MemoryRunStore, "finish", finish):
        yield


class _JobKnown:
    """A store whose only job was read before."""

    def __init__(self, job: Job | None) -> None:
        self._job = job

    def get(self, owner: str, job_id: str) -> Job | None:
        return self._job


@contextmanager
def _row_before_claim() -> Iterator[None]:
    handle = RunProtocol.handle

    def early(self: RunProtocol, message: Message, ends_at: Any, *, alone: bool = True) -> Any:
        job = self._ports.jobs.get(message.key.owner, message.key.job_id)
        self._ports = replace(self._ports, jobs=cast(JobStore, _JobKnown(job)))
        return handle(self, message, ends_at, alone=alone)

    with patch.object(RunProtocol, "handle", early):
        yield


@contextmanager
def _settle_unread() -> Iterator[None]:
    redrive, discard = Redriver.redrive, Redriver.discard
    wanted: dict[int, Resolution] = {}

    def redriven(self: Redriver, *args: Any) -> Any:
        wanted[id(self)] = Resolution.REDRIVEN
        return redrive(self, *args)

    def discarded(self: Redriver, dead: Run) -> Any:
        wanted[id(self)] = Resolution.DISCARDED
        return discard(self, dead)

    def settle(self: Redriver, dead: Run) -> Run:
        while True:
            now = self._clock.now()
            settled = replace(
                dead,
                settled=wanted[id(self)],
                token=dead.token + 1,
                claim_id=self._entropy.new_id(now),
                updated_at=now,
            )
            if self._runs.claim(settled, dead):
                return settled
            dead = self._runs.get(dead.key) or settled

    with (
        patch.object(Redriver, "redrive", redriven),
        patch.object(Redriver, "discard", discarded),
        patch.object(Redriver, "_settle", settle),
    ):
        yield


@contextmanager
def _link_after_watermark() -> Iterator[None]:
    file_link, run = Visit._put_next_entry, Visit.run
    links: dict[int, list[Entry]] = {}

    def later(self: Visit, entry: Entry) -> None:
        links.setdefault(id(self), []).append(entry)

    def then(self: Visit) -> SegmentReport:
        links.pop(id(self), None)
        report = run(self)
        for entry in links.pop(id(self), []):
            file_link(self, entry)
        return report

    with patch.object(Visit, "_put_next_entry", later), patch.object(Visit, "run", then):
        yield


@contextmanager
def _removed_early() -> Iterator[None]:
    with patch.object(generation, "removable", lambda ended, control: [each.key for each in ended]):
        yield


@contextmanager
def _latest_not_sent() -> Iterator[None]:
    """Who claims the latest that is due trusts in the tick to send its message."""

    def is_sent(self: CatchingUp, latest: Message, ends_at: datetime) -> bool:
        return self._ports.runs.get(latest.key) is not None

    with patch.object(CatchingUp, "is_sent", is_sent):
        yield


@contextmanager
def _any_pause() -> Iterator[None]:
    """A message that resumes a job does so whichever pause it finds."""

    def decide(job: Job | None, message: Message, now: datetime) -> Proceed | Drop:
        is_paused = job is not None and job.state is JobState.PAUSED
        return Proceed() if is_paused else Drop("it is not paused")

    with patch.object(resuming, "decide_resume", decide):
        yield


@contextmanager
def _link_after_commit() -> Iterator[None]:
    put, tidy_up = Links.put, Links.tidy_up

    def late(self: Links, job: Job, before: Job | None) -> None:
        put(self, job, before)
        tidy_up(self, job, before)

    nothing = patch.object(Links, "put", lambda self, job, before: None)
    with nothing, patch.object(Links, "tidy_up", late):
        yield


@contextmanager
def _stop_unfenced() -> Iterator[None]:
    """A stop leaves the token as it is."""

    def unfenced(self: Run, reason: str, claim_id: str, now: datetime, expires_at: datetime) -> Run:
        cancelled = was(self, reason, claim_id, now, expires_at)
        return replace(cancelled, token=self.token, claim_id=self.claim_id)

    was = Run.cancelled
    with patch.object(Run, "cancelled", unfenced):
        yield


@contextmanager
def _followed_anew() -> Iterator[None]:
    """The run that follows another has another id where the follow-up is repeated."""
    consequences, messages_after = FollowUp._consequences, successors.messages_after

    def marked(self: FollowUp, run: Run, context: RunContext, *, repeated: bool) -> Any:
        marks = tuple(replace(link, revision=-1) for link in context.job.successors)
        if repeated:
            context = replace(context, job=replace(context.job, successors=marks))
        return consequences(self, run, context, repeated=repeated)

    def anew(run: Run, job: Job) -> Iterator[Message]:
        is_repeated = any(link.revision == -1 for link in job.successors)
        for message in messages_after(run, job):
            named = f"{message.key.request_id}{'again' if is_repeated else ''}"
            yield replace(message, key=replace(message.key, request_id=named))

    with (
        patch.object(FollowUp, "_consequences", marked),
        patch("carillon.executor.runs.follow_up.messages_after", anew),
    ):
        yield


@contextmanager
def _links_unseen() -> Iterator[None]:
    replace_row = MemoryJobStore._replace

    def unseen(self: MemoryJobStore, job: Job, revision: int, successors: Any) -> bool:
        stored = self._rows.get(job.job_id)
        return replace_row(self, job, revision, stored.successors if stored else successors)

    with patch.object(MemoryJobStore, "_replace", unseen):
        yield


@contextmanager
def _narrowed_blindly() -> Iterator[None]:
    def blindly(predecessor: Job, link: Successor, *, is_new: bool) -> Job:
        others = (each for each in predecessor.successors if each.job_id != link.job_id)
        return replace(predecessor, successors=(*others, link))

    with patch.object(links, "narrowed", blindly):
        yield


@contextmanager
def _unlinked_blindly() -> Iterator[None]:
    def blindly(predecessor: Job, former: Job) -> Job:
        others = (each for each in predecessor.successors if each.job_id != former.job_id)
        return replace(predecessor, successors=tuple(others))

    with patch.object(links, "unlinked", blindly):
        yield


@contextmanager
def _open_without_check() -> Iterator[None]:
    """Who opens a run trusts in its target to report the end."""
    real = Completions.open

    def open_it(self: Completions, *args: Any) -> Any:
        ports = self._ports
        self._ports = replace(ports, indexer=cast(Indexer, _Mute()))
        try:
            return real(self, *args)
        finally:
            self._ports = ports

    with patch.object(Completions, "open", open_it):
        yield


class _Mute:
    """An indexer that sends nothing."""

    def schedule_message(self, message: Message) -> None:
        pass


def _announced_at_once() -> Any:
    """What an indexer sends for a generation made long ago does not wait for the chunks in which
    ticks send by now."""
    at_once = partial(replace, wait_until=None, in_time=None)
    return patch.object(announced, "replace", lambda message, **_: at_once(message))


def _attempt_not_compared() -> Any:
    """A claim over a row goes by its token, its id and its status: a release lowers the attempt
    only."""
    return patch.object(runs, "_claim_of", lambda run: (run.token, run.claim_id, run.status))


_MUTANTS = (
    *chunks.CHUNKS,
    *chunks.RACED,
    *indexing.RACED,
    *handing_over.HANDING_OVER,
    *handing_over.RACED_HAND_OVERS,
    *ticks.TICKS,
)
_BUGS: dict[str, Callable[[], Any]] = {
    **{mutant.name: partial(swapped, mutant.swaps) for mutant in _MUTANTS},
    "announced_at_once": _announced_at_once,
    "any_pause": _any_pause,
    "attempt_not_compared": _attempt_not_compared,
    "link_after_commit": _link_after_commit,
    "followed_anew": _followed_anew,
    "links_unseen": _links_unseen,
    "narrowed_blindly": _narrowed_blindly,
    "unlinked_blindly": _unlinked_blindly,
    "latest_not_sent": _latest_not_sent,
    "open_without_check": _open_without_check,
    "horizon_first": _horizon_first,
    "row_first": _row_first,
    "control_unconditional": _control_unconditional,
    "claim_unconditional": _claim_unconditional,
    "finish_without_token": _finish_without_token,
    "plan_overlooked": plan_overlooked,
    "generation_unasked": generation_unasked,
    "put_off_forgotten": put_off_forgotten,
    "row_before_claim": _row_before_claim,
    "settle_unread": _settle_unread,
    "link_after_watermark": _link_after_watermark,
    "removed_early": _removed_early,
    "stop_unfenced": _stop_unfenced,
}
