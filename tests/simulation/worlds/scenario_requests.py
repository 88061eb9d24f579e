"""What the owner of a seed's jobs asks for, and when: often at the same moment."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from carillon.domain.execution.stopping import LOOK_SECONDS
from carillon.simulation.faults import Draws
from tests.simulation.worlds.scenario_jobs import schedule_of
from tests.simulation.worlds.scenario_parts import OWNERS, JobPlan, Request, renamed_name

Chaos = tuple[datetime, int]
"""Start and minutes."""

_SECOND_US = 1_000_000
_KINDS = (
    *("change", "change", "pause", "pause", "delete", "delete", "run", "run", "backfill", "create"),
    *("calendar", "resume", "redrive", "discard", "cancel", "redrive_all", "discard_all", "put"),
    *("apply", "rename"),
)
_OF_FAILING = ("redrive", "redrive", "discard", "discard", "cancel", "redrive_all", "discard_all")
"""What is asked for besides where a job has dead letters, and runs that wait for a retry."""
_OF_WAITING = ("cancel", "cancel", "run", "run", "backfill")
"""What is asked for besides where runs of a job wait for each other or for their turn."""
_OF_A_SCHEDULE = frozenset(
    {
        "schedule",
        "except",
        "start_at",
        "end_at",
        "max_runs",
        "window",
        "tolerance",
        "dst",
        "timezone",
    }
)
"""Not the calendar: the one that a job has now moves occurrences of earlier generations, too."""
_PARTNERS = {"redrive": ("discard", "redrive"), "discard": ("redrive", "discard")}
"""What may be asked for at the same moment, about the same run."""


def requests_of(
    seed: int, start: datetime, minutes: int, jobs: Sequence[JobPlan]
) -> tuple[Request, ...]:
    """All requests of a seed, those that create its jobs first."""
    hot = [_hot_us(Draws(seed, "hot", number), start, minutes) for number in range(3)]
    found = list[Request]()
    for number, job in enumerate(jobs):
        found.append(_creation(Draws(seed, "create", number), job, found))
    for number, job in enumerate(jobs):
        draws = Draws(seed, "requests", number)
        kinds, is_volley = _kinds_of(job), draws.fraction() < 0.1
        for n in range(draws.choice((0, 1, 2, 3, 4, 6))):
            one = Draws(seed, f"request of {job.name}", n)
            at_us = hot[0] if is_volley else _instant_us(one, hot, minutes)
            found += _asked(one, (start, minutes), job, n, one.choice(kinds), at_us)
        found += _stops(seed, job, minutes)
    last_us = minutes * 60 * _SECOND_US - 1
    return tuple(replace(each, after_us=min(each.after_us, last_us)) for each in found)


def spreads_of(
    seed: int, start: datetime, minutes: int, jobs: Sequence[JobPlan], segments: int
) -> Iterator[Request]:
    """An operator spreads the jobs over fewer segments, or over all again; often where an owner
    asks for something, and until it is done."""
    draws = Draws(seed, "spreads")
    for n in range(draws.choice((0, 1, 2, 3)) if segments > 1 else 0):
        over = segments if n and draws.fraction() < 0.5 else 1 + draws.below(segments - 1)
        hot_us = _hot_us(Draws(seed, "hot", draws.below(3)), start, minutes)
        at_us = draws.choice((hot_us, draws.below(minutes * 60 * _SECOND_US)))
        yield Request(f"spread {n}", "spread", jobs[0].name, at_us, body=str(over), repeats=3)


def reindexings_of(
    seed: int, start: datetime, minutes: int, jobs: Sequence[JobPlan]
) -> Iterator[Request]:
    """An operator puts all jobs on the wheel anew though nothing is amiss, by their history or as
    if no tick had come for some time; often where an owner asks for something."""
    draws = Draws(seed, "reindexings")
    for n in range(draws.choice((0, 0, 0, 1, 1, 2))):
        hot_us = _hot_us(Draws(seed, "hot", draws.below(3)), start, minutes)
        at_us = draws.choice((hot_us, draws.below(minutes * 60 * _SECOND_US)))
        since_seconds = draws.choice(("", str(draws.below(120)), str(draws.below(1200))))
        yield Request(f"reindex {n}", "reindex", jobs[0].name, at_us, body=since_seconds, repeats=3)


def hand_overs_of(
    seed: int, start: datetime, minutes: int, jobs: Sequence[JobPlan]
) -> Iterator[Request]:
    """Jobs go to another owner, one or all that somebody has, and may come back; often where an
    owner asks for something."""
    draws = Draws(seed, "hand overs")
    for n in range(draws.choice((0, 0, 1, 1, 2, 3))):
        job = draws.choice(jobs)
        to = draws.choice([owner for owner in OWNERS if owner != job.owner])
        hot_us = _hot_us(Draws(seed, "hot", draws.below(3)), start, minutes)
        at_us = draws.choice((hot_us, draws.below(minutes * 60 * _SECOND_US)))
        yield hand_over(f"hand over {n}", job, job.owner, to, at_us, is_one=draws.fraction() < 0.5)
        if draws.fraction() < 0.4:
            later_us = at_us + draws.choice((_SECOND_US, draws.below(300 * _SECOND_US)))
            yield hand_over(f"hand back {n}", job, to, job.owner, later_us, is_one=False)


def hand_over(
    name: str, job: JobPlan, owner: str, to: str, after_us: int, *, is_one: bool
) -> Request:
    """A request to hand over a job of the owner's, or all; also managed ones."""
    body = json.dumps({"from": owner, "to": to, "is_one": is_one})
    return Request(name, "hand_over", job.name, after_us, name, body, repeats=3)


