"""A world whose successes in chunks have no rows."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Generation, Job, Lane
from carillon.domain.run import Run, RunStatus
from carillon.domain.wheel.entry import minute_of
from carillon.errors import UnreadableRowError
from carillon.executor.router import Router
from carillon.services.history import History
from carillon.services.indexer import Indexer
from carillon.stores.cursors import pages
from carillon.stores.pages import Page
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs
from tests.support.world import LIFETIME
from tests.unit.executor import chunk_kit
from tests.unit.executor.chunk_kit import DUE_AT

HOUR = timedelta(hours=1)
S = RunStatus.SUCCEEDED


class World(chunk_kit.World):
    """With packed history, and jobs as deployments write them; each minute has a plan by which all
    jobs go in one chunk."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        jobs = RecordedJobs(
            self.jobs,
            self.changes,
            ChangeEvents(self.events),
            GenerationRecords(self.chunks, LIFETIME),
        )
        self.indexer = Indexer(jobs, self.wheel, self.queue, self.clock, self.calendars)
        ports = replace(self.executor_ports, jobs=jobs, indexer=self.indexer)
        self.executor_ports = ports
        self.executor = Router(ports)

    def pack(self, *names: str, at: datetime = DUE_AT) -> None:
        """Run the jobs in a chunk that is due then, as their rows are now."""
        self.clock.set(max(at, self.clock.now()))
        chosen = names or tuple(self.by_name)
        order = self.order(*chosen)
        plan = Plan(0, minute_of(at), "salt", at + LIFETIME, {(0, Lane.NORMAL): 1})
        self.chunks.put_plan(plan)
        order = replace(order, key=replace(order.key, minute=minute_of(at), second=0))
        self.handle_chunk(order)

    def hours(self, count: int, *names: str) -> None:
        for number in range(count):
            self.pack(*names, at=DUE_AT + number * HOUR)

    @property
    def past(self) -> History:
        return self.executor_ports.history

    def shown(self, name: str, limit: int = 100, **how: Any) -> list[tuple[int, RunStatus]]:
        """The hours after noon and statuses of the job's runs, newest first, all pages together."""
        job = self.by_name[name]

        def read(cursor: str | None) -> Page[Run]:
            return self.past.page(job.owner, job.job_id, limit, cursor, **how)

        found = [run for page in pages(read) for run in page.whole]
        return [(run.key.fire_at.hour - 12, run.status) for run in found]


def renewed(world: World, job: Job, at: datetime) -> Job:
    """The job in a generation that was made then, before what is due at `DUE_AT`."""
    generation = Generation(world.entropy.new_id(at), at.replace(microsecond=0))
    assert generation.from_at < DUE_AT
    return job.in_new_generation(generation, at)


def unreadable(*args: object) -> None:
    raise UnreadableRowError("spoilt")
