"""What the tables hold after the chaos, read with the project's own stores."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from carillon.clock import SystemClock
from carillon.domain.activity.results import Result
from carillon.domain.activity.summary import Counted
from carillon.domain.chunks.chunk import Chunk
from carillon.domain.job import Job
from carillon.domain.run import Run
from carillon.local.deployment import Deployment
from carillon.local.emulator import REGION
from carillon.services.activity import Activity
from carillon.services.history import History
from carillon.services.summing import Summing
from carillon.settings import Settings
from carillon.stores.dynamo import Stores, open_stores
from tests.e2e.chaos.crowd import chunks_of

_PAGE = 100
_SPAN = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class Found:
    """The job rows that there are, tombstones included, all runs of each job id, the chunks that
    some were in, and the owner's feed with its sums."""

    jobs: Mapping[str, Job]
    runs: Mapping[str, list[Run]]
    activity: Sequence[Result] = ()
    summed: Mapping[datetime, Sequence[Counted]] = field(default_factory=dict)
    chunks: Sequence[Chunk] = ()

    @property
    def all_runs(self) -> list[Run]:
        return [run for runs in self.runs.values() for run in runs]


@contextmanager
def opened(deployment: Deployment) -> Iterator[Stores]:
    """The stores of a deployment on an emulator, by the settings of its own functions."""
    function = deployment.outputs["TickFunction"]
    configuration = deployment.client("lambda").get_function_configuration(FunctionName=function)
    settings = Settings.from_environment(configuration["Environment"]["Variables"])
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_DEFAULT_REGION", REGION)
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.setenv("AWS_ENDPOINT_URL", deployment.endpoint_url)
        yield open_stores(settings, SystemClock())


def read(stores: Stores, owner: str, job_ids: Iterable[str]) -> Found:
    """The rows of these jobs, and all their runs, with and without rows."""
    ids = list(job_ids)
    jobs = {job_id: job for job_id in ids if (job := stores.jobs.get(owner, job_id)) is not None}
    history = History.of(stores, SystemClock(), timedelta(days=30))
    runs = {job_id: _runs(history, owner, job_id) for job_id in ids}
    now = SystemClock().now()
    begin, feed = now - _SPAN, Activity(stores.activity)
    summing = Summing(feed, history, stores.calendars, SystemClock())
    there = [job for job in jobs.values() if not job.is_tombstone]
    shown = feed.all(owner, begin, now)[0]
    fired = sorted(result.key.fire_at for result in shown)
    begins = (begin, fired[len(fired) // 2]) if fired else (begin,)
    summed = {each: summing.of(owner, there, each, now).counted for each in begins}
    fires = ((jobs[job_id], run) for job_id in jobs for run in runs[job_id])
    return Found(jobs, runs, shown, summed, chunks_of(stores, fires))


def _runs(history: History, owner: str, job_id: str) -> list[Run]:
    found: list[Run] = []
    cursor: str | None = None
    while True:
        page = history.page(owner, job_id, _PAGE, cursor, consistent=True)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def kept_messages(deployment: Deployment) -> int:
    """The messages in all queues, visible or not."""
    sqs = deployment.client("sqs")
    names = ("", "NotVisible", "Delayed")
    wanted = [f"ApproximateNumberOfMessages{name}" for name in names]
    count = 0
    for output, url in deployment.outputs.items():
        if "QueueUrl" in output:
            answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)
            count += sum(int(text) for text in answer["Attributes"].values())
    return count
