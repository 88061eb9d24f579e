"""Calendars in DynamoDB, in the partitions of their owners' jobs."""

from datetime import date, timedelta

from carillon.domain.calendar import Calendar
from carillon.errors import UnreadableRowError
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.dynamo.models import CalendarRow
from carillon.stores.dynamo.table import RawItem, Table, readable
from carillon.stores.ports import Page

_PREFIX = "~calendar/"
_CALENDARS = (_PREFIX, "~calendar0")
"""From the prefix to the text that follows everything with the prefix."""
_WEEKDAYS = {str(number): number for number in range(7)}


class DynamoCalendarStore:
    """CalendarStore on table jobs."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, owner: str, name: str) -> Calendar | None:
        item = self._table.get(owner, _key(name))
        return None if item is None else calendar_of(item)

    def put(self, calendar: Calendar, over_revision: int | None) -> bool:
        if over_revision is None:
            return self._table.put(item_of(calendar), CalendarRow.calendar_key.does_not_exist())
        return self._table.put(item_of(calendar), CalendarRow.revision == over_revision)

    def delete(self, owner: str, name: str, revision: int) -> bool:
        gone_or_seen = CalendarRow.calendar_key.does_not_exist() | (
            CalendarRow.revision == revision
        )
        return self._table.delete(owner, _key(name), gone_or_seen)

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Calendar]:
        scope = ("calendars", owner)
        after = None if cursor is None else _key(decode_cursor(scope, cursor))
        items, last = self._table.page(owner, after, limit, span=_CALENDARS)
        calendars, unreadable = readable(items, calendar_of, _name_of)
        next_cursor = None if last is None else encode_cursor(scope, last.removeprefix(_PREFIX))
        return Page(calendars, next_cursor, unreadable)


def _name_of(item: RawItem) -> str:
    key: str = item["job_id"]["S"]
    return key.removeprefix(_PREFIX)


def item_of(calendar: Calendar) -> RawItem:
    """The item of a calendar: its ranges in text, 9 to 13 bytes each."""
    return CalendarRow(
        owner=calendar.owner,
        calendar_key=_key(calendar.name),
        revision=calendar.revision,
        weekdays="".join(str(weekday) for weekday in sorted(calendar.weekdays)) or None,
        ranges=" ".join(_range_text(*ends) for ends in calendar.ranges) or None,
        description=calendar.description or None,
        created_at=calendar.created_at,
        updated_at=calendar.updated_at,
    ).serialize()


def calendar_of(item: RawItem) -> Calendar:
    """The calendar of an item that `item_of` made; raises UnreadableRowError for any other."""
    try:
        row = CalendarRow.from_raw_data(item)
        return Calendar(
            owner=row.owner,
            name=row.calendar_key.removeprefix(_PREFIX),
            revision=row.revision,
            weekdays=frozenset(_WEEKDAYS[digit] for digit in row.weekdays or ""),
            ranges=tuple(_range_of(text) for text in (row.ranges or "").split()),
            created_at=row.created_at,
            updated_at=row.updated_at,
            description=row.description or "",
        )
    except Exception as error:
        raise UnreadableRowError(f"calendar {item.get('job_id')}: {error}") from error


def _key(name: str) -> str:
    return _PREFIX + name


def _range_text(first: date, last: date) -> str:
    days = (last - first).days
    text = first.isoformat().replace("-", "")
    return f"{text}+{days}" if days else text


def _range_of(text: str) -> tuple[date, date]:
    first_text, _, days = text.partition("+")
    first = date.fromisoformat(first_text)
    return first, first + timedelta(days=int(days or "0"))
