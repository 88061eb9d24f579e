"""What jobs promise about load: places of a key, starts of a rate, one run that waits its turn."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from carillon.audit.evidence import Violation
from carillon.domain.admission.state import PERMITS_ROW, SLOW_LANE_ROW
from carillon.domain.job import Job
from carillon.domain.policies import Overlap
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from tests.simulation.judging.checker_calls import QUICK_SECONDS, lag_of, recovery
from tests.simulation.judging.evidence import Delivery, RunWrite
from tests.simulation.judging.known import Known

Limit = tuple[int, int]
"""So many starts in so many seconds."""
AdmissionRow = tuple[str, str]
"""An owner, and the name of one of the owner's gates."""

_SLOT_KEPT = timedelta(seconds=2)
"""How long after its slot a run may start that something else holds back."""
_READ_WITHIN = timedelta(minutes=10)
"""A process that stands still may write so long after it has read a job's row."""
_OWNER = "owner"
_SHARES = ("its owner's", f"gate {SLOW_LANE_ROW}", f"gate {PERMITS_ROW}")
"""What notes of runs say that wait for a share, or for others to have passed its gate."""
_FEW_MESSAGES = 40
_COPIES = 4
"""What doubled and dying ticks, creators beside them and duplicates of SQS bring at most, on the
average of all runs in flight."""

_UNDONE_WITHIN = timedelta(minutes=6)
"""How long copies of a message last beyond the claim that they have waited for."""


def crowded(known: Known) -> Iterator[Violation]:
    """At most `limit` runs of a concurrency key call their targets at once.

    Of processes that nothing struck: the place of one that stood still is free when its lease ends.
    Of a run whose target reports only the last attempt counts: by its report the one before ended,
    however long its call lasts.
    """
    limits: dict[AdmissionRow, int] = {}
    of_keys: defaultdict[AdmissionRow, list[Delivery]] = defaultdict(list)
    for each in known.evidence.deliveries:
        place = _job_of(known, each)
        if place is None or place.spec.concurrency is None or not each.is_untouched:
            continue
        wanted = place.spec.concurrency
        key = (place.owner, wanted.key)
        limits[key] = max(limits.get(key, 0), wanted.limit)
        of_keys[key].append(each)
    for key, deliveries in of_keys.items():
        under_way: list[Delivery] = []
        for each in sorted(deliveries, key=lambda each: each.begun_at):
            under_way = [
                other
                for other in under_way
                if other.ended_at is not None and other.ended_at > each.begun_at
                if not (each.run_id == other.run_id and _reports(known, each))
            ]
            under_way.append(each)
            if len(under_way) > limits[key]:
                names = ", ".join(other.run_id for other in under_way)
                text = (
                    f"{limits[key]} runs may hold {key[1]!r} at once; at {each.begun_at}: {names}"
                )
                yield Violation("concurrency", each.job_id, text)


def _reports(known: Known, delivery: Delivery) -> bool:
    job = _job_of(known, delivery)
    return job is not None and job.spec.target.completion is not None


def granted_too_often(known: Known) -> Iterator[Violation]:
    """A rate grants at most `limit` starts in any of its periods, whatever strikes.

    Of keys with one limit: under a changed one starts are granted twice, and the first forgotten.
    """
    limits = _limits(known)
    slots: defaultdict[AdmissionRow, list[datetime]] = defaultdict(list)
    for grant in known.evidence.grants:
        slots[grant.owner, grant.gate].append(grant.slot_at)
    for gate, times in slots.items():
        if len(limits.get(gate, ())) == 1:
            (limit,) = limits[gate]
            for first, last in _too_close(sorted(times), limit, timedelta()):
                text = f"{gate[1]} allows {limit}, and granted more from {first} to {last}"
                yield Violation("rate", "", text)


