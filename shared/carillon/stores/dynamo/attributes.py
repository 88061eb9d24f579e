"""PynamoDB attributes, and the size of an item as DynamoDB counts it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pynamodb.attributes import Attribute
from pynamodb.constants import MAP, NUMBER
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

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


class TextMapAttribute(Attribute[dict[str, str]]):
    """Texts by name."""

    attr_type = MAP

    def serialize(self, value: dict[str, str]) -> dict[str, dict[str, str]]:
        return {name: {"S": text} for name, text in value.items()}

    def deserialize(self, value: dict[str, dict[str, str]]) -> dict[str, str]:
        return {name: typed["S"] for name, typed in value.items()}

    def has(self, name: str, text: str) -> Condition:
        """The condition that the map has this text under this name, whatever that is spelt with."""
        condition: Condition = _Member([self.attr_name, name]) == text
        return condition


class _Member(Path):
    """The path to a member of a map; brackets in its name are no index of a list."""

    def _serialize_value(
        self, value: list[str], placeholder_names: dict[str, str], values: dict[str, Any]
    ) -> str:
        return ".".join(
            placeholder_names.setdefault(name, f"#{len(placeholder_names)}") for name in value
        )


def item_size(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Bytes of an item in DynamoDB's own form, {name: {type: value}}."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(typed: Mapping[str, Any]) -> int:
    ((kind, value),) = typed.items()
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return _number_size(value)
        case "B":
            # As bytes, or over the wire as base64.
            return len(value) if isinstance(value, bytes) else len(value) * 3 // 4
        case "BOOL" | "NULL":
            return 1
        case "L":
            return 3 + sum(1 + _value_size(element) for element in value)
        case "M":
            return 3 + sum(
                1 + len(name.encode()) + _value_size(element) for name, element in value.items()
            )
    raise ValueError(f"no rule for type {kind}")


def _number_size(text: str) -> int:
    if "e" in text.lower():
        raise ValueError(f"no rule for a number with an exponent: {text}")
    digits = text.lstrip("-").replace(".", "").strip("0")
    return 1 + -(-len(digits) // 2) + text.startswith("-")
