"""Items of DynamoDB: whatever a row has, comes back from its item."""

import dataclasses
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carillon.domain.admission.state import AdmissionRow, Line, PermitHolder, QueuedRun, Starts
from carillon.domain.calendar import Calendar, CalendarUse
from carillon.domain.changes.change import Action, Change, Difference, Subject
from carillon.domain.chunks.placing import Place
from carillon.domain.job import (
    Generation,
    HandOver,
    Job,
    JobState,
    Lane,
    PastGeneration,
    Slow,
    Successor,
)
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.policies import (
    CatchUp,
)
from carillon.domain.run import (
    RESULT_LIMIT_BYTES,
    AttemptRecord,
    Completion,
    Resolution,
    Run,
    RunError,
    RunKey,
    RunKind,
    RunStatus,
)
from carillon.domain.spec.after import Outcome
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import SYSTEM, Author, AuthorKind, Via
from carillon.domain.spec.schedule_spec import STORED
from carillon.domain.wheel.entry import LAST_MINUTE, Entry, Slot, slots_of_minute
from carillon.domain.wheel.pace import BUCKETS, Shares
from carillon.domain.wheel.segment import Backlog, Control, Cursor
from carillon.schedules import (
    NEVER,
    CalendarRule,
    DstRule,
    Fold,
    Gap,
    Schedule,
    SlotKind,
    parse_schedule,
)
from carillon.schedules.placement.window import LONGEST_WINDOW_SECONDS
from carillon.stores.dynamo import jobs, runs, side_rows, wheel
from carillon.stores.dynamo.attributes import RawItem
from carillon.stores.ports import ADMISSION_ROWS, CALENDARS, OPERATIONS, RowKind
from tests.contract.samples import GENERATION_ID
from tests.settings import BODY, SETTINGS
from tests.support.jobs import job_with

Members = dict[str, st.SearchStrategy[Any]]

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
maybe_counts = st.none() | counts
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
places = st.none() | st.builds(Place, counts, st.sampled_from(Lane), counts)
replaced = st.builds(PastGeneration, names, instants, instants, places, maybe_instants)
errors = st.builds(RunError, st.text(), st.text(), st.booleans())
keys = st.builds(
    RunKey, names, job_ids, st.sampled_from(RunKind), fires, st.text(), st.integers(0, 99)
)
minutes = st.integers(0, LAST_MINUTE - 1)
cursors = st.none() | minutes.flatmap(
    lambda minute: st.builds(
        Cursor,
        st.just(minute),
        st.sampled_from([slot.key for slot in slots_of_minute(minute)]),
        names,
    )
)

backlogs = st.tuples(minutes, minutes, minutes, instants).map(
    lambda drawn: Backlog(drawn[0], min(drawn[1:3]), max(drawn[1:3]) + 1, drawn[3])
)


def _each(counts: list[int]) -> st.SearchStrategy[Shares]:
    placed = st.tuples(*(st.integers(0, count) for count in counts))
    return st.builds(Shares, minutes, instants, st.just(tuple(counts)), placed)


authors = st.builds(
    Author, st.sampled_from(AuthorKind), st.text(), st.text(), st.sampled_from(Via)
) | st.just(SYSTEM)
changes = st.builds(
    Change,
    owner=names,
    subject=st.sampled_from(Subject),
    key=job_ids,
    name=names,
    action=st.sampled_from(Action),
    revision=counts,
    at=instants,
    author=authors,
    changed=st.lists(st.builds(Difference, names, names, names), max_size=3).map(tuple),
    note=st.text(),
    source=st.text(),
    ref=st.text(),
)

shares = st.lists(counts, min_size=BUCKETS, max_size=BUCKETS).flatmap(_each)

