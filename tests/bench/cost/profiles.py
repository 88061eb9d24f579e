"""The profiles of a bill: what is created, what fires, and what it takes per million fires."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count, cycle
from types import MappingProxyType
from typing import Any

from carillon.domain.chunks.message import ChunkMessage, decode
from carillon.domain.chunks.placing import MEAN_SIZE
from carillon.domain.job import segment_of
from carillon.domain.spec.names import job_id_of
from carillon.schedules import parse_schedule
from carillon.schedules.insight.cost import DEFAULT, MONTH_MINUTES, Line, Usage, idle, kept
from tests.bench.cost.stage import Measured, Stage, Theatre, Waiting
from tests.support.jobs import job_with

PERSON = "9f4c1c1e-6d3a-4b52-8f5e-0a2b7c9d1e3f"
OWNER = f"user/{PERSON}"
JOBS = 40
"""Of a profile, ten a segment of four: ticks fill their requests, as with many more jobs."""
MINUTES = 10
"""One tick at each tenth of a second."""
CHUNK_MINUTES = 3
IDLE_MINUTES = 20
TASK: Mapping[str, Any] = {"type": "task", "name": "echo"}
FAILING: Mapping[str, Any] = {"type": "task", "name": "fail_twice"}
_SECONDS = (15, 45)
"""Of the minute, at which half of the jobs are due each."""
_TOGETHER = timedelta(milliseconds=10)
_PAYLOAD: Mapping[str, Any] = {"to": "someone@example.com", "number": 12345}
_CANARY = '"owner":"system/'


@dataclass(frozen=True, slots=True)
class Figures:
    """What a profile took: for all its fires together, or (`fires` 0) in a month. `alone` of them
    were to go in chunks, and an executor has sent each a message of its own."""

    usage: Usage
    fires: int
    measured: Mapping[str, Measured]
    alone: int = 0

    @property
    def per_million(self) -> Usage:
        return self.usage * (1_000_000 / self.fires)


def idle_month(theatre: Theatre, segments: int = DEFAULT.segments) -> Figures:
    """Ticks and the canary's runs of a while, as often as a month has it.

    Polls and what is charged by the month are the model's, metrics as many as were given out.
    """
    with theatre.stage(segments=segments) as stage:
        _warm_up(stage)
        for minute in range(IDLE_MINUTES):
            _tick(stage, minute, 1, canary=True)
        _deliver_rest(stage, 1)
        counted = stage.usage
        by_model = idle(MONTH_MINUTES, replace(DEFAULT, segments=segments))
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
        for place, name in enumerate(_names(jobs // DEFAULT.segments)):
            second = _SECONDS[place % len(_SECONDS)]
            body = _body(name, f"every 1m offset {second}s", target)
            stage.post("/jobs", body | more, PERSON)
        _warm_up(stage, batch)
        fires = sum(_tick(stage, minute, batch) for minute in range(MINUTES))
        fires += _deliver_rest(stage, batch)
        return _figures(stage, fires, tick * MINUTES)


def chunked(
    theatre: Theatre,
    tick: Usage,
    batch: int,
    target: Mapping[str, Any] = TASK,
    *,
    each: int = 5 * MEAN_SIZE,
    seconds: Sequence[int] = (30,),
    segments: int = DEFAULT.segments,
    minutes: int = CHUNK_MINUTES,
    payloads: int = 0,
    tenth: Mapping[str, Any] = MappingProxyType({}),
) -> Figures:
    """Jobs that are settled at once, `each` of a segment due in each of these seconds, received
    `batch` messages at a time.

    They are of every hour, so that a minute has its own: moto looks at all entries of all minutes.
    They are copies of two that the API makes. Before them a second's jobs start children and
    threads, which does not count. Every tenth job has what `tenth` says, and each a payload of its
    own of so many bytes as JSON, or all the same.
    """
    times = [(2, seconds[0])] * each  # a tick sends the minute after the next one
    times += [(3 + minute, at) for minute in range(minutes) for at in seconds for _ in range(each)]
    with theatre.stage(chunks=True, segments=segments) as stage:
        models = [
            stage.job(_body(name, "every 1h", target) | dict(more), PERSON)
            for name, more in (("tenth", tenth), ("other", {}))
        ]
        stage.put(
            [
                job_with(
                    models[place % 10 > 0],
                    name=name,
                    job_id=job_id_of(OWNER, name),
                    segment=segment_of(job_id_of(OWNER, name), segments),
                    schedule=parse_schedule(f"every 1h offset {60 * minute + second}s"),
                    payload=f'"{place:0{payloads - 2}d}"' if payloads else json.dumps(_PAYLOAD),
                )
                for place, (name, (minute, second)) in enumerate(
                    zip(_names(len(times), segments), cycle(times), strict=False)
                )
            ]
        )
        _warm_up(stage, batch)
        _tick(stage, 0, batch)
        _deliver_rest(stage, batch)
        stage.begin()
        fires = sum(_tick(stage, 1 + minute, batch, minutes) for minute in range(minutes))
        fires += _deliver_rest(stage, batch)
        assert fires == (len(times) - each) * segments, f"{fires} fires"
        return _figures(stage, fires, tick * minutes)


def one_shot(theatre: Theatre, tick: Usage, batch: int) -> Figures:
    """Jobs that the API creates, each of which fires once a few minutes later."""
    with theatre.stage() as stage:
        _warm_up(stage, batch)
        stage.post("/jobs", _body("warm", "at 2100-01-01T00:00:00", TASK), PERSON)
        stage.begin()
        base = stage.clock.now().replace(second=0, microsecond=0) + timedelta(minutes=5)
        for place, name in enumerate(_names(JOBS // DEFAULT.segments)):
            at = base + timedelta(seconds=_SECONDS[place % len(_SECONDS)])
            stage.post("/jobs", _body(name, f"at {at:%Y-%m-%dT%H:%M:%S}", TASK), PERSON)
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
    return Figures(usage, fires, stage.measured, len(stage.alone))


def _warm_up(stage: Stage, batch: int = 1) -> None:
    """Bring the ticks up to now, start children, open connections; nothing of it counts."""
    for minute in range(-4, 0):
        _tick(stage, minute, batch, canary=True)
    stage.lanes.clear()
    stage.begin()


def _tick(stage: Stage, minute: int, batch: int, of: int = MINUTES, *, canary: bool = False) -> int:
    """Let a minute's tick come, at a fraction of its second, another one in each `of` minutes;
    before it what is due before it."""
    at = stage.began_at + timedelta(minutes=minute, seconds=(minute % of + 0.5) / of)
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
        fires += sum(_fires_of(one) for one in due[:size])
        due = due[size:]
    return fires


def _fires_of(one: Waiting) -> int:
    """Not those that an executor has sent on: they have been counted."""
    order = decode(one.body)
    if one.sent_by == "executor":
        return 0
    return len(order.members) if isinstance(order, ChunkMessage) else order.attempt == 1


def _is_together(first: Waiting, other: Waiting) -> bool:
    same_lane = first.queue_url == other.queue_url
    return same_lane and other.visible_at - first.visible_at <= _TOGETHER


def _names(each: int, segments: int = DEFAULT.segments) -> list[str]:
    """Names of jobs, `each` of every segment, as of very many jobs; segment by segment."""
    found: list[list[str]] = [[] for _ in range(segments)]
    names = (f"job {number}" for number in count())
    while any(len(some) < each for some in found):
        name = next(names)
        some = found[segment_of(job_id_of(OWNER, name), segments)]
        if len(some) < each:
            some.append(name)
    return [name for some in found for name in some]


def _body(name: str, schedule: str, target: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "schedule": schedule,
        "target": dict(target),
        "payload": _PAYLOAD,
    }
