"""The jobs of a seed: schedules and policies of every kind, with few occurrences each."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from carillon.domain.events import JOB_EVENTS
from carillon.schedules import format_duration
from carillon.schedules.base import EPOCH
from carillon.simulation.faults import Draws
from tests.simulation.worlds.scenario_parts import CALENDAR, OWNERS, JobPlan

_FIRES = 60
"""About so many occurrences in the minutes of chaos a job has at most."""

Draw = Callable[[Draws, datetime, int], dict[str, Any]]
"""Members of a job's body that say when it fires: by dice, start, and minutes of chaos."""


def jobs_of(
    seed: int, start: datetime, minutes: int, *, is_for_chunks: bool
) -> tuple[JobPlan, ...]:
    """One to five jobs, in half of the seeds of several owners; for chunks two more, and many of
    them plain."""
    count = Draws(seed, "jobs").choice((1, 2, 2, 3, 3, 4, 5)) + (2 if is_for_chunks else 0)
    shared = _shared(Draws(seed, "keys"))
    owners = OWNERS[: Draws(seed, "owners").choice((1, 1, 2, 3))]
    jobs = (_job(Draws(seed, "job", n), n, start, minutes, shared) for n in range(count))
    jobs = (_reporting(Draws(seed, "reports", n), job) for n, job in enumerate(jobs))
    jobs = (_keeping(Draws(seed, "results", n), job) for n, job in enumerate(jobs))
    if is_for_chunks:
        jobs = (_plain(Draws(seed, "plain", n), job) for n, job in enumerate(jobs))
    owned = tuple(
        replace(job, owner=Draws(seed, "owner", n).choice(owners)) for n, job in enumerate(jobs)
    )
    return (*owned, *_followers(Draws(seed, "followers"), owned))


def _reporting(draws: Draws, job: JobPlan) -> JobPlan:
    """Some jobs have a target that reports the end of its runs, or falls silent."""
    if draws.fraction() >= 0.15:
        return job
    within = draws.choice(("20s", "1m", "1m", "3m"))
    terms = {"within": within, "heartbeat": draws.choice(("10s", "20s", None))}
    target = {"type": "webhook", "url": "https://example.com/hook", "completion": terms}
    return replace(job, body=json.dumps(json.loads(job.body) | {"target": target}))


def _keeping(draws: Draws, job: JobPlan) -> JobPlan:
    """Some jobs want their results kept whole."""
    if draws.fraction() >= 0.2:
        return job
    return replace(job, body=json.dumps(json.loads(job.body) | {"result": "full"}))


_NOT_PLAIN = (
    *("tolerance", "grace", "concurrency", "rate", "pause_after_failures", "calendar"),
    *("on_success", "result", "max_runs", "end_at", "events"),
)


def _plain(draws: Draws, job: JobPlan) -> JobPlan:
    """Most jobs go in chunks, many of them at the same seconds."""
    if draws.fraction() < 0.25:
        return job
    body = {k: v for k, v in json.loads(job.body).items() if k not in _NOT_PLAIN}
    if body["catch_up"] == "skip":
        body["catch_up"] = "latest"
    body |= {"overlap": "allow", "target": {"type": "task", "name": "echo"}}
    body["retry"]["max_attempts"] = max(2, body["retry"]["max_attempts"])
    if draws.fraction() < 0.7:
        body = {k: v for k, v in body.items() if k not in ("except", "start_at", "dst", "window")}
        body["schedule"] = draws.choice(("* * * * *", "*/30 * * * * *", "every 60s", "every 2m"))
    return replace(job, body=json.dumps(body))


