"""Cursors: opaque text that binds a position to the list it was taken from."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import TypeVar

from carillon.errors import InvalidFieldError
from carillon.stores.ports import Page

_T = TypeVar("_T")

_KEY_LIMIT_BYTES = 1000
"""A sort key of DynamoDB may have 1,024: the rest is for what a store puts around the key."""

REFUSED = "must be the next_cursor of the page before, unchanged"
"""Why a cursor is refused."""


def runs_of(owner: str, job_id: str) -> tuple[str, ...]:
    """The scope of a job's runs; their keys are the sort keys of runs."""
    return "runs", owner, job_id


def encode_cursor(scope: tuple[str, ...], key: str) -> str:
    """The cursor that continues behind `key` in the list named by `scope` (method, owner, …)."""
    text = json.dumps([*scope, key], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(scope: tuple[str, ...], cursor: str) -> str:
    """The key in a cursor of this `scope`; raises InvalidFieldError("cursor", …) for all else."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        *_, key = json.loads(text)
        # Spelling it anew compares the scope too, and refuses what lenient decoding lets pass
        # (foreign characters, spare bits).
        genuine = encode_cursor(scope, key) == cursor
        if genuine and 0 < len(key.encode()) <= _KEY_LIMIT_BYTES:
            return str(key)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise InvalidFieldError("cursor", REFUSED)


def pages(read: Callable[[str | None], Page[_T]], cursor: str | None = None) -> Iterator[Page[_T]]:
    """The pages of a list from `cursor` on; `read` answers the one behind a cursor, None for the
    first."""
    while True:
        page = read(cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
