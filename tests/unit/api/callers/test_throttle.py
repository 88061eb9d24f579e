"""No owner's flood of requests shuts out the others."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.api.http.throttle import MOST_BUCKETS, Throttle
from carillon.stores.memory import MemoryJobStore
from tests.unit.api.conftest import SETTINGS, World, new_world
from tests.unit.api.gateway import STRANGER, Client, answer_of, event

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def taken(
    throttle: Throttle, owner: str, seconds: float, asked: int = 100, per_second: int = 20
) -> int:
    """How many of so many requests at once are taken."""
    now = NOW + timedelta(seconds=seconds)
    return sum(throttle.wait_seconds(owner, per_second, now) == 0 for _ in range(asked))


def test_a_burst_then_the_rate() -> None:
    throttle = Throttle(40)

    assert taken(throttle, "a", 0) == 40
    assert taken(throttle, "a", 0.5) == 10
    assert taken(throttle, "a", 1.5) == 20
    assert taken(throttle, "a", 3600) == 40


def test_each_owner_has_a_bucket_of_its_own() -> None:
    throttle = Throttle(40)
    taken(throttle, "a", 0)

    assert taken(throttle, "b", 0) == 40


@pytest.mark.parametrize(("per_second", "wait"), [(20, 1), (1, 1)])
def test_it_says_when_the_next_is_taken(per_second: int, wait: int) -> None:
    throttle = Throttle(1)
    taken(throttle, "a", 0, per_second=per_second)

    assert throttle.wait_seconds("a", per_second, NOW) == wait
    assert throttle.wait_seconds("a", per_second, NOW + timedelta(seconds=wait)) == 0


def test_a_clock_that_is_set_back_refills_nothing() -> None:
    throttle = Throttle(40)
    taken(throttle, "a", 100)

    assert taken(throttle, "a", 0) == 0


def test_each_owner_has_a_limit_of_its_own() -> None:
    throttle = Throttle(40)
    assert taken(throttle, "a", 0, per_second=90) == 90
    assert taken(throttle, "b", 0, per_second=1) == 40

    assert taken(throttle, "a", 1, per_second=90) == 90
    assert taken(throttle, "b", 1, per_second=1) == 1


def test_it_knows_how_much_is_in_use() -> None:
    throttle = Throttle(40)
    assert throttle.use("a", 20, NOW) == 0
    taken(throttle, "a", 0, asked=25)
    assert throttle.use("a", 20, NOW) == 5
    taken(throttle, "a", 0)
    assert throttle.use("a", 20, NOW) == 20
    assert throttle.use("a", 20, NOW + timedelta(seconds=0.5)) == 10


def test_many_owners_do_not_fill_the_process() -> None:
    throttle = Throttle(40)
    for number in range(MOST_BUCKETS):
        throttle.wait_seconds(f"owner-{number}", 20, NOW)
    taken(throttle, "busy", 60)
    throttle.wait_seconds("one more", 20, NOW + timedelta(seconds=60))

    assert len(throttle._buckets) < 10
    assert taken(throttle, "busy", 60) == 0


def test_no_limit() -> None:
    assert taken(Throttle(1), "a", 0, per_second=0) == 100


@pytest.fixture
def limited() -> World:
    world = new_world()
    world.settings = replace(SETTINGS, owner_requests_per_second=2, owner_requests_burst=3)
    return world


def test_who_sends_too_much_is_told_when_to_repeat(limited: World) -> None:
    api = limited.api()
    client = Client(api)
    assert [client.get("/jobs").status for _ in range(4)] == [200, 200, 200, 429]

    answer = client.get("/jobs")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"] == "1"
    assert answer.json["type"] == "urn:carillon:problem:too-many-requests"
    assert Client(api, owner=STRANGER).get("/jobs").status == 200
    limited.clock.advance(1)
    assert client.get("/jobs").status == 200


def test_a_refused_request_asks_no_store_and_reads_no_body(limited: World) -> None:
    class Untouched(MemoryJobStore):
        def list(self, *arguments: object, **named: object) -> None:  # type: ignore[override]
            raise AssertionError("asked")

    api = limited.api(jobs=Untouched())
    client = Client(api)
    for _ in range(3):
        assert client.post("/jobs", "{").status == 400

    assert client.post("/jobs", "{").status == 429
    assert client.get("/jobs").status == 429


def test_what_has_no_owner_is_not_counted(limited: World) -> None:
    api = limited.api()
    for _ in range(5):
        assert answer_of(api, event("GET", "/openapi.json")).status == 200
        assert answer_of(api, event("GET", "/jobs")).status == 401
