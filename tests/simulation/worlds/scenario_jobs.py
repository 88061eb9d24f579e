"""The jobs of a seed: schedules and policies of every kind, with few occurrences each."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from carillon.domain.events import JOB_EVENTS
from carillon.schedules import format_duration
from carillon.schedules.base import EPOCH
from carillon.simulation.faults import Dice
from tests.simulation.worlds.scenario_parts import CALENDAR, OWNERS, JobPlan

_FIRES = 60
"""About so many occurrences in the minutes of chaos a job has at most."""

Draw = Callable[[Dice, datetime, int], dict[str, Any]]
"""Members of a job's body that say when it fires: by dice, start, and minutes of chaos."""


def jobs_of(seed: int, start: datetime, minutes: int) -> tuple[JobPlan, ...]:
    """One to five jobs, in half of the seeds of several owners."""
    count = Dice(seed, "jobs").choice((1, 2, 2, 3, 3, 4, 5))
    shared = _shared(Dice(seed, "keys"))
    owners = OWNERS[: Dice(seed, "owners").choice((1, 1, 2, 3))]
    jobs = (_job(Dice(seed, "job", n), n, start, minutes, shared) for n in range(count))
    return tuple(
        replace(job, owner=Dice(seed, "owner", n).choice(owners)) for n, job in enumerate(jobs)
    )


