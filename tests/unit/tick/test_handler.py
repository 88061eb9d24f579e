"""The tick's handler: the root of an empty event, shares of others, and how others are invited."""

import importlib
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from carillon.clock import SystemClock
from carillon.domain.canary import CANARY_JOB_ID, CANARY_OWNER
from carillon.domain.wheel.entry import minute_of
from carillon.stores.ports import Stores
from carillon.tick.inviting import Invoker
from carillon.tick.sharing import Share, in_order
from tests.support.world import World

HANDLER = "carillon.tick.handler"
SEGMENTS = 6
ALIAS = "arn:aws:lambda:eu-west-1:123456789012:function:tick:live"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class Context:
    invoked_function_arn = ALIAS

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 58_000


class Lambda:
    """Takes invocations, or refuses them."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.refuses = False

    def invoke(self, **asked: Any) -> None:
        if self.refuses:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "Invoke")
        self.asked.append(asked)


@pytest.fixture
def world() -> World:
    return World(NOON, SEGMENTS)


@pytest.fixture
def lambda_(monkeypatch: pytest.MonkeyPatch) -> Lambda:
    client = Lambda()
    monkeypatch.setattr(boto3, "client", lambda name, config: client)
    return client


@pytest.fixture
def module(world: World, monkeypatch: pytest.MonkeyPatch, lambda_: Lambda) -> Iterator[ModuleType]:
    for name, value in {
        "JOBS_TABLE": "jobs",
        "WHEEL_TABLE": "wheel",
        "RUNS_TABLE": "runs",
        "LANE_QUEUES": '{"high":"http://h","normal":"http://n","low":"http://l","slow":"http://s"}',
        "SEGMENTS": str(SEGMENTS),
        "TICK_WORKERS": "3",
        "POWERTOOLS_METRICS_NAMESPACE": "Carillon",
        "POWERTOOLS_SERVICE_NAME": "tick",
    }.items():
        monkeypatch.setenv(name, value)
    names = Stores.__dataclass_fields__.keys() - {"skew_seconds"}
    stores = Stores(**{name: getattr(world, name) for name in names}, skew_seconds=lambda: None)
    monkeypatch.setattr("carillon.stores.dynamo.open_stores", lambda settings, clock: stores)
    monkeypatch.setattr(SystemClock, "now", lambda self: world.clock.now())
    monkeypatch.setattr(SystemClock, "sleep", lambda self, seconds: None)
    sys.modules.pop(HANDLER, None)
    yield importlib.import_module(HANDLER)
    sys.modules.pop(HANDLER, None)


def after_an_outage(world: World) -> None:
    """All segments have minutes to make up."""
    world.tick()
    world.clock.set(NOON + timedelta(minutes=9))


def finished(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    (record,) = (vars(each) for each in caplog.records if each.message == "tick.finished")
    return record


def test_an_idle_minute_is_the_root_s_alone(
    module: ModuleType, world: World, lambda_: Lambda, caplog: pytest.LogCaptureFixture
) -> None:
    assert module.handler({}, Context()) == {"messages": 0}
    record = finished(caplog)
    assert (record["dispatched"], lambda_.asked) == (SEGMENTS, [])
    assert not {"ticks", "share", "bound"} & record.keys()
    assert world.jobs.get(CANARY_OWNER, CANARY_JOB_ID) is not None


def test_a_heavy_minute_has_the_root_invite_shares_by_the_alias_that_it_was_invoked_by(
    module: ModuleType, world: World, lambda_: Lambda, caplog: pytest.LogCaptureFixture
) -> None:
    after_an_outage(world)
    module.handler({}, Context())
    assert {(each["FunctionName"], each["InvocationType"]) for each in lambda_.asked} == {
        (ALIAS, "Event")
    }
    payloads = [json.loads(each["Payload"]) for each in lambda_.asked]
    assert sorted(payloads, key=lambda each: int(each["share"])) == [
        {"share": 1, "of": 3},
        {"share": 2, "of": 3},
    ]
    assert (finished(caplog)["ticks"], finished(caplog)["bound"]) == (3, "workers")


def test_a_root_that_may_not_invoke_does_all_and_tells(
    module: ModuleType, world: World, lambda_: Lambda, caplog: pytest.LogCaptureFixture
) -> None:
    after_an_outage(world)
    lambda_.refuses = True
    module.handler({}, Context())
    told = [vars(each) for each in caplog.records if each.message == "share.uninvited"]
    assert sorted(each["share"] for each in told) == [1, 2]
    assert all("AccessDeniedException" in each["reason"] for each in told)
    assert finished(caplog)["SharesUninvited"] == [2.0]
    last = minute_of(world.clock.now()) + 2
    assert {world.indexer.control(n).watermark for n in range(SEGMENTS)} == {last}


@pytest.mark.parametrize(
    ("event", "share"),
    [
        ({"share": 1, "of": 3}, Share(1, 3)),
        ({"share": 2, "of": 3, "minute": 0}, Share(2, 3)),
        ({"share": "all", "of": -7}, Share(0, 0)),
    ],
    ids=str,
)
def test_a_share_invites_nobody_and_begins_with_its_own(
    module: ModuleType,
    world: World,
    lambda_: Lambda,
    caplog: pytest.LogCaptureFixture,
    event: object,
    share: Share,
) -> None:
    after_an_outage(world)
    held = world.dispatcher().begin(0, world.clock.now() + timedelta(seconds=52))
    module.handler(event, Context())
    record = finished(caplog)
    assert (record["share"], record["of"]) == (share.number, share.of)
    assert lambda_.asked == []
    last = minute_of(world.clock.now()) + 2
    order = in_order(SEGMENTS, minute_of(world.clock.now()))
    served = {n for n in order if world.indexer.control(n).watermark == last}
    assert served == set(order) - {0}, "nobody else came; what is held is left alone"
    assert held is not None
    assert world.jobs.get(CANARY_OWNER, CANARY_JOB_ID) is None, "the root looks after it"


def test_the_client_is_made_when_a_share_is_invited_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Lambda] = []

    def client(name: str, config: Any) -> Lambda:
        assert (name, config.max_pool_connections) == ("lambda", 4)
        made.append(Lambda())
        return made[-1]

    monkeypatch.setattr(boto3, "client", client)
    invoker = Invoker(4)
    assert made == []
    invoker.invite(ALIAS, Share(1, 2))
    invoker.invite(ALIAS, Share(2, 3))
    (only,) = made
    assert [json.loads(each["Payload"])["of"] for each in only.asked] == [2, 3]
