"""The profiles of a bill: what is created, what fires, and what it takes per million fires."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from carillon.domain.chunks.message import ChunkMessage, Order, decode
from carillon.domain.chunks.placing import MEAN_SIZE
from carillon.domain.job import segment_of
from carillon.domain.spec.names import job_id_of
from carillon.schedules.insight.cost import DEFAULT, MONTH_MINUTES, Line, Usage, idle, kept
from tests.bench.cost.stage import Measured, Stage, Theatre, Waiting

OWNER = "9f4c1c1e-6d3a-4b52-8f5e-0a2b7c9d1e3f"
JOBS = 40
"""Of a profile, ten a segment of four: ticks fill their requests, as with many more jobs."""
MINUTES = 10
"""One tick at each tenth of a second."""
IDLE_MINUTES = 20
TASK: Mapping[str, Any] = {"type": "task", "name": "echo"}
FAILING: Mapping[str, Any] = {"type": "task", "name": "fail_twice"}
_SECONDS = (15, 45)
"""Of the minute, at which half of the jobs are due each."""
_TOGETHER = timedelta(milliseconds=10)
_CANARY = '"owner":"system/'


@dataclass(frozen=True, slots=True)
class Figures:
    """What a profile took: for all its fires together, or (`fires` 0) in a month."""

    usage: Usage
    fires: int
    measured: Mapping[str, Measured]

    @property
    def per_million(self) -> Usage:
        return self.usage * (1_000_000 / self.fires)


def idle_month(theatre: Theatre) -> Figures:
    """Ticks and the canary's runs of a while, as often as a month has it.

    Polls and what is charged by the month are the model's, metrics as many as were given out.
    """
    with theatre.stage() as stage:
        _warm_up(stage)
        for minute in range(IDLE_MINUTES):
            _tick(stage, minute, 1, canary=True)
        _deliver_rest(stage, 1)
        counted = stage.usage
        by_model = idle(MONTH_MINUTES)
        fixed = {line: by_model.of(line) for line in by_model.amounts if not counted.of(line)}
        # One for each function that gives it out.
        fixed[Line.METRICS] = sum(len(one.metrics) for one in stage.measured.values())
        return Figures(counted * (MONTH_MINUTES / IDLE_MINUTES) + Usage(fixed), 0, stage.measured)


def recurring(
    theatre: Theatre,
    tick: Usage,
    batch: int,
    target: Mapping[str, Any] = TASK,
    jobs: int = JOBS,
    **more: Any,
) -> Figures:
    """Jobs of each minute, received `batch` at a time. `tick` is what an idle one takes."""
    with theatre.stage() as stage:
        for place, name in enumerate(_names(jobs)):
            second = _SECONDS[place % len(_SECONDS)]
            body = _body(name, f"every 1m offset {second}s", target)
            stage.post("/jobs", body | more, OWNER)
        _warm_up(stage, batch)
        fires = sum(_tick(stage, minute, batch) for minute in range(MINUTES))
        fires += _deliver_rest(stage, batch)
        return _figures(stage, fires, tick * MINUTES)


def chunked(
    theatre: Theatre,
    tick: Usage,
    batch: int,
    chunks: int = 5,
    target: Mapping[str, Any] = TASK,
) -> Figures:
    """Jobs of each minute, all due in one second, in so many chunks a segment. They are settled at
    once."""
    with theatre.stage(chunks=True) as stage:
        for name in _names(chunks * MEAN_SIZE * DEFAULT.segments):
            stage.post("/jobs", _body(name, "every 1m offset 30s", target), OWNER)
        _warm_up(stage, batch)
        fires = sum(_tick(stage, minute, batch) for minute in range(MINUTES))
        fires += _deliver_rest(stage, batch)
        return _figures(stage, fires, tick * MINUTES)


def one_shot(theatre: Theatre, tick: Usage, batch: int) -> Figures:
    """Jobs that the API creates, each of which fires once a few minutes later."""
    with theatre.stage() as stage:
        _warm_up(stage, batch)
        stage.post("/jobs", _body("warm", "at 2100-01-01T00:00:00", TASK), OWNER)
        stage.begin()
        base = stage.clock.now().replace(second=0, microsecond=0) + timedelta(minutes=5)
        for place, name in enumerate(_names(JOBS)):
            at = base + timedelta(seconds=_SECONDS[place % len(_SECONDS)])
            stage.post("/jobs", _body(name, f"at {at:%Y-%m-%dT%H:%M:%S}", TASK), OWNER)
        fires = sum(_tick(stage, minute, batch) for minute in range(MINUTES))
        fires += _deliver_rest(stage, batch)
        return _figures(stage, fires, tick * MINUTES)


def _figures(stage: Stage, fires: int, ticks: Usage) -> Figures:
    """Without what ticks cost anyhow, their own wait included, and with the rows that stay."""
    usage = stage.usage - ticks
    tick = stage.measured["tick"].usage
    usage -= Usage({Line.WAITING: tick.of(Line.WAITING) - ticks.of(Line.WAITING)})
    for kind in ("runs", "jobs"):
        if kind == "jobs" and not stage.measured["api"].invocations:
            continue  # they were there before
        recovery = kind != "runs" or DEFAULT.recover_runs
        for size in stage.rows_since(kind):
            usage += kept(size, DEFAULT.run_retention_days, recovery=recovery)
    return Figures(usage, fires, stage.measured)


def _warm_up(stage: Stage, batch: int = 1) -> None:
    """Bring the ticks up to now, start children, open connections; nothing of it counts."""
    for minute in range(-4, 0):
        _tick(stage, minute, batch, canary=True)
    stage.lanes.clear()
    stage.begin()


def _tick(stage: Stage, minute: int, batch: int, *, canary: bool = False) -> int:
    """Let a minute's tick come, at a fraction of its second; before it what is due before it."""
    at = stage.began_at + timedelta(minutes=minute, seconds=(minute % 10 + 0.5) / 10)
    fires = _deliver(stage, batch, [one for one in stage.lanes if one.visible_at <= at])
    stage.clock.set(at)
    stage.tick()
    if not canary:
        stage.lanes = [one for one in stage.lanes if _CANARY not in one.body]
    return fires


