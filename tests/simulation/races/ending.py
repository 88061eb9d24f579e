"""What a race may never do: at each effect, and once a healthy system has gone on after it."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.domain.chunks.chunk import Chunk, Outcome, ref_of
from carillon.domain.job import Job, JobState
from carillon.domain.run import FINAL, TIMEOUT_KIND, TRANSITIONS, Run, RunKey, RunKind, RunStatus
from carillon.domain.wheel.entry import entries_of, minute_of, minute_start
from carillon.domain.wheel.segment import Control
from carillon.executor.targets import Success
from carillon.schedules import Recurrence, SlotKind
from carillon.simulation.deployment import Deployment
from carillon.simulation.loop import Loop
from carillon.simulation.targets import Behaviour, SimulatedTargets, TargetCall
from tests.simulation.races.exploration import Exploration, Setting, State, short
from tests.simulation.races.replay import Call
from tests.simulation.races.stores import (
    Content,
    Contents,
    Delivered,
    chunk_held,
    chunks_of,
    contents_of,
    put_into,
)

_FINAL_BUT_SETTLED = frozenset({RunStatus.DEAD, RunStatus.TIMED_OUT})


@dataclass(frozen=True, slots=True)
class Ending:
    """A race that is over. `told` are the requests that were answered; `contents` and `calls` are
    those at the end of the healthy time that followed, `leftovers` what has gone wrong in it."""

    setting: Setting
    told: frozenset[str]
    contents: Contents
    calls: tuple[Delivered, ...]
    leftovers: tuple[str, ...]
    until: datetime

    def run(self, run_id: str) -> Run | None:
        runs = self.contents["runs"]
        return next((run for run in runs if run.key.run_id == run_id), None)


Check = Callable[[Ending], Iterator[str]]


def watch(
    actor: str, call: Call, before: Content, after: Content, forbidden: bool, now: datetime
) -> str | None:
    """What is wrong with one effect, if anything is."""
    match call.port, call.method:
        case "runs", "claim" | "finish" | "discard_claim":
            return _wrong_run(call, before, after, now)
        case "wheel", "put_control":
            return _wrong_control(call, before, after)
        case "chunks", "finish":
            return _wrong_chunk(call.args[0], before, after, now)
        case "targets", "deliver" if forbidden:
            return "a run starts that was claimed, or whose job was read, after a pause or deletion"
        case "targets", "deliver":
            return _wrong_delivery(after)
    return None


def _wrong_run(call: Call, before: Content, after: Content, now: datetime) -> str | None:
    if before == after:
        return None
    asked: Run = call.args[0]
    old = next((run for run in before if run.key == asked.key), None)
    new = next((run for run in after if run.key == asked.key), None)
    if old is None:
        return None
    if call.method != "claim":
        if (old.status, old.token, old.claim_id) == (
            RunStatus.RUNNING,
            asked.token,
            asked.claim_id,
        ):
            return None
        return f"I4: {call.method} of a run under a stale token, over one that is {old.status}"
    assert new is not None
    if old.is_final:
        is_settled = old.status in _FINAL_BUT_SETTLED and new.status is old.status
        return None if is_settled else f"I2: a run that is {old.status} is claimed again"
    if new.status not in TRANSITIONS[old.status]:
        return f"a run that is {old.status} becomes {new.status}"
    if new.token <= old.token:
        return "I4: a claim does not raise the token"
    is_live = old.lease_until is not None and now < old.lease_until
    is_stopped = new.status is RunStatus.CANCELLED
    if is_live and not is_stopped and not _is_report(old, new):
        return "I2: a claim over a live lease"
    told = [each.attempt for each in new.attempts[len(old.attempts) :]]
    if is_stopped and old.status is RunStatus.RUNNING and told != [old.attempt]:
        return f"a run is stopped in attempt {old.attempt}, and tells of {told}"
    return None


def _is_report(old: Run, new: Run) -> bool:
    """Whether a write over an attempt under way is a report about it, or cancels an open run: no
    lease keeps those off. But for its lapse, which is no report."""
    if old.completion is None or new.attempt != old.attempt:
        return False
    is_lapse = new.error is not None and new.error.kind == TIMEOUT_KIND
    return not is_lapse


def _wrong_control(call: Call, before: Content, after: Content) -> str | None:
    asked, over = call.args if len(call.args) == 2 else (call.args[0], call.kwargs["over"])
    if before == after:
        return None
    old, new = _control(before, asked.segment), _control(after, asked.segment)
    if old is None or new is None:
        return None
    if over is None or (old.token, old.lease_owner) != (over.token, over.lease_owner):
        return "I4: the control item is written under a stale token"
    if new.token < old.token or new.horizon < old.horizon:
        return "I1: token or horizon falls"
    if new.complete_until < old.complete_until:
        return "I1: the watermark falls"
    return None


def _control(content: Content, segment: int) -> Control | None:
    controls = content[1] if content else ()
    return next((control for control in controls if control.segment == segment), None)


def _wrong_chunk(asked: Chunk, before: Content, after: Content, now: datetime) -> str | None:
    if before == after:
        return None
    old = chunk_held(before, asked.key)
    if old is None or old.is_final or old.claim_id != asked.claim_id:
        return "I4: a chunk is finished that is final, or under another claim"
    has_died = any(end.outcome is Outcome.DIED for end in (asked.ends or {}).values())
    if has_died and now < old.lease_until:
        return "I2: a chunk is disbanded under a live lease"
    return None


def _wrong_delivery(calls: Content) -> str | None:
    if any(call.is_early for call in calls):
        return "I3: a target is called early"
    if _repeated(calls):
        return "I2: a target is called twice for one attempt"
    return None


def _repeated(calls: Content | list[Delivered]) -> list[tuple[str, int]]:
    counts = Counter((call.run_id, call.attempt) for call in calls)
    return [called for called, count in counts.items() if count > 1]


class Closures:
    """Lets the system go on, healthy, after the end of a race; the same after the same contents.

    Whoever died keeps its lease or its message hidden until they lapse.
    """

    def __init__(self, exploration: Exploration, minutes: int) -> None:
        self._exploration = exploration
        self._minutes = minutes
        self._known: dict[object, Ending] = {}

    @property
    def count(self) -> int:
        return len(self._known)

    def after(self, state: State) -> Ending:
        told = self._exploration.told(state)
        key = (state.contents, state.us)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._went_on(state)
        return Ending(
            known.setting, told, known.contents, known.calls, known.leftovers, known.until
        )

    def _went_on(self, state: State) -> Ending:
        setting = self._exploration.setting
        at = setting.at + timedelta(seconds=sum(setting.passing_seconds[: state.steps_done]))
        contents = self._exploration.contents(state)
        calls = list(contents["targets"])

        def note(seen: TargetCall) -> None:
            if seen.ended_at is None:
                call, begun_at = seen.call, seen.begun_at
                is_early = begun_at < (call.effective_at or call.fire_at)
                calls.append(Delivered(call.run_id, call.attempt, seen.process, begun_at, is_early))

        loop = Loop(at)
        targets = SimulatedTargets(
            loop, lambda *call: Behaviour(0.0, Success(None, is_accepted=True)), note
        )
        deployment = Deployment(loop, setting.options, targets, skips_idle_ticks=True)
        put_into(deployment, contents)
        deployment.start()
        until = at + timedelta(minutes=self._minutes)
        loop.run(loop.us_of(until))
        held = contents_of(deployment)
        left = tuple(_left(deployment, held, until))
        return Ending(setting, frozenset(), held, tuple(calls), left, until)


def _left(deployment: Deployment, held: Contents, until: datetime) -> Iterator[str]:
    for name, error in deployment.crashes:
        yield f"{name} ends in {error!r}"
    for kept in held["queue"]:
        yield f"a message is left: {short(kept.message)}"
    for dead in deployment.dead_letter_queue.kept():
        yield f"a message is left in the dead-letter queue: {short(dead.message)}"
    _, controls = held["wheel"] or ((), ())
    for control in controls:
        if control.held_at(until) or control.lag_minutes(until):
            yield f"I1: the segment is not dispatched: {short(control)}"


def judge(ending: Ending, allowed: frozenset[RunStatus]) -> Iterator[str]:
    """What is wrong with an ending, by the invariants; `allowed` are the outcomes that occurrences
    of an active job may have."""
    yield from ending.leftovers
    for run_id, attempt in _repeated(list(ending.calls)):
        yield f"I2: attempt {attempt} of {_kind(run_id)} was delivered twice"
    if any(call.is_early for call in ending.calls):
        yield "I3: a target is called early"
    for run in ending.contents["runs"]:
        if run.status not in FINAL and not _waits_for_redrive(run, ending):
            yield f"I1: a {run.key.kind} run is left {run.status}"
    jobs = {job.job_id: job for job in ending.contents["jobs"]}
    for run in ending.contents["runs"]:
        if run.key.job_id not in jobs:
            yield f"a run without a job is {run.status}"
    for call in ending.calls:
        if call.run_id.split("_")[0] not in jobs:
            yield "a job that was never committed has run"
    for job in jobs.values():
        yield from _judge_job(job, ending, allowed)


def _waits_for_redrive(run: Run, ending: Ending) -> bool:
    """A redrive died before it sent, and nobody was told: the dead letter waits for the next."""
    if not run.key.redrive or run.status is not RunStatus.SCHEDULED or run.token:
        return False
    dead = next(row for row in ending.contents["runs"] if row.key.redriven == run.key)
    return dead.settled is None


def _judge_job(job: Job, ending: Ending, allowed: frozenset[RunStatus]) -> Iterator[str]:
    rows = {
        run.key.fire_at: run
        for run in ending.contents["runs"]
        if run.key.job_id == job.job_id and run.key.is_occurrence
    }
    owed = set(_owed(job, ending))
    for fire_at in sorted(owed):
        row = rows.get(fire_at)
        has_succeeded = _has_succeeded_in_chunk(job, fire_at, ending)
        if row is None and (has_succeeded or _is_covered(job, fire_at, ending)):
            continue
        if has_succeeded:
            yield f"I2: the occurrence of {fire_at:%H:%M:%S} has a row beside its success"
        elif row is None:
            yield f"I1: the occurrence of {fire_at:%H:%M:%S} has no outcome"
        elif job.state is JobState.ACTIVE and row.status not in allowed:
            yield f"I1: the occurrence of {fire_at:%H:%M:%S} is {row.status} ({row.reason})"
    if job.state is JobState.ACTIVE:
        if job.previous is None:
            for fire_at in sorted(set(rows) - owed):
                yield f"an occurrence at {fire_at:%H:%M:%S} is none of the schedule's"
        yield from _judge_entries(job, ending)


def _has_succeeded_in_chunk(job: Job, fire_at: datetime, ending: Ending) -> bool:
    """Whether a chunk of its second has its success, under any generation of the job."""
    known = job.generation.generation_id, *(each.generation_id for each in job.replaced)
    refs = {ref_of(job.job_id, each, job.spread_seconds) for each in known}
    due_at = fire_at + timedelta(seconds=job.spread_seconds)
    return any(
        ref in refs and end.outcome is Outcome.OK
        for chunk in chunks_of(ending.contents["chunks"])
        if minute_start(chunk.key.minute) + timedelta(seconds=chunk.key.second) == due_at
        for ref, end in (chunk.ends or {}).items()
    )


def _is_covered(job: Job, fire_at: datetime, ending: Ending) -> bool:
    """Whether a catch-up of the tick has passed over it."""
    return any(
        run.key.kind is RunKind.MISSED
        and run.key.job_id == job.job_id
        and run.covers_from is not None
        and run.covers_from <= fire_at <= run.key.fire_at
        for run in ending.contents["runs"]
    )


def _owed(job: Job, ending: Ending) -> Iterator[datetime]:
    """The occurrences that must have an outcome."""
    until = ending.until - timedelta(minutes=1)
    if job.state is JobState.PAUSED:
        until = min(until, job.paused_at or until)
    if job.is_tombstone:
        until = min(until, job.updated_at)
    yield from job.schedule.between(job.generation.from_at, until)
    first: dict[str, Recurrence] = {
        row.generation.generation_id: row.schedule for row in ending.setting.contents["jobs"]
    }
    for known in job.replaced:
        schedule = first.get(known.generation_id, job.schedule)
        yield from schedule.between(known.from_at, known.until_at)


def _judge_entries(job: Job, ending: Ending) -> Iterator[str]:
    """The standing entries of the generation that counts are there, or the next link of its
    chain."""
    entries, _ = ending.contents["wheel"]
    in_force = job.generation.generation_id, job.segment
    own = {entry.slot for entry in entries if (entry.generation_id, entry.segment) == in_force}
    wanted = {entry.slot for entry in entries_of(job)}
    if all(slot.kind is not SlotKind.DATED for slot in wanted):
        if not wanted <= own:
            yield "I1: an entry of an active job is missing"
        return
    control = _control(ending.contents["wheel"], job.segment)
    watermark = 0 if control is None else control.watermark
    following = job.schedule.next(ending.until)
    is_due_later = following is not None and minute_of(following) > watermark
    if is_due_later and not any(slot.number > watermark for slot in own):
        yield "I1: the chain of an active job has ended"


def _kind(run_id: str) -> str:
    key = RunKey.from_run_id("", run_id)
    return f"a {key.kind} run ({key.redrive})"