def schedule_of(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    """A schedule: `schedule` and whatever goes with it."""
    return dice.choice(_SCHEDULES)(dice, start, minutes)


def _shared(dice: Dice) -> dict[str, Any]:
    """Limits that most jobs of the seed share, if any."""
    members: dict[str, Any] = {}
    if dice.fraction() < 0.2:
        members["concurrency"] = {"key": "k", "limit": dice.choice((1, 1, 2))}
    if dice.fraction() < 0.2:
        limit, per = dice.choice(((1, "10s"), (2, "20s"), (3, "1m"), (10, "1m")))
        members["rate"] = {"limit": limit, "per": per, "key": "r"}
    return members


def _job(
    dice: Dice, number: int, start: datetime, minutes: int, shared: Mapping[str, Any]
) -> JobPlan:
    name = f"j{number}"
    body: dict[str, Any] = {"name": name, "target": {"type": "task", "name": "echo"}}
    body |= schedule_of(dice, start, minutes)
    body |= _policies(dice)
    if dice.fraction() < 0.7:
        body |= shared
    delay = "finish" in str(body["schedule"])
    if dice.fraction() < 0.1 and not delay:
        body["max_runs"] = 1 + dice.below(8)
    if dice.fraction() < 0.1 and not delay and "at " not in str(body["schedule"]):
        body["end_at"] = _text(start + timedelta(seconds=60 + dice.below(minutes * 60)))
    if dice.fraction() < 0.2:
        body["on_complete"] = "delete"
    if dice.fraction() < 0.1 and not delay:
        body["window"] = dice.choice(("5s", "20s", "50%", "2m"))
    if dice.fraction() < 0.1:
        rule = dice.choice(("skip", "skip", "next_business_day", "previous_business_day"))
        body["calendar"] = {"name": CALENDAR, "rule": rule}
    if dice.fraction() < 0.12:
        body["on_failure"] = {"type": "task", "name": "tell"}
    if dice.fraction() < 0.08:
        body["on_success"] = {"type": "task", "name": "tell"}
    if dice.fraction() < 0.25:
        body["events"] = [each.value for each in JOB_EVENTS]
    moves = body.get("calendar", {}).get("rule", "skip") != "skip"
    if dice.fraction() < 0.12 and not delay and not moves:
        body["expect_within"] = dice.choice(("PT1M", "PT90S", "PT2M", "PT5M"))
    if dice.fraction() < 0.15:
        body["pause_after_failures"] = 1 + dice.below(3)
    seconds = dice.choice((0.05, 0.05, 0.05, 0.5, 2.0, 6.0, 14.0))
    if "concurrency" in body and dice.fraction() < 0.7:
        seconds = 14.0  # or nobody would be in anybody's way
    failures = dice.choice((0.0, 0.0, 0.0, 0.0, 0.2, 0.6, 1.0))
    return JobPlan(name, json.dumps(body), seconds, failures)


def _policies(dice: Dice) -> Mapping[str, Any]:
    catch_up = dice.choice(("skip", "latest", "latest", "all", "all"))
    members: dict[str, Any] = {
        "catch_up": catch_up,
        "overlap": dice.choice(("allow", "allow", "skip", "queue_one")),
        "priority": dice.choice(("high", "normal", "normal", "low")),
        "timeout_seconds": dice.choice((2, 5, 10, 15)),
        "retry": {
            "max_attempts": dice.choice((1, 2, 3, 3, 5)),
            "backoff": {
                "type": dice.choice(("fixed", "exponential")),
                "base_seconds": dice.choice((1, 2, 5, 20, 70)),
                "cap_seconds": 120,
            },
        },
    }
    if catch_up != "all" and dice.fraction() < 0.3:
        members["grace"] = dice.choice(("5s", "30s", "2m", "10m"))
    if dice.fraction() < 0.06:
        limit, per = dice.choice(((1, "10s"), (3, "1m"), (10, "1m")))
        members["rate"] = {"limit": limit, "per": per}
    return members


def _every_seconds(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    shortest = max(5, minutes * 60 // _FIRES)
    seconds = shortest + dice.below(60)
    return _tolerant(dice, seconds, {"schedule": f"every {seconds}s"})


def _every_minutes(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    seconds = 60 * (1 + dice.below(7))
    return _tolerant(dice, seconds, {"schedule": f"every {seconds // 60}m"})


def _tolerant(dice: Dice, seconds: int, members: dict[str, Any]) -> dict[str, Any]:
    if dice.fraction() < 0.1:
        members["tolerance"] = f"{dice.below(seconds)}s"
    return members


def _every_long(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    """A dated chain, of which one link falls into the minutes of chaos."""
    interval = dice.choice((37 * 60, 97 * 60, 7 * 3600, 25 * 3600, 3 * 86_400 + 61))
    link = start + timedelta(seconds=20 + dice.below(minutes * 60))
    offset = int((link - EPOCH).total_seconds()) % interval
    return {
        "schedule": {"every": format_duration(interval), "offset": format_duration(offset)}
        if offset
        else {"every": format_duration(interval)}
    }


def _every_since(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    """Counted from a start that may lie ahead, and may be in a dated minute of its own."""
    first = start + timedelta(seconds=dice.below(minutes * 40))
    seconds = dice.choice((23, 61, 90, 97, 150, 601))
    return {"schedule": f"every {seconds}s", "start_at": _text(first)}


def _cron_seconds(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    texts = ("*/20 * * * * *", "*/30 * * * * *", "7,52 * * * * *", "59 * * * * *", "0 * * * *")
    return {"schedule": dice.choice((*texts, "* * * * *", "*/3 * * * *", "13 */2 * * * *"))}


def _cron_hourly(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    at = start + timedelta(seconds=dice.below(minutes * 60))
    return {"schedule": f"{at.minute} * * * *"}


def _cron_daily(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    """Once a day, by the clock of some zone, in a minute of the chaos."""
    zone = dice.choice(("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"))
    at = (start + timedelta(seconds=dice.below(minutes * 60))).astimezone(ZoneInfo(zone))
    fields = f"{at.minute} {at.hour}"
    schedule = dice.choice((f"{fields} * * *", f"{at.second} {fields} * * *"))
    return {"schedule": schedule, "timezone": zone, **_dst(dice)}


def _cron_berlin(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    """What the clocks' changes skip or show twice, if the start lies near one."""
    schedule = dice.choice(("30 2 * * *", "0 2 * * *", "30 2 * * *", "*/5 2 * * *", "0 3 * * *"))
    return {"schedule": schedule, "timezone": "Europe/Berlin", **_dst(dice)}


def _dst(dice: Dice) -> dict[str, Any]:
    if dice.fraction() < 0.5:
        return {}
    fold = dice.choice(("first", "second", "both"))
    return {"dst": {"gap": dice.choice(("skip", "run_after")), "fold": fold}}


def _one_shot(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    at = start + timedelta(seconds=5 + dice.below(minutes * 60))
    return {"schedule": f"at {at:%Y-%m-%dT%H:%M:%S}"}


def _delay(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    seconds = dice.choice((17, 45, 61, 150, 200))
    return {"schedule": f"every {seconds}s after finish"}


def _combined(dice: Dice, start: datetime, minutes: int) -> dict[str, Any]:
    parts = [
        f"every {40 + dice.below(50)}s",
        dice.choice(("*/40 * * * * *", "2-59/7 * * * *", "every 37m")),
    ]
    if dice.fraction() < 0.3:
        parts.append(_one_shot(dice, start, minutes)["schedule"])
    members: dict[str, Any] = {"schedule": parts}
    if dice.fraction() < 0.5:
        at = start + timedelta(seconds=dice.below(minutes * 60))
        members["except"] = [f"{at.minute} * * * *"]
    return members


_SCHEDULES: tuple[Draw, ...] = (
    _every_seconds,
    _every_seconds,
    _every_seconds,
    _every_minutes,
    _every_long,
    _every_long,
    _every_since,
    _cron_seconds,
    _cron_seconds,
    _cron_hourly,
    _cron_daily,
    _cron_berlin,
    _one_shot,
    _delay,
    _combined,
)


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
