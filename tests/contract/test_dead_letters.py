"""RunStore.dead_letters."""

import dataclasses
from datetime import timedelta

import pytest

from carillon.domain.run import DEAD_LETTER, Resolution, Run, RunError, RunStatus
from carillon.errors import InvalidFieldError
from carillon.stores.ports import DeadLetterFilter
from tests.contract.kit import Kit
from tests.contract.samples import FIRE_AT, a_key, a_run, job_id

HOUR = timedelta(hours=1)


def _died(kit: Kit, owner: str, hour: int = 0, number: int = 0, **changes: object) -> Run:
    key = a_key(owner, FIRE_AT + hour * HOUR, job_id=job_id(number))
    fields: dict[str, object] = {"status": RunStatus.DEAD, "lease_until": None}
    run = a_run(key, **{**fields, **changes})
    assert kit.runs.claim(run, over=None)
    return run


def _listed(kit: Kit, owner: str, only: DeadLetterFilter | None = None) -> list[Run]:
    page = kit.runs.dead_letters(owner, 50, only=only)
    assert page.next_cursor is None
    return list(page.items)


@pytest.mark.parametrize("status", list(RunStatus))
def test_dead_letters_are_runs_that_died(kit: Kit, status: RunStatus) -> None:
    owner = kit.new_owner()
    run = _died(kit, owner, status=status)
    assert _listed(kit, owner) == ([run] if status in DEAD_LETTER else [])


@pytest.mark.parametrize("settled", list(Resolution))
def test_a_settled_run_is_a_dead_letter_no_more(kit: Kit, settled: Resolution) -> None:
    owner = kit.new_owner()
    kept, run = _died(kit, owner), _died(kit, owner, 1, status=RunStatus.TIMED_OUT)
    after = dataclasses.replace(run, settled=settled, token=run.token + 1)
    assert kit.runs.claim(after, over=run)
    assert kit.runs.claim(after, over=run), "its own"
    assert _listed(kit, owner) == [kept]
    assert kit.runs.get(run.key) == after


def test_a_dead_letter_is_settled_once(kit: Kit) -> None:
    owner = kit.new_owner()
    run = _died(kit, owner)
    discarded = dataclasses.replace(run, settled=Resolution.DISCARDED, token=run.token + 1)
    redriven = dataclasses.replace(run, settled=Resolution.REDRIVEN, token=run.token + 1)
    assert kit.runs.claim(discarded, over=run)
    assert not kit.runs.claim(redriven, over=run)
    assert kit.runs.get(run.key) == discarded


def test_they_come_newest_first_over_all_jobs_page_by_page(kit: Kit) -> None:
    owner = kit.new_owner()
    runs = [_died(kit, owner, hour, number) for hour in (2, 0, 1) for number in range(3)]
    _died(kit, kit.new_owner(), 1)
    found, sizes, cursor = list[Run](), [], None
    while True:
        page = kit.runs.dead_letters(owner, 4, cursor)
        found += page.items
        sizes.append(len(page.items))
        if (cursor := page.next_cursor) is None:
            break
    assert sizes == [4, 4, 1]
    assert found == sorted(runs, key=lambda run: (run.key.sort_key, run.key.job_id))
    assert [(run.key.fire_at - FIRE_AT) // HOUR for run in found] == [2, 2, 2, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("only", "hours"),
    [
        (DeadLetterFilter(), [4, 3, 2, 1, 0]),
        (DeadLetterFilter(job_id=job_id(1)), [3, 1]),
        (DeadLetterFilter(job_id=job_id(7)), []),
        (DeadLetterFilter(reason="refused"), [4, 3]),
        (DeadLetterFilter(error="http_503"), [2, 1]),
        (DeadLetterFilter(from_at=FIRE_AT + HOUR), [4, 3, 2, 1]),
        (DeadLetterFilter(until_at=FIRE_AT + HOUR), [1, 0]),
        (DeadLetterFilter(from_at=FIRE_AT + HOUR, until_at=FIRE_AT + 3 * HOUR), [3, 2, 1]),
        (DeadLetterFilter(from_at=FIRE_AT + 3 * HOUR, until_at=FIRE_AT + HOUR), []),
        (DeadLetterFilter(from_at=FIRE_AT + 2 * HOUR, until_at=FIRE_AT + 2 * HOUR), [2]),
        (DeadLetterFilter(job_id(1), "exhausted", "http_503", FIRE_AT, FIRE_AT + 3 * HOUR), [1]),
    ],
)
def test_a_filter_leaves_out_all_others(kit: Kit, only: DeadLetterFilter, hours: list[int]) -> None:
    owner = kit.new_owner()
    errors = [None, RunError("http_503", ""), RunError("http_503", "Busy"), RunError("fail", "")]
    for hour in range(5):
        reason = "refused" if hour >= 3 else "exhausted"
        _died(kit, owner, hour, hour % 2, reason=reason, error=[*errors, None][hour])
    assert [(run.key.fire_at - FIRE_AT) // HOUR for run in _listed(kit, owner, only)] == hours


def test_filtered_pages_are_full_and_go_on(kit: Kit) -> None:
    owner = kit.new_owner()
    runs = [_died(kit, owner, hour, reason="refused" if hour % 3 else "other") for hour in range(9)]
    wanted = [run for run in reversed(runs) if run.reason == "refused"]
    only = DeadLetterFilter(reason="refused", until_at=FIRE_AT + 8 * HOUR)
    first = kit.runs.dead_letters(owner, 4, only=only)
    assert list(first.items) == wanted[:4]
    rest = kit.runs.dead_letters(owner, 4, first.next_cursor, only)
    assert (list(rest.items), rest.next_cursor) == (wanted[4:], None)


def test_cursors_are_of_one_owner_and_method(kit: Kit) -> None:
    owner = kit.new_owner()
    for hour in range(2):
        _died(kit, owner, hour)
    cursor = kit.runs.dead_letters(owner, 1).next_cursor
    assert cursor is not None
    with pytest.raises(InvalidFieldError) as refused:
        kit.runs.dead_letters(kit.new_owner(), 1, cursor)
    assert refused.value.field == "cursor"
    with pytest.raises(InvalidFieldError):
        kit.runs.list(owner, job_id(), 1, cursor)
    with pytest.raises(InvalidFieldError):
        kit.runs.dead_letters(owner, 1, kit.runs.list(owner, job_id(), 1).next_cursor)