def started_too_often(known: Known) -> Iterator[Violation]:
    """Where nothing was broken for long, no more runs start in a period than the rate allows, but
    for the lag of each. A callback counts in its owner's rate alone.

    Of several limits of a key each is kept by itself, and so all of them together: in the shortest
    of their periods no more start than they allow in sum. Not where permits hold back who has a
    slot, for ten seconds and more, or a job's slot waits for its owner's: of such only what was
    granted is judged.
    """
    evidence, limits = known.evidence, _limits(known)
    if not evidence.is_complete or evidence.circumstances.owner_concurrent_runs:
        return
    starts: defaultdict[AdmissionRow, list[datetime]] = defaultdict(list)
    for each in sorted(evidence.deliveries, key=lambda each: each.begun_at):
        owner = known.evidence.versions[each.job_id][-1].job.owner
        starts[owner, _OWNER].append(each.begun_at)
        job = _job_of(known, each)
        if job is not None and job.spec.rate is not None:
            starts[_gate_of(job)].append(each.begun_at)
    for gate, times in starts.items():
        waits_for_owners = gate[1] != _OWNER and evidence.circumstances.owner_starts_per_minute
        if gate not in limits or waits_for_owners:
            continue
        lag = _SLOT_KEPT + lag_of(evidence.circumstances)
        limit = (sum(count for count, _ in limits[gate]), min(per for _, per in limits[gate]))
        for first, last in _too_close(times, limit, lag):
            if known.is_calm(first - recovery(evidence.circumstances), last):
                text = f"{gate[1]} allows {limit}, and more began from {first} to {last}"
                yield Violation("rate", "", text)


def waits_by_no_rate(known: Known) -> Iterator[Violation]:
    """A run that waits for a start does so by a rate that its job, or its owner, has: it looks each
    hour whether the job has another by now."""
    per_minute = known.evidence.circumstances.owner_starts_per_minute
    for job_id, rows in known.rows.items():
        last = known.evidence.versions[job_id][-1] if job_id in known.evidence.versions else None
        if last is None:
            continue
        rate = last.job.spec.rate
        own = [(rate.limit, rate.per)] if rate is not None else []
        names = tuple(f"{limit} starts in {per} s " for limit, per in (*own, (per_minute, 60)))
        for row in rows:
            is_late = row.updated_at > last.at + _READ_WITHIN
            by_a_rate = not row.is_final and " starts in " in (row.note or "")
            if by_a_rate and is_late and not (row.note or "").startswith(names):
                text = f"{row.key.run_id} still waits at {row.updated_at}: {row.note}"
                yield Violation("rate", job_id, text, row.key.fire_at)


def _too_close(
    times: Sequence[datetime], limit: Limit, lag: timedelta
) -> Iterator[tuple[datetime, datetime]]:
    count, seconds = limit
    for first, last in zip(times, times[count:], strict=False):
        if last - first < timedelta(seconds=seconds) - lag:
            yield first, last


def _limits(known: Known) -> Mapping[AdmissionRow, set[Limit]]:
    """By gate, all limits that any job which names it has ever had."""
    per_minute = known.evidence.circumstances.owner_starts_per_minute
    found: defaultdict[AdmissionRow, set[Limit]] = defaultdict(set)
    for versions in known.evidence.versions.values():
        for version in versions:
            rate = version.job.spec.rate
            if rate is not None:
                found[_gate_of(version.job)].add((rate.limit, rate.per))
            if per_minute:
                found[version.job.owner, _OWNER].add((per_minute, 60))
    return found


def _gate_of(job: Job) -> AdmissionRow:
    key = "" if job.spec.rate is None else job.spec.rate.key
    return job.owner, f"rate/{key}" if key else f"rate-of-job/{job.job_id}"


def _job_of(known: Known, delivery: Delivery) -> Job | None:
    """The row that the caller had read; None for callbacks, which pass no policy."""
    key = known.run_ids.get(delivery.run_id)
    if key is None or key.kind is RunKind.CALLBACK:
        return None
    return known.job_at(delivery.job_id, delivery.job_revision)


