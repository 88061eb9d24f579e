"""What DynamoDB counts: the bytes of an item.

The rule is the documented one (Developer Guide, "DynamoDB item sizes and formats"): names and text
in UTF-8; a number one byte, and one for every two significant digits, and one for a minus sign;
3 bytes for a list or map and one for each of its elements.
"""

from collections.abc import Mapping
from typing import Any


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
