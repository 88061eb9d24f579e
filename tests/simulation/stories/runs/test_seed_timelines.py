"""The four timelines of the seed 004_0db9a28ac7739f5f, minute by minute in virtual time.

A job of one minute's interval is due at second 30; how long its messages lie in the queue before an
executor takes them is what each table implies. Ticks and executors are the real ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.admission.state import job_admission
from carillon.domain.job import Job
from carillon.domain.policies import CatchUp, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.support.world import OWNER, World

START = datetime(2026, 3, 1, tzinfo=UTC)
TOLERANCE_SECONDS = 5
"""The seed leaves it open; its tables allow for 3 (57 s is long enough) to 31 (28 s is not)."""

Row = tuple[str, str, str, str]
"""Minute and second, event, next run, last run: a row of the seed's tables. Of a row that begins a
run the seed gives the last run now as it was before and now as it is after; here it is after."""

EXPECTED: list[Row] = [
    ("00:00", "Initial state", "00:30", "-"),
    ("00:30", "Cron enqueues A1", "01:30", "-"),
    ("00:35", "A1 begins", "01:30", "00:35"),
    ("00:45", "A1 ends", "01:30", "00:35"),
    ("01:00", "Cron executes", "01:30", "00:35"),
    ("01:30", "Cron enqueues A2", "02:30", "00:35"),
    ("01:32", "A2 begins", "02:30", "01:32"),
]
FULL_QUEUE: list[Row] = [
    ("00:00", "Initial state", "00:30", "-"),
    ("00:30", "Cron enqueues A1", "01:30", "-"),
    ("01:00", "Cron executes", "01:30", "-"),
    ("01:30", "Cron enqueues A2", "02:30", "-"),
    ("01:35", "A1 begins", "02:30", "01:35"),
    ("01:38", "A1 ends", "02:30", "01:35"),
    ("02:00", "Cron executes", "02:30", "01:35"),
    ("02:30", "Cron enqueues A3", "03:30", "01:35"),
    ("02:37", "A2 begins", "03:30", "02:37"),
]
DROPPED: list[Row] = [
    *FULL_QUEUE[:7],
    ("02:03", "A2 is dropped", "02:30", "01:35"),
    ("02:30", "Cron enqueues A3", "03:30", "01:35"),
    ("02:56", "A3 begins", "03:30", "02:56"),
]
QUOTA: list[Row] = [
    *EXPECTED[:3],
    ("01:00", "Cron executes", "01:30", "00:35"),
    ("01:05", "A1 forced to end", "01:30", "00:35"),
    *EXPECTED[5:],
]


@dataclass
class Queue:
    """What a table implies: when an executor takes a message, and when its task would end."""

    taken: list[str]
    ends: dict[str, str]


class Timeline:
    """The world, played along the seconds of a table; writes down what happens."""

    def __init__(self, queue: Queue) -> None:
        self.world = World(START, segments=1)
        self.world.targets.behave = self.run_task
        self.queue = queue
        self.log: list[Row] = []
        self.job = self.world.create(
            "A",
            "every 1m offset 30s",
            tolerance=TOLERANCE_SECONDS,
            catch_up=CatchUp.ALL,
            timeout_seconds=None,
            retry=RetryPolicy(max_attempts=1),
        )
        self.note("Initial state")
        self.world.tick()

    def play_to(self, until: str) -> None:
        while self.clock < until:
            self.second()

    def second(self) -> None:
        """One second passes: ticks at full minutes, executors when the table says so."""
        self.world.clock.advance(1)
        now = self.world.clock.now()
        if now.second == 0:
            self.world.tick()
            self.note("Cron executes")
        for kept in self.world.queue.kept():
            if kept.receive_count == 0 and kept.visible_at == now == kept.message.due_at:
                self.note(f"Cron enqueues {self.name(kept.message.key.fire_at)}")
        if self.clock in self.queue.taken:
            self.take_one()

    def take_one(self) -> None:
        """An executor comes to the message that has been in the queue for longest."""
        now = self.world.clock.now()
        (received,) = self.world.queue.receive(now, 1)
        self.world.executor.handle(received.message, now + timedelta(seconds=60))
        self.world.queue.delete(received.receipt)
        name = self.name(received.message.key.fire_at)
        run = self.world.runs.get(received.message.key)
        assert run is not None
        if run.status is RunStatus.SKIPPED:
            assert run.reason == "spacing"
            self.note(f"{name} is dropped")
        elif run.status is RunStatus.TIMED_OUT:
            self.note(f"{name} forced to end")
        elif name in self.queue.ends:
            self.note(f"{name} ends")

    def run_task(self, call: Call) -> Outcome:
        """The task goes on to its end in the table, or to its time limit; time passes meanwhile."""
        name = self.name(call.fire_at)
        self.note(f"{name} begins")
        limit_at = self.world.clock.now() + timedelta(seconds=call.timeout_seconds)
        end = self.queue.ends.get(name, self.clock)
        while self.clock < end:
            if self.world.clock.now() >= limit_at:
                error = RunError("timeout", "the task was killed at its limit")
                return Failure(error, timed_out=True)
            self.second()
        return Success("done")

    def note(self, event: str) -> None:
        self.log.append((self.clock, event, *self.state()))

    @property
    def clock(self) -> str:
        return f"{self.world.clock.now():%M:%S}"

    def name(self, fire_at: datetime) -> str:
        """A1 is due in the first minute, A2 in the second."""
        return f"A{fire_at.minute + 1}"

    def state(self) -> tuple[str, str]:
        """The seed's columns: the next run, and the last one that began."""
        following = self.job.schedule.next(self.world.clock.now())
        gate = self.world.admission_rows.get(OWNER, job_admission(self.job.job_id))
        began = "-" if gate is None or gate.started_at is None else f"{gate.started_at:%M:%S}"
        return f"{following:%M:%S}", began


TABLES = {
    "expected": (EXPECTED, Queue(["00:35", "01:32"], {"A1": "00:45"})),
    "full-queue": (FULL_QUEUE, Queue(["01:35", "02:37"], {"A1": "01:38"})),
    "dropped": (DROPPED, Queue(["01:35", "02:03", "02:56"], {"A1": "01:38"})),
    "quota": (QUOTA, Queue(["00:35", "01:32"], {"A1": "59:59"})),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_the_table_comes_about_and_no_other(name: str) -> None:
    table, queue = TABLES[name]
    timeline = Timeline(queue)
    timeline.play_to(table[-1][0])
    # The seed's tables leave out most of the executions of cron that find nothing due.
    told = [row for row in timeline.log if row in table or row[1] != "Cron executes"]
    assert told == table


def test_no_other_runs_than_those_of_the_tables() -> None:
    for name, (table, queue) in TABLES.items():
        timeline = Timeline(queue)
        timeline.play_to(table[-1][0])
        assert sorted(statuses(timeline.world, timeline.job)) == sorted(outcomes(table)), name


def statuses(world: World, job: Job) -> Iterator[str]:
    for run in world.history(job):
        yield f"A{run.key.fire_at.minute + 1} {run.status.value}"


def outcomes(table: list[Row]) -> Iterator[str]:
    """What the table says has become of each run by its last row."""
    forced = {event.split()[0] for _, event, _, _ in table if event.endswith("forced to end")}
    for _, event, _, _ in table:
        subject, _, what = event.partition(" ")
        if what == "begins":
            yield f"{subject} {'timed_out' if subject in forced else 'succeeded'}"
        elif what == "is dropped":
            yield f"{subject} skipped"
