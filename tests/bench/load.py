"""`make bench-load RATE=7000 MINUTES=5`: the lag of runs on the local stack, and who used the CPU.

A stack of its own on MiniStack, deployed by the real command, loopback only. RATE jobs fire once a
minute each, spread over its seconds, and call a task that ends at once. They are put on the wheel
by the stores, as if they had been made hours ago, and have no occurrence after the bench. The first
minute, in which processes start, is not measured. Everything is stopped at the end.
"""

import argparse
import os
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from carillon.clock import SystemClock
from carillon.domain.job import Job
from carillon.domain.run import Run, RunStatus
from carillon.domain.wheel.entry import minute_of, minute_start
from carillon.local.deployment import Deployment
from carillon.local.emulator import Emulator
from carillon.services.history import History
from carillon.stores.ports import Stores
from tests.e2e.chaos.tables import opened
from tests.e2e.chaos.workers import Workers
from tests.e2e.conftest import LAG_LIMIT_SECONDS, deployed
from tests.e2e.drills.neighbours import Lags
from tests.support.standing import standing_jobs

OWNER = "bench"
SEGMENTS = 4
MOST_JOBS, MOST_MINUTES = 20_000, 30
_FILED_A_SECOND = 40
"""Less than were filed on a busy machine."""
_AHEAD_MINUTES = 3
"""Nothing is due before ticks find it themselves: they announce two minutes ahead."""
_TAIL_MINUTES = 3
"""Ticks of the last measured minute have work, too."""
_NAME_IN_ARN = 6
_DRAIN_SECONDS, _LOOKS, _READERS = 10, 3, 8
MINISTACK, TICKS, EXECUTORS, TASKS, OTHERS = (
    "MiniStack",
    "ticks",
    "executors",
    "tasks",
    "other functions",
)


