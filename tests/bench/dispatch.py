"""`make bench`: how fast a tick plans a minute, and an executor's protocol handles messages.

First pure Python on memory stores, one process: what the code itself costs, without the network.
Then the CPU of both with the wire (wire.py, a minute). Prints figures with the machine; nothing is
asserted, since an absolute time is no pass mark.
"""

import platform
import time
from datetime import UTC, datetime, timedelta

from carillon.domain.message import Message
from carillon.domain.wheel.due import messages_of
from carillon.domain.wheel.entry import entries_of, minute_of
from carillon.executor.batch import BATCH_SIZE, Report
from carillon.executor.tracing.tracer import Tracer
from carillon.telemetry import create_telemetry
from tests.bench import wire
from tests.support.world import World

ENTRIES = 100_000
RUNS = 5_000
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}")
    _plan("one shared expression", ["* * * * *"])
    _plan("60 expressions", [f"{minute} * * * *" for minute in range(60)])
    _plan("1,000 expressions", [f"{n % 60} {n // 60 % 24} * * *" for n in range(1000)])
    _handle("handle runs on memory stores", traced=False)
    _handle("the same, with their spans", traced=True)
    print(f"\n{wire.HEAD}")
    for cost in wire.costs():
        print(cost, flush=True)


def _plan(title: str, expressions: list[str]) -> None:
    """Ask 100,000 entries what fires in one minute."""
    world = World(NOON - timedelta(minutes=1), segments=1)
    templates = [
        entries_of(world.new_job(f"job-{number}", expression))[0]
        for number, expression in enumerate(expressions)
    ]
    minute = minute_of(NOON)
    began = time.perf_counter()
    messages = 0
    for number in range(ENTRIES):
        entry = templates[number % len(templates)]
        messages += len(list(messages_of(entry, minute, minute, ())))
    seconds = time.perf_counter() - began
    rate = ENTRIES / seconds
    print(f"plan a minute, {title:24} {rate:>10,.0f} entries/s  ({messages:,} messages)")


class Nowhere:
    """Takes spans at no cost."""

    def post(self, body: bytes, limit_seconds: float) -> None:
        pass


def _handle(title: str, *, traced: bool) -> None:
    """Claim, read, deliver and finish 5,000 runs, in batches of ten."""
    world = World(NOON, segments=1)
    for number in range(RUNS // 5):
        world.create(f"job-{number}", "* * * * *")
    for _ in range(3):
        world.tick()
        world.clock.advance(60)
    world.clock.advance(240)
    messages = [received.message for received in world.queue.kept()]
    ends_at = world.clock.now() + timedelta(seconds=60)
    tracer = Tracer(Nowhere(), world.clock, 100, "Carillon")
    telemetry = create_telemetry("bench")

    def handle(message: Message, alone: bool) -> Report:
        return world.executor.handle(message, ends_at)

    watched = tracer.watched(handle) if traced else handle
    began = time.process_time()
    for first in range(0, len(messages), BATCH_SIZE):
        for message in messages[first : first + BATCH_SIZE]:
            watched(message, True)
        tracer.export(ends_at, telemetry)
    seconds = time.process_time() - began
    rate, microseconds = len(messages) / seconds, seconds / len(messages) * 1e6
    print(f"{title:37} {rate:>10,.0f} runs/s  ({microseconds:.0f} us of CPU a run)")


if __name__ == "__main__":
    main()
