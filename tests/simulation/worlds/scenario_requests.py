"""What the owner of a seed's jobs asks for, and when: often at the same moment."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from carillon.simulation.faults import Dice
from tests.simulation.worlds.scenario_jobs import schedule_of
from tests.simulation.worlds.scenario_parts import JobPlan, Request

Chaos = tuple[datetime, int]
"""Start and minutes."""

_SECOND_US = 1_000_000
_KINDS = (
    *("change", "change", "pause", "pause", "delete", "run", "run", "backfill", "create"),
    *("calendar", "resume", "redrive", "discard", "cancel", "redrive_all", "discard_all"),
)
_OF_FAILING = ("redrive", "redrive", "discard", "discard", "cancel", "redrive_all", "discard_all")
"""What is asked for besides where a job has dead letters, and runs that wait for a retry."""
_OF_WAITING = ("cancel", "cancel", "run", "run", "backfill")
"""What is asked for besides where runs of a job wait for each other or for their turn."""
_PARTNERS = {"redrive": ("discard", "redrive"), "discard": ("redrive", "discard")}
"""What may be asked for at the same moment, about the same run."""


def requests_of(
    seed: int, start: datetime, minutes: int, jobs: Sequence[JobPlan]
) -> tuple[Request, ...]:
    """All requests of a seed, those that create its jobs first."""
    hot = [_hot_us(Dice(seed, "hot", number), start, minutes) for number in range(3)]
    found = [_creation(Dice(seed, "create", n), job) for n, job in enumerate(jobs)]
    for number, job in enumerate(jobs):
        dice = Dice(seed, "requests", number)
        kinds, is_volley = _kinds_of(job), dice.fraction() < 0.1
        for n in range(dice.choice((0, 1, 2, 3, 4, 6))):
            one = Dice(seed, f"request of {job.name}", n)
            at_us = hot[0] if is_volley else _instant_us(one, hot, minutes)
            found += _asked(one, (start, minutes), job, n, one.choice(kinds), at_us)
    last_us = minutes * 60 * _SECOND_US - 1
    return tuple(replace(each, after_us=min(each.after_us, last_us)) for each in found)


def calendar_body(dice: Dice, start: datetime) -> str:
    """Closed days, some of them today; as PUT /calendars takes them."""
    days = [start.date() + timedelta(days=dice.below(4) - 1) for _ in range(dice.below(3))]
    weekdays = [dice.choice(("sat", "sun", "tue", "fri"))] if dice.fraction() < 0.4 else []
    return json.dumps({"dates": [day.isoformat() for day in days], "weekdays": weekdays})


def _kinds_of(job: JobPlan) -> Sequence[str]:
    """What may be asked for, so that most of it has something to be about."""
    body = json.loads(job.body)
    kinds: tuple[str, ...] = _KINDS
    if job.failures:
        kinds += 2 * _OF_FAILING
    if body["overlap"] == "queue_one" or "rate" in body or "concurrency" in body:
        kinds += _OF_WAITING
    return kinds


def _creation(dice: Dice, job: JobPlan) -> Request:
    after_us = dice.below(20 * _SECOND_US)
    if dice.fraction() < 0.25:
        after_us = dice.below(240 * _SECOND_US)
    return Request(f"create {job.name}", "create", job.name, after_us, job.name, job.body, 3)


def _hot_us(dice: Dice, start: datetime, minutes: int) -> int:
    """A moment that several requests share: at a whole minute, a whole second, or any."""
    at_us = dice.below(minutes * 60 * _SECOND_US)
    if dice.fraction() < 0.5:
        minute_us = 60 * _SECOND_US
        start_us = start.second * _SECOND_US
        return max(0, (at_us // minute_us) * minute_us - start_us + dice.below(_SECOND_US))
    return at_us if dice.fraction() < 0.5 else at_us // _SECOND_US * _SECOND_US


def _instant_us(dice: Dice, hot: list[int], minutes: int) -> int:
    if dice.fraction() < 0.6:
        return dice.choice(hot) + dice.choice((0, 0, dice.below(300_000)))
    return dice.below(minutes * 60 * _SECOND_US)


def _asked(
    dice: Dice, chaos: Chaos, job: JobPlan, n: int, what: str, after_us: int
) -> Iterator[Request]:
    name = f"{what} {job.name} {n}"
    key = "" if dice.fraction() < 0.2 else name
    repeats = dice.choice((0, 1, 1, 3))
    body = _body(dice, chaos, job, what, after_us)
    if what == "create":
        # Under the same key, whatever became of the first.
        key = job.name
    if what == "delete" and dice.fraction() < 0.6:
        what, name = "pause", f"pause {job.name} {n}"
    yield Request(name, what, job.name, after_us, key, body, repeats)
    partners = _PARTNERS.get(what, ())
    if partners and dice.fraction() < 0.4:
        yield Request(f"{name} besides", dice.choice(partners), job.name, after_us, "", "", 1)
    if what in ("backfill", "redrive_all", "discard_all") and dice.fraction() < 0.2:
        later_us = after_us + dice.below(90 * _SECOND_US)
        yield Request(f"cancel {name}", "cancel_all", job.name, later_us, "", "", 1)
    if what == "run" and dice.fraction() < 0.3:
        later_us = after_us + dice.choice((0, 200_000, 30 * _SECOND_US))
        yield Request(f"{name} again", what, job.name, later_us, key, body)
    if what == "pause" and dice.fraction() < 0.8:
        later_us = after_us + dice.choice((0, _SECOND_US, dice.below(240 * _SECOND_US)))
        yield Request(f"resume {job.name} {n}", "resume", job.name, later_us, "", "", 1)


def _body(dice: Dice, chaos: Chaos, job: JobPlan, what: str, after_us: int) -> str:
    if what == "create":
        return job.body
    if what == "change":
        return json.dumps(_patch(dice, chaos))
    if what == "calendar":
        return calendar_body(dice, chaos[0])
    if what == "backfill":
        until = chaos[0] + timedelta(microseconds=after_us)
        begin = until - timedelta(seconds=dice.choice((60, 180, 240)))
        only = dice.choice(("all", "missed"))
        per_minute = dice.choice((4, 20, 60))
        span = {"from": f"{begin:%Y-%m-%dT%H:%M:%SZ}", "to": f"{until:%Y-%m-%dT%H:%M:%SZ}"}
        return json.dumps({**span, "only": only, "per_minute": per_minute})
    if what in ("redrive_all", "discard_all"):
        of_job = {"job_id": job.job_id} if dice.fraction() < 0.5 else {"all": True}
        return json.dumps({**of_job, "per_minute": dice.choice((4, 60))})
    return ""


def _patch(dice: Dice, chaos: Chaos) -> dict[str, Any]:
    """A change, most often of what makes another filing."""
    kind = dice.below(8)
    if kind < 3:
        # Whatever the old schedule came with goes with it.
        gone = {"except": None, "start_at": None, "end_at": None, "max_runs": None, "window": None}
        gone |= {"tolerance": None, "dst": None, "timezone": None}
        return {**gone, **schedule_of(dice, *chaos)}
    return (
        {"priority": dice.choice(("high", "normal", "low"))},
        {"payload": {"n": dice.below(100)}},
        {"catch_up": dice.choice(("skip", "latest", "all")), "grace": None},
        {"overlap": dice.choice(("allow", "skip", "queue_one"))},
        {"retry": {"max_attempts": 1 + dice.below(4)}, "timeout_seconds": 3},
    )[kind - 3]
