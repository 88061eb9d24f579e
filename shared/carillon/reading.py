"""Members of a class that are read from values or texts, each by a function that checks it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from carillon.errors import ConfigurationError

Read = Callable[[Any], Any]
"""Makes a member's value of a value or of a text for it; ValueError has the fault."""


def option(default: Any, read: Read, words: str = "") -> Any:
    """A member with a default, in a class whose `__post_init__` calls `read_members`; `words` say
    when something else is chosen."""
    return field(default_factory=lambda: default, metadata={"read": read, "words": words})


def read_members(parsed: Any) -> None:
    """Put what each member's `read` makes of its value in the value's place.

    Raises ConfigurationError naming the member.
    """
    for each in fields(parsed):
        value = read_at(each.name, each.metadata["read"], getattr(parsed, each.name))
        object.__setattr__(parsed, each.name, value)


def read_at(name: str, read: Read, value: object) -> Any:
    """The value as `read` converts it; raises ConfigurationError with the path from `name` on."""
    try:
        return read(value)
    except ValueError as error:
        raise ConfigurationError(name, str(error)) from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}.{error.name}", error.message) from error


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """Reads a whole number within bounds: as such, or as a text."""

    least: int
    most: int

    def __call__(self, value: object) -> int:
        number = _number(value)
        if number is None or not self.least <= number <= self.most:
            bounds = f"from {self.least} to {self.most}"
            raise ValueError(f"expected a whole number {bounds}, got {value!r}")
        return number


def _number(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    # A boolean is an int, but no number.
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def switch(value: object) -> bool:
    """Reads `on` or `off`; as true and false, which JSON and the CDK's context have, too."""
    if (given := str(value).lower()) not in ("on", "off", "true", "false"):
        raise ValueError(f"expected on or off, got {value!r}")
    return given in ("on", "true")


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {value!r}")
    return value.strip()


def email_address(value: object) -> str:
    if not re.fullmatch(r"[^@\s,<>]+@[^@\s,<>]+\.[^@\s,.<>]+", text(value)):
        raise ValueError(f"{value!r} is no e-mail address, such as on-call@example.com")
    return text(value)


def required(value: object) -> str:
    if not text(value):
        raise ValueError("must be set")
    return text(value)


def listed(check: Read = text, *, least: int = 0) -> Read:
    """Reads a list, as such or as a text with commas; each part is passed through `check`."""

    def read(value: object) -> tuple[Any, ...]:
        given = value if isinstance(value, tuple | list) else text(value).split(",")
        parts = [part.strip() if isinstance(part, str) else part for part in given]
        found = tuple(check(part) for part in parts if part)
        if len(found) < least:
            raise ValueError(f"expected at least {least}")
        return found

    return read
