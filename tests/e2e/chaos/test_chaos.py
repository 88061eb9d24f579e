"""The whole stack under SIGKILLs, doubled ticks and restarts: nothing lost, no success doubled.

It has an emulator of its own, whose state outlives a clean stop. `CHAOS_SEED` chooses the seed,
which is printed. The faults begin at once, and go on for `CHAOS_SECONDS` (at least 60) after the
first chunk is due; alone: `.venv/bin/python -m pytest tests/e2e/chaos -s`.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import quantiles
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from carillon.audit.auditing import Audit
from carillon.clock import SystemClock
from carillon.domain.chunks.chunk import Outcome
from carillon.domain.run import RunKind
from carillon.domain.wheel.entry import minute_of, minute_start
from carillon.local.deployment import Deployment
from carillon.local.emulator import Emulator, port_of_state
from carillon.services.history import History
from tests.e2e.chaos.check import called_after_success, lost, violations
from tests.e2e.chaos.crowd import crowd
from tests.e2e.chaos.customer import Customer
from tests.e2e.chaos.evidence import Story
from tests.e2e.chaos.faults import Havoc, down_seconds
from tests.e2e.chaos.tables import Found, kept_messages, opened, read
from tests.e2e.chaos.tampering import TAMPERINGS
from tests.e2e.chaos.witness import Witness
from tests.e2e.chaos.workers import Workers
from tests.e2e.conftest import deployed, owner_of, person

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="finds workers by /proc and handles"),
]

SEED = int(os.environ.get("CHAOS_SEED", "5"))
CHAOS_SECONDS = max(60, int(os.environ.get("CHAOS_SECONDS", "60")))
QUIET_SECONDS = 300
"""Longest time until nothing is under way; on an idle machine a visibility timeout or two do."""
EXECUTOR_TIMEOUT_SECONDS = 6
"""Visibility timeouts are six times as long; attempts may take the rest above five: 1 s."""
FEWEST_KILLS = 8
FILING = timedelta(seconds=10)
NOT_ANNOUNCED_MINUTES = 2
"""Ticks announce the next minute, too."""
PORTS = range(4766, 4866)
SEGMENTS = 8
OPTIONS: dict[str, object] = {
    "look_ahead_minutes": 1,
    "executor_timeout_seconds": EXECUTOR_TIMEOUT_SECONDS,
    "segments": SEGMENTS,
    # While the emulator is away, or processors are few, all attempts last: an owner's jobs would
    # all be in lane slow, of which it has one place here, and wait there for minutes.
    "slow_after_seconds": EXECUTOR_TIMEOUT_SECONDS,
}


@dataclass(frozen=True)
class Stage:
    """A stack of its own."""

    emulator: Emulator
    deployment: Deployment


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    state_directory = tmp_path_factory.mktemp("chaos")
    port_of_state(state_directory, candidates=PORTS)
    emulator = Emulator(state_directory)
    with deployed(OPTIONS, emulator) as deployment:
        yield Stage(emulator, deployment)


@dataclass(frozen=True)
class Chaos:
    """What one chaos run did, and what there is to say about it."""

    story: Story
    workers: Workers
    havoc: Havoc
    quiet_after_seconds: float


@pytest.fixture(scope="module")
def chaos(stage: Stage) -> Chaos:
    """Faults for a while, then quiet until nothing is under way."""
    workers = Workers(stage.emulator)
    is_up = Event()
    is_up.set()
    with person(stage.deployment, "carol") as carol, Witness(SEED, workers) as witness:
        owner = owner_of(carol)
        customer = Customer(carol.http, owner, SEED, is_up)
        begin = minute_of(datetime.now(UTC) + FILING) + NOT_ANNOUNCED_MINUTES
        ends_at = minute_start(begin) + timedelta(seconds=CHAOS_SECONDS)
        due = range(begin, minute_of(ends_at))
        with opened(stage.deployment) as stores:
            jobs = crowd(stores, owner, witness.url, due, SEGMENTS)
        assert datetime.now(UTC) < minute_start(begin - NOT_ANNOUNCED_MINUTES + 1)
        ids = [job.job_id for job in jobs]
        customer.found(witness.url, datetime.now(UTC), ends_at)
        customer.adopt(ids)
        havoc = Havoc(
            *(stage.emulator, stage.deployment, workers, witness, customer, SEED, is_up),
            crowd=frozenset(ids),
        )
        with background(lambda: customer.use(witness.url, ends_at)):
            havoc.wreak(ends_at)
        began = monotonic()

        def story(found: Found, now: datetime, leftovers: list[str]) -> Story:
            faults = havoc.faults
            return Story(
                found,
                witness.arrivals,
                customer.acknowledgements,
                now,
                longest_call=timedelta(seconds=EXECUTOR_TIMEOUT_SECONDS),
                faults=[kill.at for kill in workers.kills],
                outages=[(outage.from_at, outage.until_at) for outage in faults.outages],
                leftovers=leftovers,
            )

        with opened(stage.deployment) as stores:
            whole = quiet(stage, lambda: read(stores, owner, customer.job_ids), story)
    return Chaos(whole, workers, havoc, monotonic() - began)


def quiet(
    stage: Stage,
    look: Callable[[], Found],
    story: Callable[[Found, datetime, list[str]], Story],
) -> Story:
    """The story once nothing is under way, or when the waiting is given up."""
    give_up_at = monotonic() + QUIET_SECONDS
    while True:
        sleep(1)
        kept = kept_messages(stage.deployment)
        is_over = monotonic() >= give_up_at
        if kept and not is_over:
            continue
        # What is due after this instant may have no row yet.
        now = datetime.now(UTC)
        whole = story(look(), now, [f"{kept} messages"] if kept else [])
        if is_over or not lost(whole):
            return whole


class background:
    """Something that goes on in a thread meanwhile; what it raises is raised at the end."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._call = call
        self._thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._error = error

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exception: object) -> None:
        self._thread.join()
        if self._error is not None and exception[0] is None:
            raise self._error


