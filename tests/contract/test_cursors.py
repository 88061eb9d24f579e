"""Cursors: text from outside, which may be anything."""

import base64
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from carillon.errors import InvalidFieldError
from carillon.stores.cursors import decode_cursor, encode_cursor

SCOPE = ("runs", "owner", "job")
GENUINE = encode_cursor(SCOPE, "key")


def _spelt(value: object) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@settings(deadline=None)  # other work on the machine must not fail it
@given(st.lists(st.text(max_size=9), min_size=1, max_size=3).map(tuple), st.text(min_size=1))
def test_a_cursor_gives_its_key_back(scope: tuple[str, ...], key: str) -> None:
    assert decode_cursor(scope, encode_cursor(scope, key)) == key


@settings(deadline=None)  # other work on the machine must not fail it
@given(st.text())
@example("")
@example("[]")
@example("ü")
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        decode_cursor(SCOPE, text)
    assert refused.value.field == "cursor"


@pytest.mark.parametrize(
    "cursor",
    [
        GENUINE + "=",
        GENUINE + "\n",
        " " + GENUINE,
        GENUINE[:-1],
        encode_cursor(("jobs", "owner", "job"), "key"),
        encode_cursor(("runs", "owner"), "key"),
        encode_cursor(("runs", "owner", "job", "more"), "key"),
        encode_cursor(SCOPE, ""),
        encode_cursor(SCOPE, "x" * 2000),
        encode_cursor(SCOPE, "\ud800"),
        _spelt([*SCOPE, None]),
        _spelt([*SCOPE, 5]),
        _spelt([*SCOPE, ["key"]]),
        _spelt({"runs": "owner"}),
        _spelt("key"),
        _spelt(None),
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    ],
)
def test_near_misses_are_refused(cursor: str) -> None:
    with pytest.raises(InvalidFieldError):
        decode_cursor(SCOPE, cursor)