specs = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from([given for given, _ in setting.good])
        for name, setting in SETTINGS.items()
    },
).map(lambda given: JobSpec.model_validate(BODY | given, context=STORED))
JOB: Members = {
    "owner": names,
    "job_id": job_ids,
    "spec": specs,
    "schedule": schedules,
    "segment": counts,
    "generation": st.builds(Generation, names, instants),
    "created_at": instants,
    "updated_at": instants,
    "state": st.sampled_from(JobState),
    "revision": counts,
    "previous": st.none() | replaced,
    "earlier": st.lists(replaced, max_size=3).map(tuple),
    "slow": st.none() | st.builds(Slow, instants, st.text()),
    "note": st.text(),
    "fingerprint": st.text(),
    "creation_key": st.text(),
    "successors": st.lists(
        st.builds(
            Successor,
            job_ids,
            st.sampled_from(Outcome),
            counts,
            st.sampled_from(Lane),
            counts,
            instants,
            instants,
        ),
        max_size=3,
    ).map(tuple),
    "renamed_to": st.sampled_from(["", 26 * "0"]),
    "renamed_from": st.sampled_from(["", 26 * "0"]),
    "renamed_at": maybe_instants,
    "handed_to": st.none() | st.builds(HandOver, names, job_ids, st.booleans()),
    "handed_from": st.none() | st.builds(HandOver, names, job_ids, st.booleans()),
    "managed_by": st.sampled_from(["", "manifest/billing", "stack/app/Scheduler"]),
    "applied": st.sampled_from(["", "5f2c"]),
    "author": authors,
    "former_keys": st.lists(st.text(min_size=1), max_size=8).map(tuple),
    "spread_seconds": counts,
    "paused_at": maybe_instants,
    "resume_at": maybe_instants,
    "expires_at": st.none() | seconds,
    "last_change": st.none() | changes,
}


def _a_run(**members: Any) -> Run:
    """No attempt has started before its run."""
    run = Run(**members)
    return run if run.started_at else dataclasses.replace(run, attempt_started_at=None)


def _a_job(schedule: Schedule, **members: Any) -> Job:
    """Its spec says its schedule, if it has one."""
    said = NEVER if members["spec"].after else schedule
    return job_with(Job(schedule=said, **members), schedule=said)


