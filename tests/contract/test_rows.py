"""Items of DynamoDB: exact, of the promised size, and with the attributes that indexes need."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.domain.calendar import Calendar, CalendarUse
from shared.domain.job import Filing, Job, JobState, Lane, PreviousFiling, job_id_of
from shared.domain.policies import Backoff, CatchUp, OnComplete, RetryPolicy
from shared.domain.run import (
    DEAD_LETTER,
    RESULT_LIMIT_BYTES,
    AttemptRecord,
    Run,
    RunError,
    RunKey,
    RunKind,
    RunStatus,
)
from shared.domain.segment import Backlog, Control, Cursor
from shared.domain.targets import TaskTarget, WebhookTarget
from shared.domain.wheel import Entry, Slot, entry_of_message
from shared.recurrence import CalendarRule, DstRule, Fold, Gap, SlotKind, parse_schedule
from shared.recurrence.spread import LONGEST_WINDOW_SECONDS
from shared.stores.dynamo import calendars, jobs, runs, wheel
from shared.stores.dynamo.models import CalendarRow, JobRow
from shared.stores.dynamo.table import RawItem, keys_of
from tests.contract.kit import Kit
from tests.contract.samples import (
    FILING_ID,
    FIRE_AT,
    NOW,
    a_bounded_schedule,
    a_calendar,
    a_control,
    a_job,
    a_key,
    a_message,
    a_run,
    an_entry,
)
from tests.item_sizes import item_size, read_units, write_units

SUBJECT = "d4c8f4a8-10b1-70aa-5c3e-9f1e2d3c4b5a"
"""A Cognito subject is an owner of this length."""

instants = st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1), timezones=st.just(UTC))
seconds = instants.map(lambda instant: instant.replace(microsecond=0))
# A schedule's anchor lies in 1971 at the earliest; sort keys of runs end in 2286.
fires = st.datetimes(datetime(1971, 1, 2), datetime(2250, 1, 1), timezones=st.just(UTC)).map(
    lambda instant: instant.replace(microsecond=0)
)
# Behind every anchor, by more than any interval.
ends = st.datetimes(datetime(2260, 1, 1), datetime(9990, 1, 1), timezones=st.just(UTC)).map(
    lambda instant: instant.replace(microsecond=0)
)
counts = st.integers(0, 2**53)
job_ids = st.integers().map(lambda number: job_id_of("owner", str(number)))
names = st.text(min_size=1, max_size=40)
maybe_instants = st.none() | instants
schedules = st.builds(
    parse_schedule,
    st.sampled_from(
        [
            "17 * * * *",
            "*/5 * * * * *",
            "every 25m offset 2m",
            "0 3 * * 1-5",
            "cron(0 9 ? * MON-FRI *)",
            "every 10m after finish",
            "0 9 * * 1-5 | every 25m except * * 25 12 * | 0 0 1 * *",
        ]
    ),
    st.sampled_from(["UTC", "Europe/Riga", "Asia/Kathmandu"]),
    st.none() | fires,
    st.none() | ends,
    st.builds(DstRule, st.none() | st.sampled_from(Gap), st.none() | st.sampled_from(Fold)),
)
calendar_uses = st.none() | st.builds(CalendarUse, names, st.sampled_from(CalendarRule))
days = st.dates(date(1970, 1, 1), date(9998, 12, 31))
all_calendars = st.builds(
    Calendar,
    owner=names,
    name=names,
    revision=counts,
    weekdays=st.frozensets(st.integers(0, 6)),
    ranges=st.lists(st.tuples(days, days).map(sorted).map(tuple), max_size=5).map(tuple),
    created_at=instants,
    updated_at=instants,
    description=st.text(),
)
targets = st.sampled_from(
    [TaskTarget(name="samples.hello"), WebhookTarget(url="https://example.com/ü?a=b")]
)
retries = st.builds(
    RetryPolicy,
    counts,
    st.builds(Backoff, counts, st.floats(1, 1e9, allow_nan=False), counts),
)
replaced = st.builds(PreviousFiling, names, instants, instants)
all_jobs = st.builds(
    Job,
    owner=names,
    job_id=job_ids,
    name=st.text(),
    schedule=schedules,
    target=targets,
    payload=st.text(),
    segment=counts,
    filing=st.builds(Filing, names, instants),
    created_at=instants,
    updated_at=instants,
    state=st.sampled_from(JobState),
    revision=counts,
    previous=st.none() | replaced,
    earlier=st.lists(replaced, max_size=3).map(tuple),
    lane=st.sampled_from(Lane),
    catch_up=st.sampled_from(CatchUp),
    retry=retries,
    timeout_seconds=counts,
    fingerprint=st.text(),
    end_at=maybe_instants,
    max_runs=st.none() | counts,
    on_complete=st.sampled_from(OnComplete),
    window=st.sampled_from(["", "15m", "50%"]),
    spread_seconds=counts,
    calendar=calendar_uses,
    paused_at=maybe_instants,
    expires_at=st.none() | seconds,
)
errors = st.builds(RunError, st.text(), st.text(), st.booleans())
keys = st.builds(
    RunKey, names, job_ids, st.sampled_from(RunKind), fires, st.text(), st.integers(0, 99)
)
all_runs = st.builds(
    Run,
    key=keys,
    status=st.sampled_from(RunStatus),
    attempt=counts,
    token=counts,
    claim_id=st.text(),
    filing_id=st.text(),
    updated_at=instants,
    expires_at=seconds,
    lease_until=maybe_instants,
    started_at=maybe_instants,
    attempt_started_at=maybe_instants,
    finished_at=maybe_instants,
    next_attempt_at=maybe_instants,
    result=st.none() | st.text(),
    error=st.none() | errors,
    reason=st.none() | st.text(),
    covers_from=maybe_instants,
    covers_count=st.none() | counts,
    effective_at=maybe_instants,
    note=st.none() | st.text(max_size=RESULT_LIMIT_BYTES // 4),
    attempts=st.lists(st.builds(AttemptRecord, counts, instants, instants, errors), max_size=3).map(
        tuple
    ),
)
slots = st.builds(Slot, st.sampled_from(SlotKind), st.integers(0, 10**8))
all_entries = st.builds(
    Entry,
    segment=counts,
    slot=slots,
    owner=names,
    job_id=job_ids,
    filing_id=st.just(FILING_ID),
    from_at=instants,
    lane=st.sampled_from(Lane),
    catch_up=st.sampled_from(CatchUp),
    schedule=schedules,
    spread_seconds=st.integers(0, LONGEST_WINDOW_SECONDS),
    calendar=calendar_uses,
    zone_digest=st.text(),
)
all_controls = st.builds(
    Control,
    segment=counts,
    horizon=counts,
    watermark=counts,
    token=counts,
    lease_owner=st.text(),
    lease_until=maybe_instants,
    backlog=st.lists(st.builds(Backlog, counts, counts, counts, instants), max_size=3).map(tuple),
    cursor=st.none() | st.builds(Cursor, counts, names, names),
)


def _through_dynamodb(item: RawItem) -> RawItem:
    """The item as it comes back: JSON both ways; DynamoDB keeps only numbers in this spelling."""
    text = json.dumps(item)
    for number in re.findall(r'\{"N": "([^"]*)"\}', text):
        assert re.fullmatch(r"0|-?[1-9][0-9]{0,37}", number)
    restored: RawItem = json.loads(text)
    return restored


@settings(deadline=None)  # other work on the machine must not fail it
@given(all_jobs)
def test_a_job_survives_its_item(job: Job) -> None:
    assert jobs.job_of(_through_dynamodb(jobs.item_of(job))) == job


@settings(deadline=None)  # other work on the machine must not fail it
@given(all_calendars)
def test_a_calendar_survives_its_item(calendar: Calendar) -> None:
    assert calendars.calendar_of(_through_dynamodb(calendars.item_of(calendar))) == calendar


@settings(deadline=None)  # other work on the machine must not fail it
@given(all_runs)
def test_a_run_survives_its_item(run: Run) -> None:
    assert runs.run_of(_through_dynamodb(runs.item_of(run))) == run


@settings(deadline=None)  # other work on the machine must not fail it
@given(all_entries)
def test_an_entry_survives_its_item(entry: Entry) -> None:
    item = _through_dynamodb(wheel.item_of(entry))
    assert wheel.entry_of(entry.segment, entry.slot, item) == entry


@settings(deadline=None)  # other work on the machine must not fail it
@given(all_controls)
def test_a_control_survives_its_item(control: Control) -> None:
    item = _through_dynamodb(wheel.control_item_of(control))
    assert wheel.control_of(control.segment, item) == control


@settings(deadline=None)  # other work on the machine must not fail it
@given(keys, keys)
def test_runs_of_a_job_are_in_the_order_of_their_fire_times(one: RunKey, other: RunKey) -> None:
    if one.fire_at != other.fire_at:
        assert (one.sort_key < other.sort_key) == (one.fire_at > other.fire_at)


@pytest.mark.parametrize(
    "item",
    [
        wheel.item_of(an_entry(SUBJECT, 15)),
        wheel.item_of(
            an_entry(
                SUBJECT,
                15,
                slot=Slot(SlotKind.DAILY, 1439),
                schedule=parse_schedule("*/15 8-18 * * 1-5", "Europe/Riga"),
            )
        ),
        wheel.item_of(
            an_entry(
                SUBJECT,
                15,
                slot=Slot(SlotKind.DATED, 29_700_000),
                schedule=parse_schedule("every 100m offset 2m", start_at=FIRE_AT),
            )
        ),
    ],
    ids=["hourly", "daily in a zone", "dated with an anchor"],
)
def test_an_entry_is_small(item: RawItem) -> None:
    assert 100 < item_size(item) <= 180


def test_an_entry_with_everything_is_small() -> None:
    entry = an_entry(
        SUBJECT,
        15,
        slot=Slot(SlotKind.DAILY, 1439),
        schedule=a_bounded_schedule(),
        lane=Lane.HIGH,
        catch_up=CatchUp.SKIP,
        spread_seconds=899,
        calendar=CalendarUse("holidays", CalendarRule.NEXT_BUSINESS_DAY),
        zone_digest="Kd8a0Q",
    )
    assert item_size(wheel.item_of(entry)) <= 240


def test_a_retry_far_ahead_is_one_write_unit() -> None:
    assert write_units(wheel.item_of(entry_of_message(a_message(SUBJECT)))) == 1


def _ended(**changes: Any) -> RawItem:
    fields: dict[str, Any] = {
        "status": RunStatus.SUCCEEDED,
        "finished_at": NOW + timedelta(seconds=1),
        "lease_until": None,
        "result": "x" * RESULT_LIMIT_BYTES,
    }
    return runs.item_of(a_run(a_key(SUBJECT), **{**fields, **changes}))


def test_an_ordinary_run_is_one_write_unit_from_claim_to_finish() -> None:
    claimed = runs.item_of(a_run(a_key(SUBJECT)))
    assert item_size(claimed) < 300
    assert item_size(_ended()) < 1024
    error = RunError("http_503", "x" * RESULT_LIMIT_BYTES)
    dead = _ended(status=RunStatus.DEAD, result=None, error=error, reason="attempts exhausted")
    assert item_size(dead) < 1024


def test_a_job_with_a_small_payload_is_small() -> None:
    item = jobs.item_of(a_job(SUBJECT, payload=json.dumps({"text": "x" * 256})))
    assert item_size(item) < 2048


def test_a_usual_calendar_is_one_read_unit() -> None:
    singles = tuple((FIRE_AT.date() + timedelta(days=31 * n),) * 2 for n in range(100))
    calendar = a_calendar(SUBJECT, ranges=singles, description="x" * 256)
    assert read_units(item_size(calendars.item_of(calendar))) == 1


def test_the_largest_calendar_fits_an_item() -> None:
    first = date(2026, 1, 1)
    ranges = tuple(
        (first + timedelta(days=400 * n), first + timedelta(days=400 * n + 365))
        for n in range(2000)
    )
    calendar = a_calendar(SUBJECT, name="x" * 128, ranges=ranges, description="x" * 1024)
    assert item_size(calendars.item_of(calendar)) < 32 * 1024


def test_calendars_stand_under_the_keys_of_jobs() -> None:
    names = [[key.attr_name for key in keys_of(model)] for model in (JobRow, CalendarRow)]
    assert names[0] == names[1]


def test_a_control_item_is_one_write_unit_in_the_worst_ordinary_case() -> None:
    control = a_control(
        15,
        token=10**9,
        lease_owner=FILING_ID,
        lease_until=NOW,
        backlog=tuple(Backlog(29_700_000, 29_700_001, 29_700_999, NOW) for _ in range(4)),
        cursor=Cursor(29_700_000, "m29700000", f"{FILING_ID}#{FILING_ID}"),
    )
    assert write_units(wheel.control_item_of(control)) == 1


def test_item_sizes_follow_the_documented_rule() -> None:
    assert item_size({"ab": {"S": "ü"}}) == 2 + 2
    assert item_size({"n": {"N": "0"}}) == 1 + 1
    assert item_size({"n": {"N": "1790000000"}}) == 1 + 1 + 2
    assert item_size({"n": {"N": "-12345"}}) == 1 + 1 + 3 + 1
    assert item_size({"b": {"BOOL": True}}) == 1 + 1
    assert item_size({"l": {"L": [{"S": "abc"}]}}) == 1 + 3 + (1 + 3)
    assert item_size({"m": {"M": {"k": {"S": "abc"}}}}) == 1 + 3 + (1 + 1 + 3)
    assert [write_units({"a": {"S": "x" * size}}) for size in (1023, 1024)] == [1, 2]


@pytest.mark.parametrize("status", list(RunStatus))
def test_only_dead_letters_are_in_their_index(aws_kit: Kit, status: RunStatus) -> None:
    assert aws_kit.settings is not None
    owner = aws_kit.new_owner()
    run = a_run(a_key(owner), status=status)
    assert aws_kit.runs.claim(run, over=None)
    (item,) = aws_kit.raw_items(aws_kit.settings.runs_table, job_key=f"{owner}#{run.key.job_id}")
    if status in DEAD_LETTER:
        assert item["dead_owner"] == {"S": owner}
        assert item["dead_key"]["S"].startswith(run.key.sort_key)
    else:
        assert not {"dead_owner", "dead_key"} & set(item)


def test_expiry_is_a_number_of_seconds(aws_kit: Kit) -> None:
    settings, owner, segment = aws_kit.settings, aws_kit.new_owner(), aws_kit.new_segment()
    assert settings is not None
    assert aws_kit.runs.claim(a_run(a_key(owner)), over=None)
    assert aws_kit.jobs.create(a_job(owner).deleted(NOW, NOW))
    standing = an_entry(owner, segment)
    dated = an_entry(owner, segment, slot=Slot(SlotKind.DATED, 29_700_000))
    ended = an_entry(owner, segment, slot=Slot(SlotKind.DAILY, 420), schedule=a_bounded_schedule())
    aws_kit.wheel.put_entries([standing, dated, ended])
    (run,) = aws_kit.raw_items(settings.runs_table, job_key=f"{owner}#{standing.job_id}")
    (job,) = aws_kit.raw_items(settings.jobs_table, owner=owner)
    (first,) = aws_kit.raw_items(settings.wheel_table, segment_slot=f"{segment}#h17")
    (second,) = aws_kit.raw_items(settings.wheel_table, segment_slot=f"{segment}#m29700000")
    (third,) = aws_kit.raw_items(settings.wheel_table, segment_slot=f"{segment}#d420")
    started = int(NOW.timestamp())
    assert run["expires_at"] == {"N": str(started + 30 * 86400)}
    assert job["expires_at"] == {"N": str(started + 1)}
    assert "expires_at" not in first
    assert second["expires_at"] == {"N": str(29_700_000 * 60 + 14 * 86400)}
    assert ended.expires_at is not None
    assert third["expires_at"] == {"N": str(int(ended.expires_at.timestamp()))}


def test_control_items_have_the_agreed_key(aws_kit: Kit) -> None:
    assert aws_kit.settings is not None
    segment = aws_kit.new_segment()
    assert aws_kit.wheel.put_control(a_control(segment), over=None)
    (item,) = aws_kit.raw_items(aws_kit.settings.wheel_table, segment_slot=f"{segment}#control")
    assert item["entry_key"] == {"S": "control"}
