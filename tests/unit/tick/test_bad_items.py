"""A bad item of the wheel stops itself only: every kind of it beside a good entry, on DynamoDB's
own form of rows."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from carillon.clock import ManualClock
from carillon.domain.message import Message, encode
from carillon.domain.wheel.entry import Slot, entry_of_message, minute_of
from carillon.errors import QueueUnavailableError, StoreUnavailableError
from carillon.schedules import CalendarRule, SlotKind, parse_schedule
from carillon.services import calendar_reader
from carillon.services.indexer import Indexer
from carillon.settings import Settings
from carillon.stores.dynamo import Stores, open_stores
from carillon.stores.dynamo.wheel import item_of
from carillon.stores.segments import segments_in_use
from carillon.tick import segment_visit
from carillon.tick.counting import SegmentOutcome, SegmentReport
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.ports import TickPorts
from tests.contract.samples import a_job, a_key, a_message
from tests.support.tables import create_deployment
from tests.support.world import World
from tests.unit.faults import dying, failing

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = minute_of(START)
JOB = "0" * 26
FILING = "01KBCCS1P0N0T0F1X1NGAT0NCE"
Item = dict[str, dict[str, Any]]


def message_at(fire_at: datetime, segment: int = 0) -> Message:
    key = a_key("owner", fire_at)
    return a_message("owner", key=key, due_at=fire_at, segment=segment)


def a_body(**changes: object) -> Item:
    """A message's body, with members of its run replaced, as an entry carries it."""
    body = json.loads(encode(message_at(START)))
    body["runs"][0] |= changes
    return {"m": {"S": json.dumps(body)}}


BAD_ENTRIES: dict[str, Item] = {
    "a generation id that is no ULID": {"entry_key": {"S": f"{JOB}#notaulid"}},
    "a generation id of other letters": {"entry_key": {"S": f"{JOB}#{'u' * 26}"}},
    "an empty generation id": {"entry_key": {"S": f"{JOB}#"}},
    "no generation id": {"entry_key": {"S": JOB}},
    "an empty key's parts": {"entry_key": {"S": "##"}},
    "from_at beyond datetime": {"f": {"N": "9" * 25}},
    "from_at before datetime": {"f": {"N": "-" + "9" * 25}},
    "from_at a fraction": {"f": {"N": "1.5"}},
    "from_at a text": {"f": {"S": "now"}},
    "start_at beyond datetime": {"a": {"N": "9" * 25}},
    "end_at beyond datetime": {"e": {"N": "9" * 25}},
    "an owner of another type": {"o": {"N": "1"}},
    "a schedule of another type": {"s": {"N": "5"}},
    "a schedule that is none": {"s": {"S": "whenever it suits"}},
    "a schedule nested deep": {"s": {"S": "(" * 100_000}},
    "a time zone that is none": {"z": {"S": "Atlantis/Capital"}},
    "a DST rule that is none": {"d": {"S": "backwards/both"}},
    "a lane that is none": {"l": {"S": "express"}},
    "a catch-up of another type": {"c": {"BOOL": True}},
    "a huge spread": {"w": {"N": "9" * 25}},
    "a calendar rule that is none": {"k": {"S": "x/holidays"}},
    "a grace of another type": {"r": {"S": "long"}},
    "a message nested 100,000 deep": {"m": {"S": "[" * 100_000}},
    "a message that is no JSON": {"m": {"S": "{"}},
    "a message of another version": {"m": {"S": '{"v": 99, "runs": [{}]}'}},
    "a message whose run is a number": {"m": {"S": '{"v": 1, "runs": [1]}'}},
    "a message with an instant of 1e20": a_body(fire_at=1e20),
    "a message with an instant of Infinity": a_body(due_at=float("inf")),
    "a message due in the year 9999": a_body(due_at=253_402_300_000),
    "a message whose outage is a list": a_body(missed=[]),
    "a message of a huge waiting time": a_body(wait_until=10**18),
    "every attribute of another type": {name: {"L": []} for name in ("o", "f", "s", "m", "k", "w")},
}


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        with mock_aws():
            yield create_deployment("bad")