def calendar_body(draws: Draws, start: datetime) -> str:
    """Closed days, some of them today; as PUT /calendars takes them."""
    days = [start.date() + timedelta(days=draws.below(4) - 1) for _ in range(draws.below(3))]
    weekdays = [draws.choice(("sat", "sun", "tue", "fri"))] if draws.fraction() < 0.4 else []
    return json.dumps({"dates": [day.isoformat() for day in days], "weekdays": weekdays})


def _stops(seed: int, job: JobPlan, minutes: int) -> Iterator[Request]:
    """Of jobs whose calls may last; often two ask for the same."""
    draws = Draws(seed, f"stops of {job.name}")
    for n in range(draws.choice((0, 0, 1, 2, 4)) if job.seconds > LOOK_SECONDS else 0):
        name, after_us = f"stop {job.name} {n}", draws.below(minutes * 60 * _SECOND_US)
        yield Request(name, "stop", job.name, after_us, repeats=draws.choice((0, 1, 3)))
        if draws.fraction() < 0.3:
            yield Request(f"{name} besides", "stop", job.name, after_us, repeats=1)


def _kinds_of(job: JobPlan) -> Sequence[str]:
    """What may be asked for, so that most of it has something to be about."""
    body = json.loads(job.body)
    kinds: tuple[str, ...] = _KINDS
    if job.failures:
        kinds += 2 * _OF_FAILING
    if body["overlap"] == "queue_one" or "rate" in body or "concurrency" in body:
        kinds += _OF_WAITING
    return kinds


def _creation(draws: Draws, job: JobPlan, made: Sequence[Request]) -> Request:
    """Soon after the start; after that of the job which it runs after."""
    after_us = draws.below(20 * _SECOND_US)
    if draws.fraction() < 0.25:
        after_us = draws.below(240 * _SECOND_US)
    name = json.loads(job.body).get("after", {}).get("job")
    after_us += next((each.after_us + 2 * _SECOND_US for each in made if each.job == name), 0)
    return Request(f"create {job.name}", "create", job.name, after_us, job.name, job.body, 3)