@dataclass(frozen=True)
class Span:
    """The measured minutes, as instants; the end is not part of it."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.begin).total_seconds()


@dataclass(frozen=True)
class Load:
    """The measured minutes: the lags of runs that started, `counts` by status, `due` occurrences.
    Of the processor: seconds by kind of process, and those in which any process ran."""

    lags: Lags
    counts: Counter[str]
    retried: int
    due: int
    cpu_seconds: Mapping[str, float]
    busy_seconds: float
    span: Span

    @property
    def is_whole(self) -> bool:
        return self.counts[RunStatus.SUCCEEDED] == self.due

    def __str__(self) -> str:
        missing = self.due - self.counts.total()
        told = ", ".join(f"{count:,} {status}" for status, count in self.counts.most_common())
        p99 = self.lags.quantile(0.99)
        goal = "met" if p99 <= LAG_LIMIT_SECONDS else "missed"
        ours = sum(self.cpu_seconds.values())
        cores = os.cpu_count() or 1
        lines = [
            f"due      {self.due:,}: {told}, {missing:,} without a run; {self.retried:,} retried",
            f"lag      {self.lags}; goal p99 {LAG_LIMIT_SECONDS} s: {goal}",
            f"CPU      {ours:.1f} s of {cores * self.span.seconds:.0f}; "
            f"other work of the machine {max(0.0, self.busy_seconds - ours):.1f} s",
        ]
        for kind, seconds in self.cpu_seconds.items():
            each = seconds / self.due * 1000
            lines.append(
                f"  {kind:16} {seconds:7.1f} s {seconds / ours:5.0%}  {each:6.2f} ms a run"
            )
        return "\n".join(lines)


class Processor:
    """The CPU that the processes of a stack have used so far."""

    def __init__(self, emulator: Emulator, deployment: Deployment) -> None:
        self._emulator = emulator
        self._workers = Workers(emulator)
        self._kinds = {
            arn.split(":")[_NAME_IN_ARN]: TICKS if output == "TickFunction" else EXECUTORS
            for output, arn in deployment.outputs.items()
            if output == "TickFunction" or output.startswith("ExecutorFunction")
        }

    def seconds(self) -> dict[int, tuple[str, float]]:
        """Kind and CPU seconds of each living process, by its id."""
        family = self._emulator.family
        kinds = {
            worker.process_id: self._kinds.get(worker.function, OTHERS)
            for worker in self._workers.living()
        }
        kinds[family.group_id] = MINISTACK
        members = {process_id: kinds.get(process_id, TASKS) for process_id in family.members()}
        return {each: (kind, _cpu_seconds(each)) for each, kind in members.items()}


def used(
    before: Mapping[int, tuple[str, float]], after: Mapping[int, tuple[str, float]]
) -> dict[str, float]:
    """CPU seconds by kind in between; those of processes that have ended meanwhile are left out."""
    seconds = dict.fromkeys((MINISTACK, TICKS, EXECUTORS, TASKS, OTHERS), 0.0)
    for process_id, (kind, so_far) in after.items():
        seconds[kind] += so_far - before.get(process_id, (kind, 0.0))[1]
    return seconds


def load(emulator: Emulator, deployment: Deployment, rate: int, minutes: int) -> Load:
    """File the jobs, let them fire, and look at what became of the measured minutes."""
    processor = Processor(emulator, deployment)
    with opened(deployment) as stores:
        now = datetime.now(UTC)
        first = minute_of(now + timedelta(seconds=rate / _FILED_A_SECOND)) + _AHEAD_MINUTES
        begin = minute_start(first + 1)
        span = Span(begin, begin + timedelta(minutes=minutes))
        jobs = _filed(stores, rate, range(first, first + 1 + minutes + _TAIL_MINUTES))
        assert datetime.now(UTC) < span.begin, "the machine is too busy: filing took too long"
        took = (datetime.now(UTC) - now).total_seconds()
        print(f"{rate:,} jobs filed in {took:.0f} s; measured from {span.begin:%H:%M}", flush=True)
        _sleep_until(span.begin)
        before, busy = processor.seconds(), _busy_seconds()
        _sleep_until(span.end)
        cpu_seconds, busy = used(before, processor.seconds()), _busy_seconds() - busy
        runs = _runs(stores, jobs, span, rate * minutes)
    lags = sorted(run.lag_seconds for run in runs if run.lag_seconds is not None)
    return Load(
        Lags(tuple(lags)),
        Counter(run.status.value for run in runs),
        sum(run.attempt > 1 for run in runs),
        rate * minutes,
        cpu_seconds,
        busy,
        span,
    )


def _filed(stores: Stores, rate: int, minutes: range) -> list[Job]:
    """Jobs due once in each of these minutes, and in no other within the hour."""
    due = ",".join(str(minute % 60) for minute in minutes)
    schedules = ((f"load-{number}", f"{number % 60} {due} * * * *") for number in range(rate))
    return standing_jobs(stores, OWNER, schedules, SEGMENTS)


def _runs(stores: Stores, jobs: Sequence[Job], span: Span, due: int) -> list[Run]:
    """The runs of the span when all have ended, or as they are after so many looks."""
    history = History.of(stores, SystemClock(), timedelta(days=30))
    last = span.end - timedelta(seconds=1)

    def of(job: Job) -> Sequence[Run]:
        page = history.page(OWNER, job.job_id, MOST_MINUTES, from_at=span.begin, until_at=last)
        return page.items

    for _ in range(_LOOKS):
        time.sleep(_DRAIN_SECONDS)
        with ThreadPoolExecutor(_READERS) as readers:
            runs = [run for each in readers.map(of, jobs) for run in each]
        if sum(run.is_final for run in runs) == due:
            break
    return runs


def _cpu_seconds(process_id: int) -> float:
    """User and system time; 0 for a process that has ended."""
    try:
        columns = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(columns[11]) + int(columns[12])) / os.sysconf("SC_CLK_TCK")


def _busy_seconds() -> float:
    """Of all processors since the machine began."""
    _, user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split("\n")[0].split()
    return sum(map(int, (user, nice, system, *interrupts[:2]))) / os.sysconf("SC_CLK_TCK")


def _sleep_until(instant: datetime) -> None:
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.load", description=__doc__)
    parser.add_argument("--rate", type=int, default=7_000, help="jobs, due once a minute each")
    parser.add_argument("--minutes", type=int, default=5, help="that are measured")
    parser.add_argument("--chunks", action="store_true", help="send the runs in chunks")
    given = parser.parse_args()
    if not (0 < given.rate <= MOST_JOBS and 0 < given.minutes <= MOST_MINUTES):
        parser.error(f"at most {MOST_JOBS:,} jobs and {MOST_MINUTES} minutes")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    sent = "in chunks" if given.chunks else "each alone"
    print(
        f"{machine}, {datetime.now(UTC):%Y-%m-%d}; {given.rate:,} runs a minute, {sent}", flush=True
    )
    context = {
        "task_modules": "carillon.executor.tasks.samples",
        "segments": SEGMENTS,
        "chunks": given.chunks,
    }
    emulator = Emulator()
    with deployed(context, emulator) as deployment:
        found = load(emulator, deployment, given.rate, given.minutes)
    print(found)
    return 0 if found.is_whole else 1


if __name__ == "__main__":
    raise SystemExit(main())