class Ticker:
    """Real stores and the tick on them, at a time of its own."""

    def __init__(self, settings: Settings) -> None:
        self.clock = ManualClock(START)
        self.stores: Stores = open_stores(settings, self.clock)
        self.table = settings.wheel_table
        self.dynamodb = boto3.client("dynamodb")
        self.told: list[tuple[Any, ...]] = []
        stores = self.stores
        self.ports = TickPorts(
            jobs=stores.jobs,
            calendars=stores.calendars,
            wheel=stores.wheel,
            chunks=stores.chunks,
            indexer=Indexer(stores.jobs, stores.wheel, stores.queue, self.clock, stores.calendars),
            clock=self.clock,
            on_bad_entry=lambda *where: self.told.append(where),
        )

    def tick(self, *segments: int) -> list[SegmentReport]:
        dispatcher = Dispatcher(self.ports, lease_owner="tick", look_ahead_minutes=2)
        return dispatcher.tick(segments, (), self.clock.now() + timedelta(seconds=50))

    def put(self, item: Item) -> None:
        self.dynamodb.put_item(TableName=self.table, Item=item)


@pytest.fixture(scope="module")
def opened(settings: Settings) -> Ticker:
    return Ticker(settings)


@pytest.fixture
def ticker(opened: Ticker) -> Ticker:
    opened.clock.set(START)
    opened.told.clear()
    return opened


SEGMENTS = iter(range(10_000))


def a_dated_entry(segment: int) -> Item:
    """A link of a dated chain in the tick's own minute: what is bad of it is another's."""
    job = a_job("owner", segment=segment)
    entry = entry_of_message(message_at(START, segment))
    schedule = parse_schedule("every 1001m offset 10m")
    link = replace(entry, message=None, schedule=schedule, job_id=job.job_id, generation_id=FILING)
    return item_of(replace(link, from_at=START - timedelta(minutes=1)))


