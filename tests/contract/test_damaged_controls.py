"""Control items that cannot be read: told by member, and mended without losing what is due."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from carillon.domain.wheel.entry import minute_of, slots_of_minute
from carillon.domain.wheel.segment import Backlog, Control, Cursor, mended, with_lease_checked
from carillon.errors import UnreadableRowError
from tests.contract.kit import Kit

NOW = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC)
MINUTE = minute_of(NOW)
SLOT = slots_of_minute(MINUTE)[0].key
OTHER_SLOT = slots_of_minute(MINUTE + 1)[0].key
CENTURIES = 10**15
TAKEN_UP = {"N": "1795000000000000"}

Spoilt = dict[str, dict[str, Any] | None]
DAMAGES: dict[str, tuple[Spoilt, set[str]]] = {
    "text for the horizon": ({"horizon": {"S": "soon"}}, {"horizon"}),
    "no horizon": ({"horizon": None}, {"horizon"}),
    "a fraction for the watermark": ({"watermark": {"N": "1.5"}}, {"watermark"}),
    "no watermark": ({"watermark": None}, {"watermark"}),
    "a watermark beyond datetime": ({"watermark": {"N": str(CENTURIES)}}, {"watermark"}),
    "no token": ({"token": None}, {"token"}),
    "text for the token": ({"token": {"S": "7"}}, {"token"}),
    "a number for the lease's owner": ({"lease_owner": {"N": "7"}}, {"lease_owner"}),
    "a lease beyond datetime": ({"lease_until": {"N": "9" * 30}}, {"lease_until"}),
    "text for the lease": ({"lease_until": {"S": "later"}}, {"lease_until"}),
    "a backlog of empty maps": ({"backlog": {"L": [{"M": {}}]}}, {"backlog"}),
    "text for a backlog": ({"backlog": {"S": "much"}}, {"backlog"}),
    "a backlog that is over": (
        {"backlog": {"L": [{"M": {"announced": {"N": "9"}, "done": {"N": "9"},
         "until": {"N": "9"}, "taken_up_at": TAKEN_UP}}]}},
        {"backlog"},
    ),
    "a cursor whose slot is none of its minute's": (
        {"cursor": {"M": {"minute": {"N": str(MINUTE)}, "slot_key": {"S": OTHER_SLOT},
         "entry_key": {"S": "a"}}}},
        {"cursor"},
    ),
    "a backlog cursor of no slot": (
        {"backlog_cursor": {"M": {"minute": {"N": str(MINUTE)}, "slot_key": {"S": "q"},
         "entry_key": {"S": "a"}}}},
        {"backlog_cursor"},
    ),
    "a huge tzdata_from": ({"tzdata_from": {"N": str(CENTURIES)}}, {"tzdata_from"}),
    "a list for tzdata": ({"tzdata": {"L": []}}, {"tzdata"}),
    "text for the pace": ({"throttled_until": {"S": "now"}}, {"throttled_until"}),
    "shares of one bucket": (
        {
            "shares": {
                "M": {
                    "until": {"N": "20"},
                    "begins_at": {"N": "1"},
                    "counts": {"L": [{"N": "1"}]},
                    "placed": {"L": [{"N": "1"}]},
                }
            }
        },
        {"shares"},
    ),
    "text for idle": ({"idle": {"S": "yes"}}, {"idle"}),
    "nothing but its key": (
        dict.fromkeys(("horizon", "watermark", "token", "lease_owner", "lease_until", "backlog")),
        {"horizon", "watermark", "token"},
    ),
}  # fmt: skip


def a_held_control(segment: int) -> Control:
    return Control(
        segment,
        horizon=MINUTE + 2,
        watermark=MINUTE - 1,
        token=7,
        lease_owner="tick-1",
        lease_until=NOW + timedelta(seconds=45),
        backlog=(Backlog(MINUTE - 30, MINUTE - 30, MINUTE - 20, NOW),),
        cursor=Cursor(MINUTE, SLOT, "job#generation"),
    )


def spoil(kit: Kit, segment: int, spoilt: Spoilt) -> None:
    assert kit.settings is not None
    table = kit.settings.wheel_table
    (item,) = kit.raw_items(table, segment_slot=f"{segment}#control")
    item = {name: value for name, value in (item | spoilt).items() if value is not None}
    boto3.client("dynamodb").put_item(TableName=table, Item=item)


@pytest.mark.parametrize(("spoilt", "lost"), DAMAGES.values(), ids=DAMAGES)
def test_a_control_that_cannot_be_read_says_why_and_is_mended(
    aws_kit: Kit, spoilt: Spoilt, lost: set[str]
) -> None:
    segment = aws_kit.new_segment()
    control = a_held_control(segment)
    assert aws_kit.wheel.put_control(control, over=None)
    spoil(aws_kit, segment, spoilt)
    with pytest.raises(UnreadableRowError, match=f"carillon admin mend-segment {segment}"):
        aws_kit.wheel.get_control(segment)

    remains = aws_kit.wheel.examine_control(segment)
    assert remains is not None
    assert set(remains.unreadable) == lost
    control = mended(remains, NOW)
    assert aws_kit.wheel.mend_control(control, over=remains)
    assert aws_kit.wheel.mend_control(control, over=remains), "its own"
    assert aws_kit.wheel.get_control(segment) == control


def test_a_mend_loses_against_any_change_of_the_item(aws_kit: Kit) -> None:
    segment = aws_kit.new_segment()
    assert aws_kit.wheel.put_control(a_held_control(segment), over=None)
    spoil(aws_kit, segment, {"idle": {"S": "yes"}})
    remains = aws_kit.wheel.examine_control(segment)
    assert remains is not None
    held = replace(a_held_control(segment), watermark=MINUTE)
    assert aws_kit.wheel.put_control(held, over=held), "its holder goes on, and mends it so"
    assert not aws_kit.wheel.mend_control(mended(remains, NOW), over=remains)
    assert aws_kit.wheel.get_control(segment) == held


def test_a_segment_that_nobody_has_met_has_no_remains(kit: Kit) -> None:
    assert kit.wheel.examine_control(kit.new_segment()) is None


def test_a_control_that_can_be_read_has_whole_remains(kit: Kit) -> None:
    segment = kit.new_segment()
    control = a_held_control(segment)
    assert kit.wheel.put_control(control, over=None)
    remains = kit.wheel.examine_control(segment)
    assert remains is not None
    assert not remains.unreadable
    assert mended(remains, NOW) == control
    forever = replace(control, lease_until=datetime(9999, 1, 1, tzinfo=UTC))
    assert kit.wheel.put_control(forever, over=control)
    remains = kit.wheel.examine_control(segment)
    assert remains is not None
    free = mended(with_lease_checked(remains, NOW), NOW)
    assert free == replace(control, lease_until=None, lease_owner="")
    assert kit.wheel.mend_control(free, over=remains)
    assert kit.wheel.get_control(segment) == free
