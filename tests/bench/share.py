"""`make bench-share`: full batches of chunks by the processor that a function's memory brings.

The executor's handler with its task processes on MiniStack, held to the share of this machine's
core that so many MB have of Graviton's, by the model of costs: it is stopped and let on every
20 ms, as Lambda's quota does. MiniStack and the receiver of webhooks are not. No pass mark.
"""

import importlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from itertools import product
from pathlib import Path

import boto3

from carillon.clock import SystemClock
from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Member, encode
from carillon.domain.chunks.placing import MEAN_SIZE
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import Lane
from carillon.domain.run import RunKey
from carillon.domain.targets import TaskTarget, WebhookTarget
from carillon.domain.wheel.entry import minute_of
from carillon.local.emulator import Emulator
from carillon.schedules import SlotKind
from carillon.schedules.insight.cost import GRAVITON_SPEED, VCPU_MB
from tests.bench import wire
from tests.bench.cost.measuring import receiver
from tests.bench.wait import Context

MEMORY_MB = (512, 1_024, 1_769)
CHUNKS = (5, 10)
TARGETS = ("task", "webhook")
BATCHES = 6
_PERIOD_SECONDS = 0.02
_READY = "ready"


def main() -> None:
    sys.stdout.write(f"{platform.machine()}, {os.cpu_count()} cores, Python ")
    sys.stdout.write(f"{platform.python_version()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, ")
    sys.stdout.write(f"load {os.getloadavg()[0]:.1f}; {BATCHES} batches each\n\n")
    sys.stdout.write("target    MB  chunks  s a batch, most  runs alone of each batch\n")
    os.environ |= wire.ENVIRONMENT
    with Emulator() as emulator, receiver() as url:
        os.environ["AWS_ENDPOINT_URL"] = emulator.endpoint_url
        for target, memory_mb, chunks in product(TARGETS, MEMORY_MB, CHUNKS):
            batches = list(_held(memory_mb, [target, str(chunks), url]))
            alone = [each for _, each in batches]
            longest = max(seconds for seconds, _ in batches)
            shown = f"{target:8} {memory_mb:5,} {chunks:7} {longest:15.1f}  {alone}"
            sys.stdout.write(f"{shown} of {chunks * MEAN_SIZE}\n")
            sys.stdout.flush()


def _held(memory_mb: int, arguments: Sequence[str]) -> Iterator[tuple[float, int]]:
    """The seconds of each batch, and the runs that it has sent alone."""
    share = min(1.0, memory_mb / VCPU_MB) * GRAVITON_SPEED
    command = [sys.executable, "-m", "tests.bench.share", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        assert it.stdout.readline().strip() == _READY
        try:
            while it.poll() is None:
                began = time.perf_counter()
                _signal(it.pid, signal.SIGCONT)
                time.sleep(_PERIOD_SECONDS * share)
                stopped = time.perf_counter()
                _signal(it.pid, signal.SIGSTOP)
                until = stopped + (stopped - began) * (1 - share) / share
                time.sleep(max(0.0, until - time.perf_counter()))
        finally:
            _signal(it.pid, signal.SIGCONT)
        for line in it.stdout:
            seconds, alone = json.loads(line)
            yield seconds, alone
    assert it.returncode == 0


def _signal(executor: int, number: signal.Signals) -> None:
    """Signal an executor, and the processes of its tasks, which have sessions of their own."""
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        os.kill(executor, number)
        for thread in Path(f"/proc/{executor}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # threads and tasks end, too
                for child in (thread / "children").read_text().split():
                    os.kill(int(child), number)


def _measure(target: str, chunks: int, url: str) -> None:
    """One executor: a batch to begin with, then those that count, when it is held back."""
    secret = boto3.client("secretsmanager").create_secret(
        Name=f"bench-{os.getpid()}", SecretString="x" * 40
    )
    os.environ |= {
        "STACK_NAME": "Bench",
        "WEBHOOK_SECRET_ARN": secret["ARN"],
        "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "TASK_MODULES": "carillon.executor.tasks.samples",
    }
    deployment = wire.Deployment(SystemClock())
    called = TaskTarget(name="echo") if target == "task" else WebhookTarget(url=url)
    jobs = [_job(number, called) for number in range(chunks * MEAN_SIZE * (BATCHES + 1))]
    for job in jobs:
        assert deployment.stores.jobs.create(job)
    os.environ |= wire.tables_and_lanes(deployment.settings)
    with redirect_stdout(StringIO()):
        module = importlib.import_module("carillon.executor.handler")
    deployment.record(module.stores)
    results: list[tuple[float, int]] = []
    for number, some in enumerate(wire.batched(jobs, chunks * MEAN_SIZE)):
        if number == 1:
            sys.stdout.write(f"{_READY}\n")
            sys.stdout.flush()
        records = [wire.record(body) for body in _bodies(some, number)]
        deployment.taken()
        began = time.perf_counter()
        with redirect_stdout(StringIO()):
            answer = module.handler({"Records": records}, Context())
        seconds = time.perf_counter() - began
        assert answer == {"batchItemFailures": []}, answer
        results.append((seconds, len(_alone(deployment.taken()))))
    module.targets.close()
    for result in results[1:]:
        sys.stdout.write(f"{json.dumps(result)}\n")


def _job(number: int, target: TaskTarget | WebhookTarget) -> Job:
    job = wire.job(number, "* * * * *", 0)
    return replace(job, spec=job.spec.model_copy(update={"target": target}))


def _bodies(jobs: Sequence[Job], batch: int) -> Iterator[str]:
    """Of chunks that are due now."""
    now = SystemClock().now()
    for number, some in enumerate(wire.batched(jobs, MEAN_SIZE)):
        key = ChunkKey(batch, minute_of(now), now.second, Lane.NORMAL, number)
        members = (
            Member(each.owner, each.job_id, each.generation.generation_id, SlotKind.HOURLY)
            for each in some
        )
        yield encode(ChunkMessage(key, tuple(members)))


def _alone(requests: Sequence[wire.Request]) -> set[RunKey]:
    return {order.key for order in wire.orders_in(requests) if isinstance(order, Message)}


if __name__ == "__main__":
    if sys.argv[1:]:
        _measure(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main()
