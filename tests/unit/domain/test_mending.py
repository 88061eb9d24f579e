"""The mend of a control item: never a lower horizon or token, never a higher watermark."""

from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest

from carillon.domain.wheel.entry import minute_of, slots_of_minute
from carillon.domain.wheel.pace import BUCKETS, Shares
from carillon.domain.wheel.segment import (
    LONGEST_LEASE,
    Backlog,
    Control,
    Cursor,
    Remains,
    mended,
    with_lease_checked,
)

NOW = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC)
MINUTE = minute_of(NOW)
FOURTEEN_DAYS = 14 * 24 * 60
EARLIER = Backlog(MINUTE - 400, MINUTE - 300, MINUTE - 200, NOW - timedelta(hours=2))
WHOLE = {
    "horizon": MINUTE + 2,
    "watermark": MINUTE - 3,
    "token": 7,
    "lease_owner": "tick-1",
    "lease_until": NOW + timedelta(seconds=45),
    "backlog": (EARLIER,),
    "cursor": Cursor(MINUTE - 2, slots_of_minute(MINUTE - 2)[1].key, "job#filing"),
    "backlog_cursor": Cursor(MINUTE - 299, slots_of_minute(MINUTE - 299)[0].key, "job#filing"),
    "throttled_until": NOW + timedelta(seconds=3),
    "shares": Shares(20, NOW, counts=(1,) * BUCKETS, placed=(0,) * BUCKETS),
    "idle": True,
    "tzdata": "2026.6",
    "tzdata_from": MINUTE - 99,
}


def remains(*lost: str, **members: object) -> Remains:
    kept = {name: value for name, value in (WHOLE | members).items() if name not in lost}
    return Remains(3, kept, dict.fromkeys(lost, "spoilt"), stored=None)


def test_what_can_be_read_is_kept() -> None:
    assert mended(remains(), NOW) == Control(3, **WHOLE)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_whatever_is_lost_nothing_due_is_passed_over(count: int) -> None:
    for lost in combinations(WHOLE, count):
        control = mended(remains(*lost), NOW)
        truth = Control(3, **WHOLE)  # type: ignore[arg-type]
        assert control.token >= truth.token
        assert control.horizon >= truth.horizon
        assert control.complete_until <= truth.complete_until
        owed = {m for b in truth.backlog for m in range(b.done + 1, b.until + 1)}
        standing = {m for b in control.backlog for m in range(b.done + 1, b.until + 1)}
        undone = owed | set(range(truth.watermark + 1, control.watermark + 1))
        assert undone <= standing, lost


def test_a_lost_token_is_above_all_that_were_given() -> None:
    assert mended(remains("token"), NOW).token == int(NOW.timestamp() * 1000)


def test_a_lost_horizon_is_ten_minutes_ahead() -> None:
    assert mended(remains("horizon"), NOW).horizon == MINUTE + 10


def test_a_lost_watermark_is_a_backlog_of_fourteen_days_announced_whole() -> None:
    control = mended(remains("watermark", backlog=()), NOW)
    (backlog,) = control.backlog
    assert (backlog.done, backlog.until) == (MINUTE - FOURTEEN_DAYS, MINUTE - 1)
    assert (backlog.announced, control.watermark) == (MINUTE - 1, MINUTE - 1)
    assert control.backlog_cursor is None


def test_a_lost_watermark_lies_behind_the_backlog_that_is_known() -> None:
    control = mended(remains("watermark"), NOW)
    assert control.backlog == (EARLIER, Backlog(MINUTE - 1, MINUTE - 200, MINUTE - 1, NOW))
    assert control.backlog_cursor == WHOLE["backlog_cursor"]


def test_a_lost_backlog_may_be_of_any_minute_up_to_the_watermark() -> None:
    (backlog,) = mended(remains("backlog"), NOW).backlog
    assert (backlog.done, backlog.until) == (MINUTE - FOURTEEN_DAYS, MINUTE - 3)
    assert backlog.announced == MINUTE - 3


@pytest.mark.parametrize("lost", ["lease_until", "lease_owner"])
def test_half_a_lease_is_none(lost: str) -> None:
    control = mended(remains(lost), NOW)
    assert (control.lease_owner, control.lease_until) == ("", None)


def test_only_a_lease_that_no_tick_has_taken_counts_as_unreadable() -> None:
    longest = remains(lease_until=NOW + LONGEST_LEASE)
    assert with_lease_checked(longest, NOW) == longest
    longer = with_lease_checked(
        remains(lease_until=NOW + LONGEST_LEASE + timedelta(seconds=1)), NOW
    )
    assert set(longer.unreadable) == {"lease_until"}
    assert mended(longer, NOW).lease_until is None


def test_lost_rules_of_time_zones_are_taken_for_a_day_old() -> None:
    control = mended(remains("tzdata"), NOW)
    assert (control.tzdata, control.tzdata_from) == ("", MINUTE - 1440)
