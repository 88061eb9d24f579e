"""Deviations: bounded reading of the feed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.activity.results import Result
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.services import deviations
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
        gone = reader.between("user/a", NOON, until, lambda name, tags: True)
        return len(gone.events), gone.is_complete

    assert told() == (2, True)
    monkeypatch.setattr(deviations, "MOST_PAGES", 1)
    assert told() == (1, False)