def test_nothing_is_lost_and_no_success_is_doubled(
    chaos: Chaos, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        tell(chaos)
    story, kills = chaos.story, chaos.workers.kills
    found = violations(story)
    assert not found, "\n".join([f"seed {SEED}", *found])
    assert len(kills) >= FEWEST_KILLS
    assert chaos.workers.counts()["webhook under way"]
    assert chaos.havoc.faults.outages
    assert chaos.havoc.faults.ticks_doubled
    retried = [run for run in story.found.all_runs if run.attempts]
    assert any(each.error.kind == "executor_died" for run in retried for each in run.attempts)
    ends = chunk_ends(story)
    assert ends[Outcome.OK]
    assert ends[Outcome.DIED]


def test_the_audit_of_the_tables_finds_nothing(chaos: Chaos, stage: Stage) -> None:
    settled_at = chaos.story.ended_at.replace(microsecond=0) - timedelta(seconds=30)
    began_at = settled_at - timedelta(hours=1)
    with opened(stage.deployment) as stores:
        history = History.of(stores, SystemClock(), timedelta(days=30))
        audit = Audit(stores, history, SEGMENTS, began_at, settled_at, rest_at=settled_at)
        assert list(audit.findings()) == []
    assert audit.seen.runs > len(chaos.story.found.jobs)


@pytest.mark.parametrize(("tamper", "words"), TAMPERINGS)
def test_the_checks_would_see(chaos: Chaos, tamper: Callable[[Story], Story], words: str) -> None:
    assert any(words in each for each in violations(tamper(chaos.story)))
    assert not any(words in each for each in violations(chaos.story))


def chunk_ends(story: Story) -> Counter[str]:
    """How many occurrences ended in which way, as far as their chunks know."""
    return Counter(
        end.outcome.value for chunk in story.found.chunks for end in (chunk.ends or {}).values()
    )


def tell(chaos: Chaos) -> None:
    """Print the figures of the run."""
    story, faults = chaos.story, chaos.havoc.faults
    runs = [run for run in story.found.all_runs if run.key.kind is not RunKind.MISSED]
    ended = Counter(run.status.value for run in runs)
    reasons = Counter(run.reason for run in runs if run.reason)
    lags = sorted(run.lag_seconds for run in runs if run.lag_seconds is not None)
    half, late = quantiles(lags, n=100)[49], quantiles(lags, n=100)[98]
    calls = Counter(each.call for each in story.acknowledgements)
    repeated = sum(each.tries > 1 for each in story.acknowledgements)
    dead = [attempt for run in runs for attempt in run.attempts]
    died = sum(attempt.error.kind == "executor_died" for attempt in dead)
    doubled = len(list(called_after_success(story)))
    lines = [
        f"chaos, seed {SEED}: {CHAOS_SECONDS} s of faults, quiet after "
        f"{chaos.quiet_after_seconds:.0f} s",
        f"workers killed: {len(chaos.workers.kills)} {dict(chaos.workers.counts())}, "
        f"{faults.ambushes} ambushes laid",
        f"emulator restarts: {len(faults.outages)}, {down_seconds(faults.outages):.0f} s down; "
        f"ticks doubled: {faults.ticks_doubled} times, {faults.ticks_invoked} invocations",
        f"API calls acknowledged: {dict(calls)}, {repeated} of them after lost answers",
        f"jobs: {len(story.found.jobs)}, runs: {len(runs)} {dict(ended)} {dict(reasons)}",
        f"chunks: {len(story.found.chunks)}, with runs {dict(chunk_ends(story))}",
        f"failed attempts that were retried: {len(dead)}, executors died on {died} of them; "
        f"webhook calls: {len(story.arrivals)}",
        f"lag: half within {half:.2f} s, 99 % within {late:.1f} s, longest {lags[-1]:.1f} s",
        f"losses: {len(lost(story))}, duplicated successes: {doubled}",
    ]
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
