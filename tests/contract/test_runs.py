"""RunStore."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.run import (
    RESULT_LIMIT_BYTES,
    AttemptRecord,
    Resolution,
    Run,
    RunError,
    RunKey,
    RunKind,
    RunStatus,
    cut,
)
from carillon.errors import InvalidFieldError
from tests.contract.kit import Kit, contend
from tests.contract.samples import FIRE_AT, NOW, a_key, a_run, job_id


def _finished(run: Run, **changes: object) -> Run:
    fields: dict[str, object] = {
        "status": RunStatus.SUCCEEDED,
        "finished_at": NOW + timedelta(seconds=2),
        "lease_until": None,
        "result": '{"rows":12}',
    }
    return dataclasses.replace(run, **{**fields, **changes})  # type: ignore[arg-type]


def _claimed(kit: Kit, owner: str, **changes: object) -> Run:
    run = a_run(a_key(owner), **changes)
    assert kit.runs.claim(run, over=None)
    return run


def test_an_unknown_run_is_none(kit: Kit) -> None:
    assert kit.runs.get(a_key(kit.new_owner())) is None


def test_a_run_comes_back_whole(kit: Kit) -> None:
    error = RunError("http_503", "Service Unavailable — später", permanent=True)
    run = a_run(
        a_key(kit.new_owner(), kind=RunKind.MANUAL, request_id="by#hand", redrive=2),
        status=RunStatus.RETRYING,
        attempt=3,
        token=5,
        finished_at=NOW + timedelta(microseconds=1),
        next_attempt_at=NOW + timedelta(seconds=8),
        result="",
        error=error,
        reason="",
        covers_from=FIRE_AT - timedelta(hours=1),
        covers_count=0,
        effective_at=FIRE_AT + timedelta(seconds=299),
        note="moved from 2026-12-25 by calendar Feiertage ü",
        settled=Resolution.DISCARDED,
        attempts=(
            AttemptRecord(1, NOW, NOW + timedelta(seconds=1), RunError("timeout", "")),
            AttemptRecord(2, NOW, NOW, error),
        ),
    )
    assert kit.runs.claim(run, over=None)
    assert kit.runs.get(run.key) == run


def test_a_note_is_cut(kit: Kit) -> None:
    run = a_run(a_key(kit.new_owner()), note="ü" * RESULT_LIMIT_BYTES)
    assert kit.runs.claim(run, over=None)
    assert kit.runs.claim(run, over=None), "its own"
    stored = kit.runs.get(run.key)
    assert stored is not None
    assert stored.note == cut("ü" * RESULT_LIMIT_BYTES)
    assert stored.note != run.note


def test_the_parts_of_a_key_tell_runs_apart(kit: Kit) -> None:
    owner = kit.new_owner()
    keys = [
        a_key(owner),
        a_key(owner, redrive=1),
        a_key(owner, FIRE_AT + timedelta(seconds=1)),
        a_key(owner, kind=RunKind.MISSED),
        a_key(owner, kind=RunKind.MANUAL, request_id="a"),
        a_key(owner, kind=RunKind.MANUAL, request_id="b"),
        a_key(owner, job_id=job_id(1)),
        a_key(kit.new_owner()),
    ]
    for token, key in enumerate(keys):
        assert kit.runs.claim(a_run(key, token=token), over=None)
    stored = [kit.runs.get(key) for key in keys]
    assert [(run.key, run.token) for run in stored if run] == list(zip(keys, range(8), strict=True))


def test_a_write_over_a_claim_that_was_released_since_is_refused(kit: Kit) -> None:
    """Its token and status are still there, but the attempt that it was for never began."""
    claim = _claimed(kit, kit.new_owner(), attempt=2, token=7)
    released = dataclasses.replace(claim, attempt=1)
    assert kit.runs.finish(released)
    cancelled = dataclasses.replace(claim, status=RunStatus.CANCELLED, token=8, claim_id="stop")
    assert not kit.runs.claim(cancelled, over=claim)
    assert kit.runs.get(claim.key) == released


def test_a_claim_over_none_needs_no_row(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    assert not kit.runs.claim(dataclasses.replace(run, claim_id="another"), over=None)
    assert kit.runs.get(run.key) == run


def test_a_repeated_claim_knows_its_own_row(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    assert kit.runs.claim(run, over=None)
    following = dataclasses.replace(run, token=2, claim_id="second", attempt=2)
    assert kit.runs.claim(following, over=run)
    assert kit.runs.claim(following, over=run)
    assert not kit.runs.claim(run, over=None)


@pytest.mark.parametrize(
    "difference",
    [{"token": 2}, {"claim_id": "other"}, {"status": RunStatus.RETRYING}, {"attempt": 7}],
)
def test_a_claim_over_a_run_needs_its_token_claim_status_and_attempt(
    kit: Kit, difference: dict[str, object]
) -> None:
    run = _claimed(kit, kit.new_owner())
    unlike = dataclasses.replace(run, **difference)  # type: ignore[arg-type]
    takeover = dataclasses.replace(run, token=9, claim_id="takeover", attempt=2)
    assert not kit.runs.claim(takeover, over=unlike)
    assert kit.runs.get(run.key) == run
    assert kit.runs.claim(takeover, over=run)
    assert kit.runs.get(run.key) == takeover


def test_a_claim_over_a_run_does_not_compare_the_rest(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    seen = dataclasses.replace(run, waits=7, lease_until=None, result="different")
    assert kit.runs.claim(dataclasses.replace(run, token=2), over=seen)


def test_a_claim_over_a_run_that_is_gone_is_lost(kit: Kit) -> None:
    run = a_run(a_key(kit.new_owner()))
    assert not kit.runs.claim(dataclasses.replace(run, token=2), over=run)
    assert kit.runs.get(run.key) is None


def test_a_run_to_come_is_recorded_and_then_claimed(kit: Kit) -> None:
    to_come = a_run(
        a_key(kit.new_owner()),
        status=RunStatus.SCHEDULED,
        token=0,
        claim_id="",
        lease_until=None,
        started_at=None,
        attempt_started_at=None,
    )
    run = a_run(to_come.key)
    assert kit.runs.claim(to_come, over=None)
    assert kit.runs.get(to_come.key) == to_come
    assert not kit.runs.claim(run, over=None)
    assert kit.runs.claim(run, over=to_come)


def test_finish_is_fenced_by_token_and_claim(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    assert not kit.runs.finish(_finished(run, token=2))
    assert not kit.runs.finish(_finished(run, claim_id="other"))
    assert kit.runs.get(run.key) == run
    assert kit.runs.finish(_finished(run))
    assert kit.runs.get(run.key) == _finished(run)


def test_a_repeated_finish_knows_its_own_row(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    assert kit.runs.finish(_finished(run))
    assert kit.runs.finish(_finished(run))
    assert not kit.runs.finish(_finished(run, result="another"))


def test_finish_after_a_takeover_is_refused(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    takeover = dataclasses.replace(run, token=2, claim_id="takeover", attempt=2)
    assert kit.runs.claim(takeover, over=run)
    assert not kit.runs.finish(_finished(run))
    assert kit.runs.get(run.key) == takeover


def test_finish_after_a_stop_is_refused(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    stop = run.cancelled("on request", "stop", NOW, NOW)
    assert kit.runs.claim(stop, over=run)
    assert kit.runs.claim(stop, over=run), "it knows its own row"
    assert not kit.runs.claim(run.cancelled("on request", "another", NOW, NOW), over=run)
    assert not kit.runs.finish(_finished(run))
    assert not kit.runs.finish(_finished(stop))
    assert kit.runs.get(run.key) == stop


def test_finish_needs_a_running_row(kit: Kit) -> None:
    run = a_run(a_key(kit.new_owner()))
    assert not kit.runs.finish(_finished(run))
    assert kit.runs.claim(dataclasses.replace(run, status=RunStatus.RETRYING), over=None)
    assert not kit.runs.finish(_finished(run))


def test_withdraw_removes_only_the_own_claim(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    assert not kit.runs.discard_claim(dataclasses.replace(run, token=2))
    assert not kit.runs.discard_claim(dataclasses.replace(run, claim_id="other"))
    assert kit.runs.get(run.key) == run
    assert kit.runs.discard_claim(run)
    assert kit.runs.get(run.key) is None
    assert not kit.runs.discard_claim(run)
    assert not kit.runs.finish(_finished(run))


def test_withdraw_leaves_what_does_not_run(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    assert kit.runs.finish(_finished(run))
    assert not kit.runs.discard_claim(run)
    assert kit.runs.get(run.key) == _finished(run)


def test_a_withdrawn_run_can_be_claimed_afresh(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner())
    assert kit.runs.discard_claim(run)
    assert kit.runs.claim(dataclasses.replace(run, claim_id="second"), over=None)


def test_an_expiry_is_kept_to_the_second_and_never_early(kit: Kit) -> None:
    run = _claimed(kit, kit.new_owner(), expires_at=NOW)
    assert kit.runs.claim(run, over=None)
    assert kit.runs.finish(_finished(run))
    assert kit.runs.finish(_finished(run)), "its own"
    stored = kit.runs.get(run.key)
    assert stored is not None
    assert stored.expires_at == NOW.replace(microsecond=0) + timedelta(seconds=1)


def test_list_pages_newest_first(kit: Kit) -> None:
    owner = kit.new_owner()
    hours = [5, 0, 3, 6, 1, 4, 2]
    for hour in hours:
        assert kit.runs.claim(a_run(a_key(owner, FIRE_AT + timedelta(hours=hour))), over=None)
    assert kit.runs.claim(a_run(a_key(owner, job_id=job_id(1))), over=None)
    pages = [kit.runs.list(owner, job_id(), 3)]
    while (cursor := pages[-1].next_cursor) is not None:
        pages.append(kit.runs.list(owner, job_id(), 3, cursor))
    assert [len(page.items) for page in pages] == [3, 3, 1]
    fired = [run.key.fire_at for page in pages for run in page.items]
    assert fired == [FIRE_AT + timedelta(hours=hour) for hour in range(6, -1, -1)]


def test_a_page_that_is_just_full_is_the_last(kit: Kit) -> None:
    owner = kit.new_owner()
    run = _claimed(kit, owner)
    page = kit.runs.list(owner, job_id(), 1)
    assert (page.items, page.next_cursor) == ((run,), None)
    assert kit.runs.list(owner, job_id(1), 1).items == ()


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("from_at", "until_at", "hours"),
    [
        (FIRE_AT + HOUR, None, [4, 3, 2, 1]),
        (None, FIRE_AT + HOUR, [1, 0]),
        (FIRE_AT + HOUR, FIRE_AT + 3 * HOUR, [3, 2, 1]),
        (FIRE_AT + 2 * HOUR, FIRE_AT + 2 * HOUR, [2]),
        (FIRE_AT + timedelta(seconds=1), FIRE_AT + HOUR - timedelta(seconds=1), []),
        (FIRE_AT + 3 * HOUR, FIRE_AT + HOUR, []),
        (datetime(1900, 1, 1, tzinfo=UTC), datetime(1950, 1, 1, tzinfo=UTC), []),
        (datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC), [4, 3, 2, 1, 0]),
        (datetime(9000, 1, 1, tzinfo=UTC), None, []),
    ],
    ids=["from", "until", "both", "one second", "between", "turned", "before", "ever", "after"],
)
def test_a_span_bounds_fire_times(
    kit: Kit, from_at: datetime | None, until_at: datetime | None, hours: list[int]
) -> None:
    owner = kit.new_owner()
    for hour in range(5):
        assert kit.runs.claim(a_run(a_key(owner, FIRE_AT + hour * HOUR)), over=None)
    page = kit.runs.list(owner, job_id(), 9, from_at=from_at, until_at=until_at)
    assert [(run.key.fire_at - FIRE_AT) // HOUR for run in page.items] == hours
    assert page.next_cursor is None


def test_a_span_has_runs_of_every_kind_and_goes_on_page_by_page(kit: Kit) -> None:
    owner, late = kit.new_owner(), FIRE_AT + HOUR
    keys = [
        a_key(owner),
        a_key(owner, redrive=1),
        a_key(owner, kind=RunKind.WATCH),
        a_key(owner, kind=RunKind.BACKFILL, request_id="operation"),
        a_key(owner).callback,
        a_key(owner, late),
        a_key(owner, FIRE_AT - HOUR),
    ]
    for key in keys:
        assert kit.runs.claim(a_run(key), over=None)
    found, cursor = list[RunKey](), None
    while True:
        page = kit.runs.list(owner, job_id(), 2, cursor, from_at=FIRE_AT, until_at=FIRE_AT)
        found += [run.key for run in page.items]
        if (cursor := page.next_cursor) is None:
            break
    assert found == sorted(keys[:5], key=lambda key: key.sort_key)


def test_cursors_are_of_one_owner_and_job(kit: Kit) -> None:
    owner = kit.new_owner()
    for hour in range(2):
        assert kit.runs.claim(a_run(a_key(owner, FIRE_AT + timedelta(hours=hour))), over=None)
    cursor = kit.runs.list(owner, job_id(), 1).next_cursor
    assert cursor is not None
    for other_owner, other_job in ((kit.new_owner(), job_id()), (owner, job_id(1))):
        with pytest.raises(InvalidFieldError) as refused:
            kit.runs.list(other_owner, other_job, 1, cursor)
        assert refused.value.field == "cursor"
    with pytest.raises(InvalidFieldError):
        kit.jobs.list(owner, 1, cursor)


@pytest.mark.parametrize("is_stopped", [False, True], ids=["takeover", "stop"])
def test_a_finish_and_a_takeover_or_stop_cannot_both_win(
    threaded_kit: Kit, is_stopped: bool
) -> None:
    run = _claimed(threaded_kit, threaded_kit.new_owner())

    def attempt(number: int) -> bool:
        if number % 2:
            return threaded_kit.runs.finish(_finished(run, result=str(number)))
        claim_id = f"other {number}"
        if is_stopped:
            return threaded_kit.runs.claim(run.cancelled("stop", claim_id, NOW, NOW), over=run)
        takeover = dataclasses.replace(run, token=2, attempt=2, claim_id=claim_id)
        return threaded_kit.runs.claim(takeover, over=run)

    assert contend(attempt).count(True) == 1
