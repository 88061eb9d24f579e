"""Deviations: bounded reading of the feed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.activity.results import Result
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.services import activity, deviations
from carillon.services.activity import Activity
from carillon.services.deviations import Deviations
from carillon.services.history import History
from carillon.stores.activity import Record
from carillon.stores.memory import MemoryActivityStore, MemoryRunStore

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
KEY = RunKey("user/a", "0" * 26, RunKind.SCHEDULED, NOON)
DEAD = Result(KEY, RunStatus.DEAD, 1, NOON, "import", (), 0.0, 1.0, error_kind="http_503")


def test_a_span_that_is_too_long_to_read_is_told_as_far_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryActivityStore()
    ends = NOON + timedelta(days=20)
    for days in (0, 9):
        fire_at = NOON + timedelta(days=days)
        result = replace(DEAD, key=replace(KEY, fire_at=fire_at), at=fire_at)
        store.put(Record("user/a", fire_at, f"b{days}", (result,), ends))
    reader = Deviations(Activity(store), History(MemoryRunStore()))

    def told() -> tuple[int, bool]:
        until = NOON + timedelta(days=9, minutes=1)
        gone = reader.between("user/a", NOON, until, lambda name, tags: True, lambda: True)
        return len(gone.events), gone.is_complete

    assert told() == (2, True)
    monkeypatch.setattr(deviations, "MOST_PAGES", 1)
    assert told() == (1, False)


def test_a_record_of_many_results_counts_as_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a summary of hundreds of failures in each would take more than its process has."""
    store = MemoryActivityStore()
    for number in range(3):
        at = NOON - timedelta(minutes=number)
        results = tuple(replace(DEAD, key=replace(KEY, redrive=each)) for each in range(40))
        store.put(Record("user/a", at, f"b{number}", results, NOON + timedelta(days=7)))
    monkeypatch.setattr(activity, "MOST_SUMMED", 8)
    found, is_whole = Activity(store).all("user/a", NOON - timedelta(hours=1), NOON)
    assert (len(found), is_whole) == (80, False)
