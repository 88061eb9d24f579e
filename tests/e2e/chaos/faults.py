"""What breaks while the chaos runs, and when: all of it follows from the seed, but for the pace."""

import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Event
from time import sleep
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from carillon.local.deployment import Deployment
from carillon.local.emulator import Emulator
from tests.e2e.chaos.customer import Customer
from tests.e2e.chaos.witness import Ambush, Witness
from tests.e2e.chaos.workers import Worker, Workers

MOST_TICKS_AT_ONCE = 3
HUNT_SECONDS = 5.0
PAUSE_SECONDS = (0.2, 1.3)
DOWN_SECONDS = (8.0, 14.0)
CALL_WAIT_SECONDS = 2.0


@dataclass
class Outage:
    """A clean stop of the emulator and its next start."""

    from_at: datetime
    until_at: datetime


@dataclass
class Faults:
    """What has been done so far; `ticks_doubled` counts times, `ticks_invoked` invocations.

    `ambushes` were laid; one that met no caller before the next makes no kill.
    """

    ambushes: int = 0
    ticks_doubled: int = 0
    ticks_invoked: int = 0
    outages: list[Outage] = field(default_factory=list)


class Havoc:
    """Breaks things, from one thread; `is_up` is cleared while the emulator is down, `crowd`
    are the ids of the jobs that fire in chunks."""

    def __init__(
        self,
        emulator: Emulator,
        deployment: Deployment,
        workers: Workers,
        witness: Witness,
        customer: Customer,
        seed: int,
        is_up: Event,
        crowd: frozenset[str],
    ) -> None:
        self._emulator = emulator
        self._tick = deployment.outputs["TickFunction"]
        self._api = "FunctionsApi"
        self._lambdas = [deployment.client("lambda") for _ in range(MOST_TICKS_AT_ONCE)]
        self._workers = workers
        self._witness = witness
        self._customer = customer
        self._random = Random(f"{seed} havoc")
        self._is_up = is_up
        self._crowd = crowd
        self.faults = Faults()

    def wreak(self, ends_at: datetime) -> None:
        """Do one thing after the other until then; once in between, stop the emulator."""
        began_at = datetime.now(UTC)
        stop_at = began_at + (ends_at - began_at) * self._random.uniform(0.3, 0.55)
        actions: list[tuple[Callable[[ThreadPoolExecutor], None], int]] = [
            (self._kill_executor, 4),
            (self._ambush, 9),
            (self._double_tick, 2),
            (self._kill_ticks, 2),
            (self._kill_api, 2),
        ]
        calls, weights = zip(*actions, strict=True)
        with ThreadPoolExecutor(MOST_TICKS_AT_ONCE + 1) as pool:
            pool.submit(self._hunt, ends_at)
            while datetime.now(UTC) < ends_at:
                if not self.faults.outages and datetime.now(UTC) >= stop_at:
                    self._stop_and_start()
                else:
                    self._random.choices(calls, weights)[0](pool)
                sleep(self._random.uniform(*PAUSE_SECONDS))
        self._witness.disarm()

    def _kill_executor(self, pool: ThreadPoolExecutor) -> None:
        """Any worker that works messages, whatever it is at."""
        self._kill_one("Executor", "any moment", self._workers.living("DeadLetterConsumer"))

    def _ambush(self, pool: ThreadPoolExecutor) -> None:
        self.faults.ambushes += 1
        self._witness.arm(self._random.choice(list(Ambush)))

    def _hunt(self, ends_at: datetime) -> None:
        """A caller for a job of the crowd, again and again: it has the rest of a chunk in hand. The
        crowd fires for a minute, in which ticks that are waited for may take up all else."""
        while datetime.now(UTC) < ends_at:
            self.faults.ambushes += 1
            self._witness.arm(Ambush.BEFORE_THE_ANSWER, self._crowd)
            sleep(HUNT_SECONDS)

    def _double_tick(self, pool: ThreadPoolExecutor) -> None:
        """Two or three ticks at once."""
        for tick in self._start_ticks(pool):
            tick.result()

    def _kill_ticks(self, pool: ThreadPoolExecutor) -> None:
        """Two or three ticks at once, of which one or more are killed half way."""
        ticks = self._start_ticks(pool)
        for _ in range(self._random.randint(1, len(ticks))):
            sleep(self._random.uniform(0.0, 0.25))
            self._kill_one("FunctionsTick", "tick")
        for tick in ticks:
            tick.result()

    def _start_ticks(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        count = self._random.randint(2, MOST_TICKS_AT_ONCE)
        self.faults.ticks_doubled += 1
        self.faults.ticks_invoked += count
        return [pool.submit(self._invoke_tick, client) for client in self._lambdas[:count]]

    def _invoke_tick(self, client: Any) -> None:
        try:
            client.invoke(FunctionName=self._tick, Payload=b"{}")
        except (BotoCoreError, ClientError):
            """A tick that was killed has no answer."""

    def _kill_api(self, pool: ThreadPoolExecutor) -> None:
        """The worker that answers the customer, if there is a call soon."""
        if self._customer.calling.wait(CALL_WAIT_SECONDS):
            sleep(self._random.uniform(0.0, 0.025))
            self._kill_one(self._api, "api call")

    def _kill_one(self, part_of_name: str, moment: str, others: list[Worker] | None = None) -> None:
        candidates = [*self._workers.living(part_of_name), *(others or [])]
        if candidates:
            self._workers.kill(self._random.choice(candidates), moment)

    def _stop_and_start(self) -> None:
        """As a user's Ctrl-C and next start: the emulator keeps what it had when it was asked."""
        self._witness.disarm()
        from_at = datetime.now(UTC)
        self._is_up.clear()
        self._emulator.stop()
        log = self._emulator.log_path
        shutil.copy(log, log.with_suffix(f".{len(self.faults.outages)}.log"))
        sleep(self._random.uniform(*DOWN_SECONDS))
        self._emulator.start()
        self.faults.outages.append(Outage(from_at, datetime.now(UTC)))
        self._is_up.set()


def down_seconds(outages: list[Outage]) -> float:
    """For how long the emulator was down, all outages together."""
    lengths = (outage.until_at - outage.from_at for outage in outages)
    return sum(lengths, timedelta()).total_seconds()