def _hot_us(draws: Draws, start: datetime, minutes: int) -> int:
    """A moment that several requests share: at a whole minute, a whole second, or any."""
    at_us = draws.below(minutes * 60 * _SECOND_US)
    if draws.fraction() < 0.5:
        minute_us = 60 * _SECOND_US
        start_us = start.second * _SECOND_US
        return max(0, (at_us // minute_us) * minute_us - start_us + draws.below(_SECOND_US))
    return at_us if draws.fraction() < 0.5 else at_us // _SECOND_US * _SECOND_US


def _instant_us(draws: Draws, hot: list[int], minutes: int) -> int:
    if draws.fraction() < 0.6:
        return draws.choice(hot) + draws.choice((0, 0, draws.below(300_000)))
    return draws.below(minutes * 60 * _SECOND_US)


def _asked(
    draws: Draws, chaos: Chaos, job: JobPlan, n: int, what: str, after_us: int
) -> Iterator[Request]:
    name = f"{what} {job.name} {n}"
    key = "" if draws.fraction() < 0.2 else name
    repeats = draws.choice((0, 1, 1, 3))
    body = _body(draws, chaos, job, what, after_us)
    if what == "rename":
        what = "apply"
    if what == "create":
        # Under the same key, whatever became of the first.
        key = job.name
    if what == "delete" and draws.fraction() < 0.6:
        what, name = "pause", f"pause {job.name} {n}"
        body = _body(draws, chaos, job, what, after_us)
    yield Request(name, what, job.name, after_us, key, body, repeats)
    partners = _PARTNERS.get(what, ())
    if partners and draws.fraction() < 0.4:
        yield Request(f"{name} besides", draws.choice(partners), job.name, after_us, "", "", 1)
    if what in ("backfill", "redrive_all", "discard_all") and draws.fraction() < 0.2:
        later_us = after_us + draws.below(90 * _SECOND_US)
        yield Request(f"cancel {name}", "cancel_all", job.name, later_us, "", "", 1)
    if what == "run" and draws.fraction() < 0.3:
        later_us = after_us + draws.choice((0, 200_000, 30 * _SECOND_US))
        yield Request(f"{name} again", what, job.name, later_us, key, body)
    if what == "pause" and draws.fraction() < (0.3 if body else 0.8):
        later_us = after_us + draws.choice((0, _SECOND_US, draws.below(240 * _SECOND_US)))
        yield Request(f"resume {job.name} {n}", "resume", job.name, later_us, "", "", 1)
    if what == "delete" and draws.fraction() < 0.7:
        later_us = after_us + draws.choice((0, _SECOND_US, draws.below(240 * _SECOND_US)))
        body = _body(draws, chaos, job, "put", later_us)
        yield Request(f"revive {job.name} {n}", "put", job.name, later_us, "", body, 2)


def _body(draws: Draws, chaos: Chaos, job: JobPlan, what: str, after_us: int) -> str:
    if what == "create":
        return job.body
    if what in ("apply", "rename"):
        members = json.loads(_body(draws, chaos, job, "put", after_us))
        if what == "rename":
            members["was"] = job.name
        del members["name"]
        return json.dumps({renamed_name(job.name) if "was" in members else job.name: members})
    if what == "put":
        other = schedule_of(draws, *chaos) if draws.fraction() < 0.4 else {}
        kept = json.loads(job.body)
        if other:
            gone = {*_OF_A_SCHEDULE, "after", "template", "payload"}
            kept = {name: kept[name] for name in kept if name not in gone}
        return json.dumps(kept | other)
    if what == "change":
        patch = _patch(draws, chaos)
        is_follower = "after" in json.loads(job.body)
        return json.dumps(_patch_of_follower(draws, patch) if is_follower else patch)
    if what == "pause" and draws.fraction() < 0.5:
        later = timedelta(microseconds=after_us, seconds=62 + draws.below(180))
        return json.dumps({"until": (chaos[0] + later).isoformat()})
    if what == "calendar":
        return calendar_body(draws, chaos[0])
    if what == "backfill":
        until = chaos[0] + timedelta(microseconds=after_us)
        begin = until - timedelta(seconds=draws.choice((60, 180, 240)))
        only = draws.choice(("all", "missed"))
        per_minute = draws.choice((4, 20, 60))
        span = {"from": f"{begin:%Y-%m-%dT%H:%M:%SZ}", "to": f"{until:%Y-%m-%dT%H:%M:%SZ}"}
        return json.dumps({**span, "only": only, "per_minute": per_minute})
    if what in ("redrive_all", "discard_all"):
        of_job = {"job_id": job.job_id} if draws.fraction() < 0.5 else {"all": True}
        return json.dumps({**of_job, "per_minute": draws.choice((4, 60))})
    return ""


def _patch_of_follower(draws: Draws, patch: dict[str, Any]) -> dict[str, Any]:
    """Of a job that runs after another one what is no schedule; half of those that are take the
    place of the other job."""
    if "schedule" not in patch:
        return patch
    if draws.fraction() < 0.5:
        return {"after": {"when": draws.choice(("succeeded", "failed", "finished"))}}
    return {**patch, "after": None, "template": False}


def _patch(draws: Draws, chaos: Chaos) -> dict[str, Any]:
    """A change, most often of what makes another generation."""
    kind = draws.below(10)
    if kind < 3:
        # Whatever the old schedule came with goes with it.
        gone = {"except": None, "start_at": None, "end_at": None, "max_runs": None, "window": None}
        gone |= {"tolerance": None, "dst": None, "timezone": None}
        return {**gone, **schedule_of(draws, *chaos)}
    return (
        {"priority": draws.choice(("high", "normal", "low"))},
        {"payload": {"n": draws.below(100)}},
        {"catch_up": draws.choice(("skip", "latest", "all")), "grace": None},
        {"overlap": draws.choice(("allow", "skip", "queue_one"))},
        {"retry": {"max_attempts": 1 + draws.below(4)}, "timeout_seconds": 3},
        _bound(draws, *chaos),
        draws.choice(_LIMITS),
    )[kind - 3]


def _bound(draws: Draws, start: datetime, minutes: int) -> dict[str, Any]:
    """Another bound of a schedule that stays the same otherwise, or none."""
    at = start + timedelta(seconds=draws.below(minutes * 60))
    return draws.choice(
        (
            {"end_at": f"{at:%Y-%m-%dT%H:%M:%SZ}"},
            {"start_at": f"{at:%Y-%m-%dT%H:%M:%SZ}"},
            {"max_runs": 1 + draws.below(8)},
            {"except": [f"{at.minute} * * * *"]},
            {"end_at": None, "start_at": None, "max_runs": None, "except": None},
            {"timezone": draws.choice(("UTC", "Europe/Berlin", "Asia/Kolkata"))},
        )
    )


_LIMITS: tuple[dict[str, Any], ...] = (
    {"window": "20s"},
    {"window": None},
    {"tolerance": "10s"},
    {"rate": {"limit": 1, "per": "10s"}},
    {"rate": None},
    {"concurrency": {"key": "k", "limit": 1}},
    {"concurrency": None},
    {"pause_after_failures": 2},
    {"pause_after_failures": None},
    {"on_complete": "delete"},
    {"on_complete": "keep"},
    {"result": "full"},
)
"""Changes of a single setting that decides about load or ends.

`events`, `calendar` and `expect_within` are not among them: the checker knows those of the last
version alone.
"""
