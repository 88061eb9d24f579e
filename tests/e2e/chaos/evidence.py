"""A chaos run as evidence, for the checker that judges the simulated runs too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.audit.evidence import JobVersion
from tests.e2e.chaos.customer import Acknowledgement
from tests.e2e.chaos.tables import Found
from tests.e2e.chaos.witness import Arrival
from tests.simulation.judging.evidence import Ack, Delivery, Evidence

EFFECT_BELOW = 300
_BATCH = timedelta(seconds=15)
"""A batch may take so long from the end of a run to its own."""


@dataclass(frozen=True, slots=True)
class Story:
    """All that is known of one chaos run.

    `ended_at` is from when `found` is: what is due later need not be there. `longest_call` is how
    long after its read of the job row an executor may still call the target. `faults` are the
    instants of the kills, `outages` when the emulator was down, `leftovers` what was still under
    way when the waiting was given up.
    """

    found: Found
    arrivals: Sequence[Arrival]
    acknowledgements: Sequence[Acknowledgement]
    ended_at: datetime
    longest_call: timedelta
    faults: Sequence[datetime] = ()
    outages: Sequence[tuple[datetime, datetime]] = ()
    leftovers: Sequence[str] = ()


def evidence_of(story: Story) -> Evidence:
    """What the tables, the target and the customer know; of writes and reads nothing is known, nor
    which process called."""
    jobs = story.found.jobs
    return Evidence(
        versions={job_id: [JobVersion(job.updated_at, job)] for job_id, job in jobs.items()},
        runs=story.found.all_runs,
        deliveries=[_delivery(each) for each in story.arrivals],
        acks=[
            Ack(each.call, each.job_id, each.requested_at, each.acknowledged_at, each.run_id)
            for each in story.acknowledgements
            if each.was_done
        ],
        until=story.ended_at,
        faults=sorted(story.faults),
        outages=list(story.outages),
        leftovers=list(story.leftovers),
        is_complete=False,
        activity=story.found.activity,
        activity_lost=frozenset(_lost(story)),
        summed=story.found.summed,
    )


def _lost(story: Story) -> Iterator[tuple[str, int]]:
    """The attempts that ended while the emulator was down, or just before: the feed need not have
    them, and their batches are acknowledged all the same."""
    for run in story.found.all_runs:
        ends = {record.attempt: record.finished_at for record in run.attempts}
        for attempt, at in {run.attempt: run.finished_at or run.updated_at, **ends}.items():
            if any(began - _BATCH <= at <= end + _BATCH for began, end in story.outages):
                yield run.key.run_id, attempt


def _delivery(arrival: Arrival) -> Delivery:
    is_done = arrival.status < EFFECT_BELOW
    return Delivery(
        run_id=arrival.run_id,
        job_id=arrival.run_id.partition("_")[0],
        attempt=arrival.attempt,
        begun_at=arrival.came_at,
        ended_at=arrival.answered_at,
        is_done=is_done,
        is_success=is_done and arrival.answered_at is not None,
    )
