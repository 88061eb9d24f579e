"""What is promised to owners beside each other: an owner's runs that last are held to a number, and
an owner's few late occurrences do not wait for another's many."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from carillon.audit.evidence import Gap, Violation
from carillon.audit.outcomes import in_gap
from carillon.clock import ceil_second
from carillon.domain.job import Lane
from carillon.domain.run import Run, RunStatus
from carillon.domain.wheel.pace import bucket_of
from tests.simulation.judging.checker_calls import QUICK_SECONDS, lag_of, may_wait
from tests.simulation.judging.checker_load import waits_for_a_share
from tests.simulation.judging.evidence import Delivery
from tests.simulation.judging.known import Known

_SHORT = timedelta(seconds=2)
"""A call that has lasted so long takes a permit."""
_KNOWN_FOR = timedelta(seconds=10)
"""What was read of an owner's permits is good enough for so long."""
_WORKED_OFF = timedelta(minutes=1)
_INVOKED = timedelta(minutes=3)
"""The tick that has worked off a backlog was invoked no longer ago than that, late as it may be;
with a clock that is ahead it takes up minutes, and so a gap, that are yet to come."""


def held_to_permits(known: Known) -> Iterator[Violation]:
    """With a limit of an owner's concurrent runs none is called while so many others of the owner
    have lasted for twelve seconds; nor, if it has waited before, for two.

    Of processes that nothing struck: where a store fails that costs a permit, never a run.
    """
    terms = known.evidence.circumstances
    limit = terms.owner_concurrent_runs
    if not limit:
        return
    slack = lag_of(terms)
    of_owners: defaultdict[str, list[Delivery]] = defaultdict(list)
    for each in known.evidence.deliveries:
        if each.is_untouched:
            of_owners[known.evidence.versions[each.job_id][-1].job.owner].append(each)
    for owner, deliveries in of_owners.items():
        for each in deliveries:
            counted = _SHORT + slack + (timedelta() if _had_waited(known, each) else _KNOWN_FOR)
            lasting = [
                other.run_id
                for other in deliveries
                if other.begun_at < each.begun_at - counted
                and other.ended_at is not None
                and other.ended_at > each.begun_at
            ]
            if len(lasting) >= limit:
                text = (
                    f"{limit} runs of {owner} may last at once: {each.run_id} was called at"
                    f" {each.begun_at} beside {', '.join(lasting)}"
                )
                yield Violation("permits", each.job_id, text)


def _had_waited(known: Known, delivery: Delivery) -> bool:
    """Whether the call follows a claim by the message of the run's current wait."""
    key = known.run_ids.get(delivery.run_id)
    writes = () if key is None else known.writes.get(key, ())
    claims = [
        write
        for write in writes
        if write.method == "claim"
        and write.process == delivery.process
        and write.at <= delivery.begun_at
    ]
    if not claims:
        return False
    before, after = claims[-1].before, claims[-1].after
    if before is None or after is None or before.status is not RunStatus.SCHEDULED:
        return False
    return before.waits > 0 and before.generation_id == after.generation_id


def shared_out(known: Known) -> Iterator[Violation]:
    """Of what ticks catch up on in a segment, an owner's n messages have started once every owner
    has had n places.

    Of owners that count apart; where nothing struck, nothing else was down, and the backlog was
    dispatched at once, the only one of its segment; and of runs that no policy, no permit and no
    share of lane slow has held back.
    """
    evidence, terms = known.evidence, known.evidence.circumstances
    if terms.owner_starts_per_minute or terms.latency_seconds > QUICK_SECONDS:
        return
    # Not a single minute, as before the first visit of a new segment.
    segments = Counter(gap.segment for gap in evidence.gaps if gap.until_at > gap.from_at)
    spacing = timedelta(minutes=1) / max(1, terms.catch_up_per_minute // terms.segments)
    for gap in evidence.gaps:
        begun_at = gap.taken_up_at
        if segments[gap.segment] > 1 or begun_at is None or gap.cleared_at is None:
            continue
        if gap.cleared_at > begun_at + _WORKED_OFF:
            continue
        counts = Counter[int]()
        for (segment, owner), count in evidence.caught_up.items():
            if segment == gap.segment:
                counts[bucket_of(owner)] += count
        for bucket, rows in _late(known, gap).items():
            places = 1 + sum(min(count, counts[bucket]) for count in counts.values())
            allowed = ceil_second(gap.cleared_at + places * spacing) + lag_of(terms)
            for row in rows:
                deliveries = known.deliveries.get(row.key.run_id)
                if not deliveries or may_wait(known, row.key.job_id):
                    continue
                if deliveries[0].job_lane is Lane.SLOW or _waited(known, row):
                    continue
                started_at = deliveries[0].begun_at
                if started_at > allowed and _nothing_struck(known, gap, started_at):
                    text = (
                        f"{row.key.run_id}, late, was first called at {started_at}: its owner's"
                        f" share allows for {allowed:%Y-%m-%d %H:%M:%S.%f} at the latest"
                    )
                    yield Violation("share", row.key.job_id, text, row.key.fire_at)


def _waited(known: Known, row: Run) -> bool:
    """True if the run has waited for a permit, or for a message of another generation."""
    rows = (write.after for write in known.writes.get(row.key, ()))
    is_held = any(each is not None and waits_for_a_share(each) for each in rows)
    return is_held or known.times_in_others_hands(row) > 0


def _late(known: Known, gap: Gap) -> Mapping[int, list[Run]]:
    """The runs of occurrences in the gap, by what tells owners apart."""
    late: defaultdict[int, list[Run]] = defaultdict(list)
    for job_id, versions in known.evidence.versions.items():
        job = versions[-1].job
        if {version.job.segment for version in versions} != {gap.segment}:
            continue
        if len({version.job.generation.generation_id for version in versions}) > 1:
            continue  # where messages of two generations meet, one waits for the other
        for row in known.rows.get(job_id, ()):
            is_own = row.key.is_occurrence
            if is_own and in_gap([gap], row.effective_at or row.key.fire_at):
                late[bucket_of(job.owner)].append(row)
    return late


def _nothing_struck(known: Known, gap: Gap, until: datetime) -> bool:
    """Since the beginning of the gap, or the tick that worked it off; the gap itself apart."""
    evidence = known.evidence
    since = min(gap.from_at, (gap.cleared_at or until) - _INVOKED)
    if bisect_left(evidence.faults, since) != bisect_right(evidence.faults, until):
        return False
    begun_at = gap.taken_up_at or until
    others = (span for span in evidence.outages if span[1] != gap.cleared_at)
    return not any(begin <= until and end > begun_at for begin, end in others)
