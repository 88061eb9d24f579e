"""The smoke test whole, over the real API, ticks and executors in virtual time."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from carillon.api.app import Api
from carillon.cli.client import ApiClient
from carillon.domain.run import RunError
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.smoke.probes import long_probes, quick_probes
from carillon.smoke.smoke import Result, Smoke
from tests.support.world import OWNER, World
from tests.unit.api.conftest import SETTINGS, new_world
from tests.unit.api.gateway import Client

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
FAILS = {
    "smoke-1 killed at its limit": Failure(RunError("timeout", "2 s"), timed_out=True),
    "smoke-1 task that crashes": Failure(RunError("task_died", "it ended")),
    "smoke-1 retries, callback": Failure(RunError("RuntimeError", "attempt failed")),
    "smoke-1 missed-run check": Failure(RunError("RuntimeError", "attempt failed")),
}


def behave(call: Call) -> Outcome:
    is_callback = "_callback" in call.run_id
    return Success("done") if is_callback else FAILS.get(call.job_name, Success("done"))


class WorldsClock:
    """Time passes in the world while its user sleeps."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> datetime:
        return self._world.clock.now()

    def sleep(self, seconds: float) -> None:
        self._world.run_until(self.now() + timedelta(seconds=seconds - 1))


def api_of(world: World) -> Api:
    parts = {
        name: getattr(world, name)
        for name in ("jobs", "calendars", "wheel", "runs", "queue", "operations", "events", "clock")
    }
    return new_world().api(**parts, settings=SETTINGS)


def client_of(world: World) -> ApiClient:
    owner = Client(api_of(world), OWNER)

    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {n: v for n, v in request.headers.items() if n == "idempotency-key"}
        query = dict(request.url.params) or None
        body = {} if not request.content else {"body": json.loads(request.content)}
        path = request.url.path
        sent = owner.send(request.method, path, headers=headers, query=query, **body)
        return httpx2.Response(sent.status, headers=sent.headers, text=sent.text)

    return ApiClient("https://api.example", "token", httpx2.MockTransport(answer))


@pytest.fixture
def world() -> World:
    made = World(NOON, segments=4)
    made.targets.behave = behave
    return made


def driven(world: World, *, long: bool = False) -> list[Result]:
    work = Smoke(client_of(world), WorldsClock(world), "smoke-1")
    probes = [*quick_probes(), *(long_probes(NOON, SETTINGS) if long else ())]
    results = list(work.run(probes))
    return [*results, work.clean_up()]


def wrong(results: list[Result]) -> dict[str, str]:
    return {each.check: each.text for each in results if not each.holds}


def test_a_deployment_that_works_holds_and_is_left_as_it_was(world: World) -> None:
    results = driven(world)
    assert wrong(results) == {}
    assert len(results) == 13
    assert world.clock.now() - NOON < timedelta(seconds=90)
    assert world.jobs.list(OWNER, 100).items == ()
    assert world.runs.dead_letters(OWNER, 100).items == ()
    assert results[-1].text == "11 jobs and 4 dead letters removed"


def test_the_long_form_holds_within_ten_minutes(world: World) -> None:
    assert wrong(driven(world, long=True)) == {}
    assert world.clock.now() - NOON < timedelta(minutes=10)


def test_what_nobody_runs_is_told_with_what_was_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "execute", lambda: None)
    found = wrong(driven(world))
    assert found["every 2s"] == "not within 75 s: no run"
    assert found["run by hand"] == "it has not ended within 30 s"
    assert found["all starts"] == "none"
    assert "clean-up" not in found


def test_an_api_that_takes_its_time_makes_no_one_shot_come_too_late(world: World) -> None:
    client = client_of(world)
    post = client.post_once

    def slowly(path: str, body: Any, key: str | None) -> Any:
        world.run_until(world.clock.now() + timedelta(seconds=2))
        return post(path, body, key)

    client.post_once = slowly  # type: ignore[method-assign]
    work = Smoke(client, WorldsClock(world), "smoke-1")
    assert wrong(list(work.run(list(quick_probes())))) == {}


def test_targets_that_fail_are_told(world: World) -> None:
    world.targets.behave = lambda call: Failure(RunError("http_503", "down"))
    found = wrong(driven(world))
    assert {"one-shot", "every 2s", "fixed delay", "killed at its limit"} <= set(found)
