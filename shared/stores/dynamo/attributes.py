"""Attribute types that PynamoDB lacks, exact to the microsecond and typed."""

from datetime import UTC, datetime, timedelta

from pynamodb.attributes import Attribute
from pynamodb.constants import NUMBER

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds_of(instant: datetime) -> int:
    """Microseconds since the epoch, without going through floats."""
    return (instant - _EPOCH) // _MICROSECOND


def instant_of(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


class InstantAttribute(Attribute[datetime]):
    """An aware datetime as microseconds since the epoch: 9 bytes, 6 when in whole seconds.

    DynamoDB stores two digits in a byte and no trailing zeros.
    """

    attr_type = NUMBER

    def serialize(self, value: datetime) -> str:
        return str(microseconds_of(value))

    def deserialize(self, value: str) -> datetime:
        return instant_of(int(value))


class IntegerAttribute(Attribute[int]):
    """A whole number."""

    attr_type = NUMBER

    def serialize(self, value: int) -> str:
        return str(int(value))

    def deserialize(self, value: str) -> int:
        return int(value)