def schedule_of(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    """A schedule: `schedule` and whatever goes with it."""
    return draws.choice(_SCHEDULES)(draws, start, minutes)


def _shared(draws: Draws) -> dict[str, Any]:
    """Limits that most jobs of the seed share, if any."""
    members: dict[str, Any] = {}
    if draws.fraction() < 0.2:
        members["concurrency"] = {"key": "k", "limit": draws.choice((1, 1, 2))}
    if draws.fraction() < 0.2:
        limit, per = draws.choice(((1, "10s"), (2, "20s"), (3, "1m"), (10, "1m")))
        members["rate"] = {"limit": limit, "per": per, "key": "r"}
    return members


def _job(
    draws: Draws, number: int, start: datetime, minutes: int, shared: Mapping[str, Any]
) -> JobPlan:
    name = f"j{number}"
    body: dict[str, Any] = {"name": name, "target": {"type": "task", "name": "echo"}}
    body |= schedule_of(draws, start, minutes)
    body |= _policies(draws)
    if draws.fraction() < 0.7:
        body |= shared
    delay = "finish" in str(body["schedule"])
    if draws.fraction() < 0.1 and not delay:
        body["max_runs"] = 1 + draws.below(8)
    if draws.fraction() < (0.5 if delay else 0.1) and "at " not in str(body["schedule"]):
        body["end_at"] = _text(start + timedelta(seconds=60 + draws.below(minutes * 60)))
    if draws.fraction() < 0.2:
        body["on_complete"] = "delete"
    if draws.fraction() < 0.1 and not delay:
        body["window"] = draws.choice(("5s", "20s", "50%", "2m"))
    if draws.fraction() < 0.1:
        rule = draws.choice(("skip", "skip", "next_business_day", "previous_business_day"))
        body["calendar"] = {"name": CALENDAR, "rule": rule}
    if draws.fraction() < 0.12:
        body["on_failure"] = {"type": "task", "name": "tell"}
    if draws.fraction() < 0.08:
        body["on_success"] = {"type": "task", "name": "tell"}
    if draws.fraction() < 0.25:
        body["events"] = [each.value for each in JOB_EVENTS]
    moves = body.get("calendar", {}).get("rule", "skip") != "skip"
    if draws.fraction() < 0.12 and not delay and not moves:
        body["expect_within"] = draws.choice(("PT1M", "PT90S", "PT2M", "PT5M"))
    if draws.fraction() < 0.15:
        body["pause_after_failures"] = 1 + draws.below(3)
    seconds = draws.choice((0.05, 0.05, 0.05, 0.5, 2.0, 6.0, 14.0))
    if "concurrency" in body and draws.fraction() < 0.7:
        seconds = 14.0  # or nobody would be in anybody's way
    failures = draws.choice((0.0, 0.0, 0.0, 0.0, 0.2, 0.6, 1.0))
    return JobPlan(name, json.dumps(body), seconds, failures)


def _followers(draws: Draws, jobs: Sequence[JobPlan]) -> Iterator[JobPlan]:
    """Jobs that run after others of the seed, in a third of the seeds."""
    if draws.fraction() < 0.67:
        return
    for number in range(draws.choice((1, 1, 2))):
        before, name = draws.choice(jobs), f"a{number}"
        after: dict[str, Any] = {"job": before.name}
        after["when"] = draws.choice(("succeeded", "succeeded", "failed", "finished"))
        if draws.fraction() < 0.3:
            after["within"] = draws.choice(("1s", "20s", "5m"))
        body: dict[str, Any] = {"name": name, "target": {"type": "task", "name": "echo"}}
        policies = _policies(draws)
        kept = {key: policies[key] for key in policies if key not in ("catch_up", "grace")}
        body |= {"after": after, **kept}
        if draws.fraction() < 0.3:
            body |= {"template": True, "payload": {"after": "{{after.run_id}} {{after.result}}"}}
        if draws.fraction() < 0.15:
            body["pause_after_failures"] = 1 + draws.below(3)
        seconds = draws.choice((0.05, 0.05, 2.0, 6.0))
        failures = draws.choice((0.0, 0.0, 0.3))
        yield JobPlan(name, json.dumps(body), seconds, failures, before.owner)


def _policies(draws: Draws) -> Mapping[str, Any]:
    catch_up = draws.choice(("skip", "latest", "latest", "all", "all"))
    members: dict[str, Any] = {
        "catch_up": catch_up,
        "overlap": draws.choice(("allow", "allow", "skip", "queue_one")),
        "priority": draws.choice(("high", "normal", "normal", "low")),
        "timeout_seconds": draws.choice((2, 5, 10, 15)),
        "retry": {
            "max_attempts": draws.choice((1, 2, 3, 3, 5)),
            "backoff": {
                "type": draws.choice(("fixed", "exponential")),
                "base_seconds": draws.choice((1, 2, 5, 20, 70)),
                "cap_seconds": 120,
            },
        },
    }
    if catch_up != "all" and draws.fraction() < 0.3:
        members["grace"] = draws.choice(("5s", "30s", "2m", "10m"))
    if draws.fraction() < 0.06:
        limit, per = draws.choice(((1, "10s"), (3, "1m"), (10, "1m")))
        members["rate"] = {"limit": limit, "per": per}
    return members


def _every_seconds(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    shortest = max(5, minutes * 60 // _FIRES)
    seconds = shortest + draws.below(60)
    return _tolerant(draws, seconds, {"schedule": f"every {seconds}s"})


def _every_minutes(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    seconds = 60 * (1 + draws.below(7))
    return _tolerant(draws, seconds, {"schedule": f"every {seconds // 60}m"})


def _tolerant(draws: Draws, seconds: int, members: dict[str, Any]) -> dict[str, Any]:
    if draws.fraction() < 0.1:
        members["tolerance"] = f"{draws.below(seconds)}s"
    return members


def _every_long(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    """A dated chain, of which one link falls into the minutes of chaos."""
    interval = draws.choice((37 * 60, 97 * 60, 7 * 3600, 25 * 3600, 3 * 86_400 + 61))
    link = start + timedelta(seconds=20 + draws.below(minutes * 60))
    offset = int((link - EPOCH).total_seconds()) % interval
    return {
        "schedule": {"every": format_duration(interval), "offset": format_duration(offset)}
        if offset
        else {"every": format_duration(interval)}
    }


def _every_since(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    """Counted from a start that may lie ahead, and may be in a dated minute of its own."""
    first = start + timedelta(seconds=draws.below(minutes * 40))
    seconds = draws.choice((23, 61, 90, 97, 150, 601))
    return {"schedule": f"every {seconds}s", "start_at": _text(first)}


def _cron_seconds(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    texts = ("*/20 * * * * *", "*/30 * * * * *", "7,52 * * * * *", "59 * * * * *", "0 * * * *")
    return {"schedule": draws.choice((*texts, "* * * * *", "*/3 * * * *", "13 */2 * * * *"))}


def _cron_hourly(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    at = start + timedelta(seconds=draws.below(minutes * 60))
    return {"schedule": f"{at.minute} * * * *"}


def _cron_daily(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    """Once a day, by the clock of some zone, in a minute of the chaos."""
    zone = draws.choice(("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"))
    at = (start + timedelta(seconds=draws.below(minutes * 60))).astimezone(ZoneInfo(zone))
    fields = f"{at.minute} {at.hour}"
    schedule = draws.choice((f"{fields} * * *", f"{at.second} {fields} * * *"))
    return {"schedule": schedule, "timezone": zone, **_dst(draws)}


def _cron_berlin(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    """What the clocks' changes skip or show twice, if the start lies near one."""
    schedule = draws.choice(("30 2 * * *", "0 2 * * *", "30 2 * * *", "*/5 2 * * *", "0 3 * * *"))
    return {"schedule": schedule, "timezone": "Europe/Berlin", **_dst(draws)}


def _dst(draws: Draws) -> dict[str, Any]:
    if draws.fraction() < 0.5:
        return {}
    fold = draws.choice(("first", "second", "both"))
    return {"dst": {"gap": draws.choice(("skip", "run_after")), "fold": fold}}


def _one_shot(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    at = start + timedelta(seconds=5 + draws.below(minutes * 60))
    return {"schedule": f"at {at:%Y-%m-%dT%H:%M:%S}"}


def _delay(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    seconds = draws.choice((17, 45, 61, 150, 200))
    return {"schedule": f"every {seconds}s after finish"}


def _combined(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    parts = [
        f"every {40 + draws.below(50)}s",
        draws.choice(("*/40 * * * * *", "2-59/7 * * * *", "every 37m")),
    ]
    if draws.fraction() < 0.3:
        parts.append(_one_shot(draws, start, minutes)["schedule"])
    members: dict[str, Any] = {"schedule": parts}
    if draws.fraction() < 0.5:
        at = start + timedelta(seconds=draws.below(minutes * 60))
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