def _deliver_rest(stage: Stage, batch: int) -> int:
    fires = 0
    while stage.lanes:
        first = min(one.visible_at for one in stage.lanes)
        due = [one for one in stage.lanes if one.visible_at < first + timedelta(seconds=1)]
        fires += _deliver(stage, batch, due)
    return fires


def _deliver(stage: Stage, batch: int, due: list[Waiting]) -> int:
    """Hand the executor what becomes visible together, `batch` at a time; counts first attempts."""
    stage.lanes = [one for one in stage.lanes if one not in due]
    due.sort(key=lambda one: (one.queue_url, one.visible_at))
    fires = 0
    while due:
        size = 1
        while size < min(batch, len(due)) and _is_together(due[0], due[size]):
            size += 1
        stage.clock.set(due[size - 1].visible_at)
        stage.receive(due[:size])
        fires += sum(_fires_of(decode(one.body)) for one in due[:size])
        due = due[size:]
    return fires


def _fires_of(order: Order) -> int:
    return len(order.members) if isinstance(order, ChunkMessage) else order.attempt == 1


def _is_together(first: Waiting, other: Waiting) -> bool:
    same_lane = first.queue_url == other.queue_url
    return same_lane and other.visible_at - first.visible_at <= _TOGETHER


def _names(count: int) -> list[str]:
    """Names of jobs, of which each segment gets as many, as it does of very many jobs."""
    segments = DEFAULT.segments
    names = sorted(
        (segment_of(job_id_of(OWNER, f"job {n}"), segments), n) for n in range(50 * count)
    )
    return [
        f"job {n}"
        for segment in range(segments)
        for _, n in [each for each in names if each[0] == segment][: count // segments]
    ]


def _body(name: str, schedule: str, target: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "schedule": schedule,
        "target": dict(target),
        "payload": {"to": "someone@example.com", "number": 12345},
    }
