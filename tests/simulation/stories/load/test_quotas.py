"""Quotas of jobs under crashes: rows that they leave wrong refuse nothing for long, and are right
after the next count."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from carillon.api.apply.models import ApplyBody
from carillon.domain import quotas
from carillon.domain.quotas import Load, Quota, QuotaExceededError, Use
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import SYSTEM
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Chaos, Draws, Fault, Faults
from carillon.simulation.loop import Loop
from carillon.simulation.services import Api, job_body
from carillon.simulation.targets import SimulatedTargets
from tests.simulation.stories.story import MINUTE, NOON, SECOND
from tests.support.requests import job_patch
from tests.support.world import OWNER

FAULTS = Faults(dies=0.03, throttled=0.03, lost=0.03)
SEEDS = range(30)
REQUESTS = 60
NAMES = ("a", "b", "c", "d", "e", "f", "g")
LIMITS = {Quota.JOBS: 4, Quota.SCHEDULED: 2}
SCHEDULES = ("every 1m", "every 2m", "*/4 * * * *")
AT_ONCE = 2
CALM = NOON + 10 * MINUTE
PROBED = CALM + 2 * MINUTE

Ask = Callable[[Api], object]


@dataclass
class Owner:
    """Creates, changes, renames and deletes jobs for ten minutes, two at a time, in a deployment
    that throttles, loses answers and lets processes die; two minutes later one more is created."""

    seed: int
    quota: Quota
    most_jobs: int = 0
    was_refused: bool = False
    had_room: bool = False
    dead: int = 0
    deployment: Deployment = field(init=False)

    def __post_init__(self) -> None:
        loop = Loop(NOON, Chaos(self.seed, FAULTS, 50_000, calm_us=int(CALM.timestamp() * 1e6)))
        limited: Any = {f"owner_{self.quota}": LIMITS[self.quota]}
        options = replace(Options(), **limited)
        self.deployment = Deployment(loop, options, SimulatedTargets(loop))
        draws, api = Draws(self.seed, "requests"), Api.of(self.deployment)
        for number in range(REQUESTS):
            at = NOON + (number // AT_ONCE) * 20 * SECOND
            self.deployment.invoke(f"{number}", partial(self._draw(draws), api), at=at)
        self.deployment.invoke("probe", lambda: self._probe(api), at=PROBED)
        loop.run(loop.us_of(PROBED + MINUTE))
        self.dead = sum(each.strike.fault is Fault.DIES for each in loop.chaos.injected)

    def _draw(self, draws: Draws) -> Ask:
        name, other = draws.choice(NAMES), draws.choice(NAMES)
        schedule = draws.choice(SCHEDULES)
        body = job_body(_document(name, schedule))
        renamed = ApplyBody.model_validate(
            {
                "manifest": "m",
                "adopt": True,
                "jobs": {other: {**_members(schedule), "was": name}},
            }
        )
        job_id = job_id_of(OWNER, name)
        patch = job_patch({"schedule": schedule})
        asks: tuple[Ask, ...] = (
            lambda api: api.jobs.create(OWNER, body, None),
            lambda api: api.jobs.create(OWNER, body, None),
            lambda api: api.jobs.delete(OWNER, job_id),
            lambda api: api.jobs.delete(OWNER, job_id),
            lambda api: api.jobs.change(OWNER, job_id, patch, None),
            lambda api: api.applying.apply(OWNER, SYSTEM, "m", renamed, lambda item: None),
        )
        ask = draws.choice(asks)

        def noted(api: Api) -> None:
            try:
                ask(api)
            finally:
                self.most_jobs = max(self.most_jobs, self.load.jobs)

        return noted

    def _probe(self, api: Api) -> None:
        added = Load(1, 720)
        limit, load = LIMITS[self.quota], self.load
        jobs, fires = load.jobs + added.jobs, load.fires_per_day + added.fires_per_day
        self.had_room = jobs <= limit if self.quota is Quota.JOBS else fires <= limit * 1_440
        try:
            api.jobs.create(OWNER, job_body(_document("probe", "every 2m")), None)
        except QuotaExceededError:
            self.was_refused = True

    @property
    def load(self) -> Load:
        """The truth."""
        jobs = self.deployment.stores.jobs.list(OWNER, 100).items
        loads = list(map(Load.of, jobs))
        return Load(sum(each.jobs for each in loads), sum(each.fires_per_day for each in loads))

    @property
    def use(self) -> Use | None:
        return self.deployment.stores.uses.get(OWNER, "jobs")


def _members(schedule: str) -> dict[str, object]:
    return {"schedule": schedule, "target": {"type": "task", "name": "echo"}}


def _document(name: str, schedule: str) -> dict[str, object]:
    return {"name": name, **_members(schedule)}


@pytest.fixture(scope="module", params=[Quota.JOBS, Quota.SCHEDULED])
def owners(request: pytest.FixtureRequest) -> list[Owner]:
    return [Owner(seed, request.param) for seed in SEEDS]


def test_nothing_is_refused_that_has_room(owners: list[Owner]) -> None:
    for owner in owners:
        assert not (owner.was_refused and owner.had_room), owner.seed
    assert sum(owner.had_room for owner in owners) >= 3
    assert sum(owner.dead for owner in owners) > 2 * len(owners)


def test_what_has_no_room_is_refused(owners: list[Owner]) -> None:
    """But where a count has missed what was under way: that comes on top of the limit."""
    full = [owner for owner in owners if not owner.had_room]
    passed = [owner for owner in full if not owner.was_refused]
    assert len(full) > 10
    assert len(passed) <= 3
    for owner in passed:
        assert owner.load.jobs <= LIMITS[Quota.JOBS] + AT_ONCE, owner.seed


def test_a_count_finds_the_true_number(owners: list[Owner]) -> None:
    """Of those that were refused the jobs were counted for it."""
    for owner in (each for each in owners if each.was_refused):
        use, load = owner.use, owner.load
        assert use is not None
        assert use.counted_at >= PROBED
        assert use.jobs == load.jobs, owner.seed
        assert use.fires_per_day in (None, load.fires_per_day), owner.seed


def test_no_more_goes_beyond_the_limit_than_is_under_way_at_once(owners: list[Owner]) -> None:
    for owner in owners:
        if owner.quota is Quota.JOBS:
            assert owner.most_jobs <= LIMITS[Quota.JOBS] + AT_ONCE, owner.seed


def test_without_counts_crashes_would_refuse_what_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "COUNTED_FOR", timedelta(days=1))
    owners = [Owner(seed, Quota.JOBS) for seed in SEEDS]
    assert any(owner.was_refused and owner.had_room for owner in owners)
