"""PynamoDB attributes, items that are made and read by them, and the size of one as DynamoDB
counts it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from pynamodb.attributes import Attribute, AttributeContainer
from pynamodb.constants import MAP, NULL, NUMBER
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.models import Model

Row = TypeVar("Row", bound=Model)

RawItem = dict[str, dict[str, Any]]
"""An item as DynamoDB writes it: {name: {type: value}}."""

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


def item_as(model: type[Model], **values: Any) -> RawItem:
    """The item of a row with these attributes, as `model(**values).serialize()` gives it,
    without making the row; those that are None are absent."""
    attributes = model.get_attributes()
    typed = ((attributes[name], value) for name, value in values.items() if value is not None)
    return {each.attr_name: {each.attr_type: each.serialize(value)} for each, value in typed}


def row_as(model: type[Row], item: RawItem) -> Row:
    """The values in an item by its model's names, as `model.from_raw_data(item)` has them; absent
    ones are None. It has the row's attributes only: to make the row itself takes five times as
    long."""
    return cast(Row, _values_in(model.get_attributes(), item))


def _values_in(attributes: Mapping[str, Attribute[Any]], item: RawItem) -> SimpleNamespace:
    values: dict[str, Any] = dict.fromkeys(attributes)
    for name, attribute in attributes.items():
        typed = item.get(attribute.attr_name)
        if typed is None or NULL in typed:
            continue
        value = attribute.get_value(typed)
        if isinstance(attribute, AttributeContainer):
            values[name] = _values_in(attribute.get_attributes(), value)
        else:
            values[name] = attribute.deserialize(value)
    return SimpleNamespace(**values)


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
