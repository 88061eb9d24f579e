"""Hosts that hang: whose jobs need not be called one by one to know that their attempts time out.

Jobs are counted one by one (shared/carillon/domain/admission/slowness.py), each by attempts that
hold a place and, as long as they are mixed with others, their whole batch. Many jobs of one owner
on a host that answers nobody would hold every place of a lane for minutes. So an executor
remembers, per owner and host, the time-outs in a row that it has met itself: no read, no write,
forgotten with its process.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.domain.job import Job, Slow
from carillon.domain.targets import WebhookTarget

IN_A_ROW = 5
"""So many attempts of one owner at a host timed out, and none ended in another way meanwhile."""
FRESH = timedelta(minutes=1)
"""What is older says nothing of how the host is now."""


@dataclass(frozen=True, slots=True)
class TimeOuts:
    """Attempts in a row that timed out at one host; the last ended at `last_at`."""

    count: int
    last_at: datetime


def host_of(job: Job) -> tuple[str, str] | None:
    """The job's owner and the host and port that it calls; None where it calls no webhook. How long
    a task lasts is its payload's matter."""
    target = job.target
    return (job.owner, target.address) if isinstance(target, WebhookTarget) else None


def with_time_out(seen: TimeOuts | None, at: datetime) -> TimeOuts:
    count = seen.count if seen is not None and at - seen.last_at <= FRESH else 0
    return TimeOuts(count + 1, max(at, seen.last_at) if seen is not None else at)


def mark_by_host(seen: TimeOuts | None, host: tuple[str, str], now: datetime) -> Slow | None:
    """The mark of a job whose host hangs; None for a host of which that is not known."""
    if seen is None or seen.count < IN_A_ROW or now - seen.last_at > FRESH:
        return None
    return Slow(now, f"the last {seen.count} attempts at {host[1]} timed out")