def out_of_turn(known: Known) -> Iterator[Violation]:
    """Under `queue_one` one occurrence waits at most, and that one is not skipped for an overlap.

    Of jobs that nothing else holds back, and that had this policy at any time. Not where calls take
    so long that a run which has its turn goes back, since its process ends soon. Where the answer
    of a gate was lost one may wait that has the place of the active one: only what nothing has
    struck meanwhile is judged.
    """
    terms = known.evidence.circumstances
    is_limited = terms.owner_starts_per_minute or terms.owner_concurrent_runs
    if is_limited or terms.latency_seconds > QUICK_SECONDS:
        return
    for job_id, versions in known.evidence.versions.items():
        if not all(_only_queues(version.job) for version in versions):
            continue
        yield from _out_of_turn(known, job_id)


def _only_queues(job: Job) -> bool:
    is_free = job.spec.concurrency is None and job.spec.rate is None and job.spec.tolerance is None
    return job.spec.overlap is Overlap.QUEUE_ONE and is_free


def waits_for_a_share(row: Run) -> bool:
    """Whether a limit of its owner holds the run back, and not its turn."""
    return row.note is not None and any(each in row.note for each in _SHARES)


def _is_put_off(row: Run, at: datetime) -> bool:
    """Whether the run had looked again, and was put back as it was: it has its turn, and waits for
    a process with time enough."""
    return row.next_attempt_at is not None and row.next_attempt_at <= at


def _out_of_turn(known: Known, job_id: str) -> Iterator[Violation]:
    waiting: dict[RunKey, datetime] = {}
    claimed: dict[RunKey, datetime] = {}
    waited: set[RunKey] = set()
    for write in known.evidence.writes:
        row = write.after or write.before
        if row is None or row.key.job_id != job_id:
            continue
        key = row.key
        if not key.is_occurrence:
            continue
        status = None if write.after is None else write.after.status
        is_waiting = status is RunStatus.SCHEDULED and not waits_for_a_share(row)
        if not is_waiting or _is_put_off(row, write.at):
            waiting.pop(key, None)
            claimed[key] = write.at
        else:  # what is lost while it passes the gate comes before it is put back
            waiting.setdefault(key, claimed.get(key, write.at))
            waited.add(key)
            if len(waiting) > 1 and known.is_calm(min(waiting.values()), write.at):
                names = ", ".join(sorted(each.run_id for each in waiting))
                text = f"two occurrences wait for their turn at {write.at}: {names}"
                yield Violation("queue_one", job_id, text, key.fire_at)
        is_overlap = status is RunStatus.SKIPPED and row.reason == "overlap"
        if is_overlap and key in waited:
            text = f"{key.run_id} had waited for its turn, and was skipped at {write.at}"
            yield Violation("queue_one", job_id, text, key.fire_at)
        if known.is_taken_along(write):
            waited.discard(key)


def in_proportion(known: Known) -> Iterator[Violation]:
    """The messages in flight stay in proportion to the runs that they are about, whatever strikes:
    copies of a message that waits die out, at any rate of duplication. No row ends those of a run
    whose claim was undone: that is put off for want of time, or is nobody's."""
    undone = [write.at for write in known.evidence.writes if _is_undone(write)]
    for load in known.evidence.loads:
        lately = sum(load.at - _UNDONE_WITHIN < at <= load.at for at in undone)
        if load.messages > _FEW_MESSAGES + (_COPIES + load.again) * load.runs + lately:
            text = f"{load.messages} messages about {load.runs} runs were in flight at {load.at}"
            yield Violation("runaway", "", text)


def _is_undone(write: RunWrite) -> bool:
    """Whether a claim was given back, and its message is to come again: no row is left, or the one
    that it was made over. One that a policy keeps waiting has another message from then on."""
    before, after = write.before, write.after
    if before is None or after is None:
        return after is None
    return after.attempt < before.attempt and after.waits <= before.waits
