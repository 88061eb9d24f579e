"""A scenario: what happens in one seed's world, drawn from the seed alone."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from carillon.simulation.deployment import Options, Span
from carillon.simulation.faults import Draws, Faults
from tests.simulation.worlds.scenario_faults import faults_of, with_faults_of_shares
from tests.simulation.worlds.scenario_jobs import jobs_of
from tests.simulation.worlds.scenario_notifications import NotificationPlan, notifications_of
from tests.simulation.worlds.scenario_parts import (
    OWNERS,
    ChunkPlan,
    Chunks,
    JobPlan,
    Request,
    chunk_plan,
    renamed_name,
)
from tests.simulation.worlds.scenario_requests import (
    calendar_body,
    hand_overs_of,
    reindexings_of,
    requests_of,
    spreads_of,
)

_OTHER_WORKER = "the other worker"


@dataclass(frozen=True, slots=True)
class Scenario:
    """The world of a seed: `minutes` of faults from `start` on, then calm, in which everything must
    come to its end within `settle_minutes`, unless it waits for its turn under limits of its own.

    From `switched_at` on a new deployment has chunks if the one before had none, and the other way
    round. `calendar` is the JSON text of the closed days that are there at the start. With
    `other_look_ahead_minutes` there is a second worker of ticks, whose look-ahead that is.
    """

    seed: int
    profile: str
    start: datetime
    minutes: int
    jobs: tuple[JobPlan, ...]
    options: Options
    requests: tuple[Request, ...] = ()
    faults: Faults = field(default_factory=Faults)
    most_latency_us: int = 0
    ticks_down: tuple[Span, ...] = ()
    executors_down: tuple[Span, ...] = ()
    calendar: str = ""
    other_look_ahead_minutes: int = 0
    settle_minutes: int = 180
    notifications: tuple[NotificationPlan, ...] = ()
    switched_at: datetime | None = None

    @property
    def until(self) -> datetime:
        """Whatever is due up to here must have ended when the simulation has."""
        ends = [until for _, until in (*self.ticks_down, *self.executors_down)]
        pauses = (each for each in self.requests if each.what == "pause" and each.body)
        ends += [datetime.fromisoformat(json.loads(each.body)["until"]) for each in pauses]
        return max([self.calm_at, *ends]) + timedelta(minutes=2)

    @property
    def calm_at(self) -> datetime:
        """From here on no fault happens."""
        return self.start + timedelta(minutes=self.minutes)

    @property
    def plans(self) -> tuple[JobPlan, ...]:
        """The jobs, and those that they may be renamed to or handed over as, which behave as they
        do. First of a name comes the one that is created."""
        renamed = {
            request.job
            for request in self.requests
            if request.what == "apply" and renamed_name(request.job) in json.loads(request.body)
        }
        others = [
            replace(job, name=renamed_name(job.name)) for job in self.jobs if job.name in renamed
        ]
        found = [*self.jobs, *others]
        for _ in OWNERS:  # who takes a job may hand it on
            found += [
                replace(job, owner=json.loads(request.body)["to"])
                for request in self.requests
                for job in found
                if request.what == "hand_over" and job.owner == json.loads(request.body)["from"]
            ]
            found = list(dict.fromkeys(found))
        return tuple(found)

    def parts(self) -> tuple[str, ...]:
        """The names of what can be left out: jobs, requests, outages, notifications."""
        requests = [each.name for each in self.requests if each.what != "create"]
        return (
            *(job.name for job in self.jobs),
            *requests,
            *map(_name_of_notification, self.notifications),
            *(_name_of("ticks down", number) for number in range(len(self.ticks_down))),
            *(_name_of("executors down", number) for number in range(len(self.executors_down))),
            *((_OTHER_WORKER,) if self.other_look_ahead_minutes else ()),
        )

    def without(self, left_out: frozenset[str]) -> "Scenario":
        """The same world without these parts; requests go with their job."""
        return replace(
            self,
            jobs=tuple(job for job in self.jobs if job.name not in left_out),
            requests=tuple(each for each in self.requests if not {each.name, each.job} & left_out),
            notifications=tuple(
                each for each in self.notifications if _name_of_notification(each) not in left_out
            ),
            ticks_down=_left(self.ticks_down, "ticks down", left_out),
            executors_down=_left(self.executors_down, "executors down", left_out),
            other_look_ahead_minutes=(
                0 if _OTHER_WORKER in left_out else self.other_look_ahead_minutes
            ),
        )


def _left(spans: Sequence[Span], name: str, left_out: frozenset[str]) -> tuple[Span, ...]:
    pairs = enumerate(spans)
    return tuple(span for number, span in pairs if _name_of(name, number) not in left_out)


def _name_of_notification(plan: NotificationPlan) -> str:
    return f"notification {plan.name} of {plan.owner}"


def _name_of(what: str, number: int) -> str:
    return f"{what} {number}"


def scenario_of(seed: int, wanted: Chunks | None = None) -> Scenario:
    """The scenario of a seed; with chunks as `wanted`, or as they are drawn."""
    chunks = chunk_plan(seed, wanted)
    draws = Draws(seed, "scenario")
    base, at = _START[draws.below(len(_START))], Draws(seed, "start")
    start = base - timedelta(seconds=at.below(600) + 30)
    minutes = 8 + draws.below(10) if draws.fraction() < 0.7 else 18 + draws.below(13)
    if chunks.is_for_chunks:
        minutes += 10  # until chunks begin
    profile, faults = faults_of(seed)
    options = _options(seed, chunks)
    if options.tick_workers > 1 and profile != "calm":
        faults = with_faults_of_shares(seed, faults)
    jobs = jobs_of(seed, start, minutes, is_for_chunks=chunks.is_for_chunks)
    requests = requests_of(seed, start, minutes, jobs)
    spreads = spreads_of(seed, start, minutes, jobs, options.segments)
    reindexings = reindexings_of(seed, start, minutes, jobs)
    hand_overs = hand_overs_of(seed, start, minutes, jobs)
    return Scenario(
        seed=seed,
        profile=profile,
        start=start,
        minutes=minutes,
        jobs=jobs,
        requests=(*requests, *spreads, *reindexings, *hand_overs),
        options=options,
        faults=faults,
        most_latency_us=_latency_us(seed, profile),
        ticks_down=_spans(seed, "ticks down", (start, minutes), requests, 0.25, (120, 2400)),
        executors_down=_spans(seed, "executors down", (start, minutes), requests, 0.15, (30, 1200)),
        other_look_ahead_minutes=Draws(seed, "other worker").choice((0, 0, 0, 0, 0, 0, 1, 2, 5)),
        calendar=calendar_body(Draws(seed, "calendar"), start),
        notifications=notifications_of(seed, jobs),
        switched_at=_switched_at(seed, start, minutes) if chunks.switches else None,
    )


def _switched_at(seed: int, start: datetime, minutes: int) -> datetime:
    draws = Draws(seed, "switch")
    draws.fraction()  # whether there is one at all
    return start + timedelta(seconds=600 + draws.below(minutes * 60 - 600))


_START = (
    *(datetime(2026, 12, 1, hour, tzinfo=UTC) for hour in (0, 3, 9, 12, 12, 17)),
    datetime(2026, 12, 1, 12, 31, 7, tzinfo=UTC),
    datetime(2027, 1, 1, tzinfo=UTC),
    datetime(2028, 2, 29, 0, 4, tzinfo=UTC),
    # The clocks of Berlin go back at 01:00 UTC: 02:30 is at 00:30 and at 01:30.
    datetime(2026, 10, 25, 0, 33, tzinfo=UTC),
    datetime(2026, 10, 25, 1, 4, tzinfo=UTC),
    datetime(2026, 10, 25, 1, 33, tzinfo=UTC),
    # They go forward at 01:00 UTC: there is no 02:30.
    datetime(2027, 3, 28, 1, 4, tzinfo=UTC),
    datetime(2027, 3, 28, 1, 33, tzinfo=UTC),
)


def _options(seed: int, chunks: ChunkPlan) -> Options:
    draws = Draws(seed, "options")
    options = Options(
        segments=draws.choice((1, 1, 2, 3)),
        look_ahead_minutes=draws.choice((1, 2, 2, 3, 5)),
        function_timeout_seconds=20,
        max_receives=draws.choice((3, 5)),
        catch_up_per_minute=draws.choice((3000, 3000, 60, 12)),
        owner_starts_per_minute=draws.choice((0, 0, 0, 0, 0, 0, 0, 30)),
        longest_delay_seconds=draws.choice((900, 900, 120, 60)),
        owner_concurrent_runs=draws.choice((0, 0, 0, 0, 0, 1, 3, 5)),
        chunks=chunks.begins_with,
        records=chunks.is_for_chunks,
    )
    return _with_shares(options, Draws(seed, "shares"))


def _with_shares(options: Options, draws: Draws) -> Options:
    """The same, in a fourth of the seeds with ticks that share their minutes, however little there
    is to send."""
    if draws.fraction() >= 0.25:
        return options
    segments = draws.choice((3, 3, 4, 6))
    workers = 2 + draws.below(segments - 1)
    return replace(
        options, segments=segments, tick_workers=workers, share_seconds=1e-6, share_messages=1
    )


_LATENCIES_US = (0, 1_000, 20_000, 20_000, 20_000, 100_000, 300_000, 3_000_000)
"""The longest that half a call may take, which few do."""


def _latency_us(seed: int, profile: str) -> int:
    if profile == "calm":
        return 0
    return Draws(seed, "latency").choice(_LATENCIES_US)


def _spans(
    seed: int,
    what: str,
    chaos: tuple[datetime, int],
    requests: Sequence[Request],
    share: float,
    seconds: tuple[int, int],
) -> tuple[Span, ...]:
    """At most one outage of one kind, in a `share` of the seeds; often where somebody asks for
    something."""
    start, minutes = chaos
    draws = Draws(seed, what)
    if draws.fraction() >= share:
        return ()
    begin = start + timedelta(seconds=draws.below(minutes * 50))
    shortest, longest = seconds
    lasts = timedelta(seconds=int(shortest + (longest - shortest) * draws.fraction() ** 2))
    if draws.fraction() < 0.3:
        requested_at = start + timedelta(microseconds=draws.choice(requests).after_us)
        begin = max(start, requested_at - timedelta(seconds=draws.below(20)))
    return ((begin, begin + lasts),)