CALENDAR: Members = {
    "owner": names,
    "name": names,
    "revision": counts,
    "weekdays": st.frozensets(st.integers(0, 6)),
    "ranges": st.lists(st.tuples(days, days).map(sorted).map(tuple), max_size=5).map(tuple),
    "created_at": instants,
    "updated_at": instants,
    "description": st.text(),
    "last_change": st.none() | changes,
}
GATE: Members = {
    "owner": names,
    "name": names,
    "revision": counts,
    "expires_at": seconds,
    "active": st.text(),
    "waiting": st.text(),
    "waiting_generation": st.text(),
    "started": st.text(),
    "started_at": maybe_instants,
    "failed": st.lists(st.text(), max_size=3).map(tuple),
    "failed_generation": st.text(),
    "slow_at": st.lists(instants, max_size=3).map(tuple),
    "holders": st.lists(st.builds(PermitHolder, st.text(), instants), max_size=3).map(tuple),
    "turns": st.lists(st.builds(QueuedRun, st.text(), instants, instants), max_size=3).map(tuple),
    "lines": st.lists(
        st.builds(
            Line,
            counts,
            counts,
            st.text(),
            instants,
            st.lists(st.builds(Starts, counts, instants), max_size=3).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
}
OPERATION: Members = {
    "owner": names,
    "operation_id": names,
    "kind": st.sampled_from(OperationKind),
    "created_at": instants,
    "updated_at": instants,
    "expires_at": seconds,
    "per_minute": counts,
    "job_id": st.text(),
    "from_at": maybe_instants,
    "until_at": maybe_instants,
    "only_missed": st.booleans(),
    "reason": st.text(),
    "error": st.text(),
    "to": st.text(),
    "parent": st.text(),
    "tags": st.lists(st.tuples(names, st.text()), max_size=3).map(tuple),
    "force": st.booleans(),
    "author": authors,
    "in_hand": st.lists(job_ids, max_size=3).map(tuple),
    "left": st.lists(st.text(), max_size=3).map(tuple),
    "state": st.sampled_from(OperationState),
    "revision": counts,
    "step": counts,
    "cursor": st.text(),
    "done": counts,
    "passed_over": counts,
    "note": st.text(),
    "busy_until": maybe_instants,
    "tries": st.integers(0, 9),
}
RUN: Members = {
    "key": keys,
    "status": st.sampled_from(RunStatus),
    "attempt": counts,
    "token": counts,
    "claim_id": st.text(),
    "generation_id": st.text(),
    "updated_at": instants,
    "expires_at": seconds,
    "lease_until": maybe_instants,
    "started_at": maybe_instants,
    "attempt_started_at": maybe_instants,
    "finished_at": maybe_instants,
    "next_attempt_at": maybe_instants,
    "result": st.none() | st.text(),
    "result_bytes": st.none() | st.integers(0, 32 * 1024),
    "error": st.none() | errors,
    "reason": st.none() | st.text(),
    "covers_from": maybe_instants,
    "covers_count": maybe_counts,
    "effective_at": maybe_instants,
    "note": st.none() | st.text(max_size=RESULT_LIMIT_BYTES // 4),
    "settled": st.none() | st.sampled_from(Resolution),
    "attempts": st.lists(
        st.builds(AttemptRecord, counts, instants, instants, errors, st.text()), max_size=3
    ).map(tuple),
    "waits": counts,
    "other_generations": st.lists(job_ids, max_size=3).map(tuple),
    "completion": st.none()
    | st.builds(
        Completion,
        st.text(),
        instants,
        counts,
        st.booleans(),
        st.lists(st.text(), max_size=2).map(tuple),
    ),
}
ENTRY: Members = {
    "segment": counts,
    "slot": st.builds(Slot, st.sampled_from(SlotKind), st.integers(0, 10**8)),
    "owner": names,
    "job_id": job_ids,
    "generation_id": st.just(GENERATION_ID),
    "from_at": instants,
    "lane": st.sampled_from(Lane),
    "catch_up": st.sampled_from(CatchUp),
    "schedule": schedules,
    "message": st.none(),  # of its own: tests/contract/test_wheel.py
    "spread_seconds": st.integers(0, LONGEST_WINDOW_SECONDS),
    "calendar": calendar_uses,
    "zone_digest": st.text(),
    "grace_seconds": counts,
    "within_seconds": counts,
    "chunked_from": counts,
}
CONTROL: Members = {
    "segment": counts,
    "horizon": minutes,
    "watermark": minutes,
    "token": counts,
    "lease_owner": st.text(),
    "lease_until": maybe_instants,
    "backlog": st.lists(backlogs, max_size=3).map(tuple),
    "cursor": cursors,
    "tzdata": st.text(),
    "tzdata_from": minutes,
    "backlog_cursor": cursors,
    "throttled_until": maybe_instants,
    "shares": st.none() | shares,
    "idle": st.booleans(),
}


def _side_row(kind: RowKind[Any], row: Any, stored: Callable[[RawItem], RawItem]) -> Any:
    return side_rows.row_of(kind, stored(side_rows.item_of(kind, row)), kind.key_of(row))


ROWS: list[tuple[type, Members, Callable[[Any, Callable[[RawItem], RawItem]], Any]]] = [
    (Job, JOB, lambda job, stored: jobs.job_of(stored(jobs.item_of(job)))),
    (Calendar, CALENDAR, lambda row, stored: _side_row(CALENDARS, row, stored)),
    (AdmissionRow, GATE, lambda row, stored: _side_row(ADMISSION_ROWS, row, stored)),
    (Operation, OPERATION, lambda row, stored: _side_row(OPERATIONS, row, stored)),
    (Run, RUN, lambda run, stored: runs.run_of(stored(runs.item_of(run)))),
    (
        Entry,
        ENTRY,
        lambda one, stored: wheel.entry_of(one.segment, one.slot, stored(wheel.item_of(one))),
    ),
    (
        Control,
        CONTROL,
        lambda one, stored: wheel.control_of(one.segment, stored(wheel.control_item_of(one))),
    ),
]
every_row = pytest.mark.parametrize(
    ("row", "members", "restored"), ROWS, ids=[row.__name__ for row, _, _ in ROWS]
)


def _through_dynamodb(item: RawItem) -> RawItem:
    """The item as it comes back: JSON both ways; DynamoDB keeps only numbers in this spelling."""
    text = json.dumps(item)
    for number in re.findall(r'\{"N": "([^"]*)"\}', text):
        assert re.fullmatch(r"0|-?[1-9][0-9]{0,37}", number)
    restored: RawItem = json.loads(text)
    return restored


@every_row
def test_no_member_is_forgotten_here(row: Any, members: Members, restored: Any) -> None:
    assert set(members) == {field.name for field in dataclasses.fields(row)}


@every_row
# Other work on the machine must not fail it.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_row_survives_its_item(
    row: Any, members: Members, restored: Any, data: st.DataObject
) -> None:
    value = data.draw(st.builds({Job: _a_job, Run: _a_run}.get(row, row), **members))
    back = restored(value, _through_dynamodb)
    assert back == value
    if row in (Job, Calendar):  # what two of them are compared without
        assert back.last_change == value.last_change


@settings(deadline=None)  # other work on the machine must not fail it
@given(keys, keys)
def test_runs_of_a_job_are_in_the_order_of_their_fire_times(one: RunKey, other: RunKey) -> None:
    if one.fire_at != other.fire_at:
        assert (one.sort_key < other.sort_key) == (one.fire_at > other.fire_at)