@pytest.mark.parametrize("bad", BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_a_bad_entry_is_set_aside_and_the_others_of_its_minute_are_sent(
    ticker: Ticker, bad: Item
) -> None:
    segment = next(SEGMENTS)
    ticker.put({**a_dated_entry(segment), **bad})
    good = message_at(START + timedelta(seconds=9), segment)
    ticker.stores.wheel.put_entries([entry_of_message(good)])
    (report,) = ticker.tick(segment)
    assert report.outcome is SegmentOutcome.DISPATCHED, report.reason
    assert report.messages >= 1, "the good one is sent"
    control = ticker.stores.wheel.get_control(segment)
    assert control is not None
    assert control.watermark == MINUTE + 2, "and the watermark moves"
    told_segment, slot_key, key, reason = ticker.told[0]
    assert (told_segment, slot_key) == (segment, f"m{MINUTE}")
    assert key
    assert reason
    stands = ticker.dynamodb.query(
        TableName=ticker.table,
        KeyConditionExpression="segment_slot = :slot",
        ExpressionAttributeValues={":slot": {"S": f"{segment}#m{MINUTE}"}},
    )
    assert stands["Count"] == 2, "it stays, for whoever looks into it"


BAD_CONTROLS: dict[str, Item] = {
    "every member of another type": {
        name: {"S": "x"} for name in ("horizon", "watermark", "token", "lease_until", "backlog")
    },
    "a backlog of empty maps": {"backlog": {"L": [{"M": {}}]}},
    "no watermark": {"watermark": {"NULL": True}},
    "no token": {"token": {"NULL": True}},
    "a cursor of another minute's slot": {
        "cursor": {
            "M": {"minute": {"N": str(MINUTE)}, "slot_key": {"S": "h59"}, "entry_key": {"S": "a"}}
        }
    },
    "a lease beyond datetime": {"lease_until": {"N": "9" * 25}},
    "a huge tzdata_from": {"tzdata_from": {"N": "9" * 25}},
    "a huge watermark": {"watermark": {"N": "9" * 25}},
}


@pytest.mark.parametrize("bad", BAD_CONTROLS.values(), ids=BAD_CONTROLS)
def test_a_bad_control_item_fails_its_own_segment_only(ticker: Ticker, bad: Item) -> None:
    segments = [next(SEGMENTS) for _ in range(3)]
    for segment in segments:
        ticker.ports.indexer.control(segment)
    spoilt = segments[START.minute % 3]  # the first that is served
    key = {"segment_slot": {"S": f"{spoilt}#control"}, "entry_key": {"S": "control"}}
    item: Item = ticker.dynamodb.get_item(TableName=ticker.table, Key=key)["Item"]  # type: ignore[assignment]
    ticker.put({**item, **bad})
    for _ in range(3):
        outcomes = {each.segment: each for each in ticker.tick(*segments)}
        failed = outcomes.pop(spoilt)
        assert failed.outcome is SegmentOutcome.FAILED
        assert f"carillon admin mend-segment {spoilt}" in failed.reason
        assert {each.outcome for each in outcomes.values()} == {SegmentOutcome.DISPATCHED}
        ticker.clock.advance(60)


def test_a_tick_starts_beside_a_bad_control_item_of_a_segment_beyond_the_setting(
    ticker: Ticker,
) -> None:
    first = next(SEGMENTS)
    key = {"segment_slot": {"S": f"{first}#control"}, "entry_key": {"S": "control"}}
    ticker.put({**key, "token": {"S": "seven"}})
    assert segments_in_use(ticker.stores.wheel, first) == first + 1


def test_an_error_that_nobody_thought_of_fails_its_own_segment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(START, segments=3)
    query = world.wheel.query

    def failing(segment: int, slot: Slot, after_key: str | None = None) -> Any:
        if segment == 0:
            raise ZeroDivisionError("a bug")
        return query(segment, slot, after_key)

    monkeypatch.setattr(world.wheel, "query", failing)
    reports = {report.segment: report for report in world.tick()}
    assert reports[0].outcome is SegmentOutcome.FAILED
    assert reports[0].reason == "ZeroDivisionError: a bug"
    assert {reports[1].outcome, reports[2].outcome} == {SegmentOutcome.DISPATCHED}
    control = world.wheel.get_control(0)
    assert control is not None
    assert control.lease_until is None, "and is free for the next tick"


@pytest.mark.parametrize(
    "error", [QueueUnavailableError(1, "throttled"), StoreUnavailableError("throttled")]
)
def test_what_the_queue_or_the_store_did_not_take_fails_the_minute(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It may not be taken for the entry's own fault: the watermark would go over what is unsent."""
    monkeypatch.setattr("carillon.tick.outbox.FULL", 1)
    world = World(START, segments=1)
    world.create("chain", "every 1001m offset 10m", start_at=START - timedelta(minutes=1001))
    world.run_until(START + timedelta(minutes=7))
    world.clock.set(START + timedelta(minutes=8))

    with failing(world.queue, "send", error), failing(world.wheel, "put_entries", error):
        (report,) = world.tick()
    assert report.outcome is SegmentOutcome.FAILED
    assert world.bad_entries == []
    control = world.wheel.get_control(0)
    assert control is not None
    assert control.watermark < minute_of(START) + 10


def test_whatever_ends_the_process_is_not_caught() -> None:
    world = World(START, segments=1)
    world.create("job", "* * * * *")
    world.clock.advance(120)
    with dying(segment_visit, "messages_of"):
        world.tick()


def test_a_calendar_that_breaks_the_engine_sets_its_entry_aside() -> None:
    world = World(START, segments=1)
    rolling = ("holidays", CalendarRule.PREVIOUS_BUSINESS_DAY)
    world.create("job", "* * * * *", calendar=rolling)
    world.create("other", "* * * * *")
    world.tick()
    world.clock.advance(60)

    with failing(calendar_reader, "resolve", RecursionError("too deep")):
        (report,) = world.tick()
    assert report.outcome is SegmentOutcome.DISPATCHED
    assert any("RecursionError" in where for where in world.bad_entries)
    assert report.messages > 0


def test_a_dated_entry_set_aside_is_not_asked_for_again() -> None:
    world = World(START, segments=1)
    job = world.new_job("job", "every 1001m")
    slot = Slot(SlotKind.DATED, MINUTE + 1)
    bad = replace(
        entry_of_message(message_at(START)),
        slot=slot,
        message=None,
        schedule=parse_schedule("every 1m"),
        job_id=job.job_id,
        generation_id="notaulid",
    )
    world.wheel.put_entries([bad])
    spoilt = replace(bad, job_id="1" * 26)
    world.wheel.put_entries([spoilt])
    world.wheel.spoil_entry(spoilt)
    world.run_until(START + timedelta(minutes=4))
    assert len(world.bad_entries) == 2
    assert any("ValueError" in where and job.job_id in where for where in world.bad_entries)
