import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.errors import InvalidFieldError
from carillon.schedules import format_duration, parse_duration
from tests.unit.schedules.strategies import exact


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("25m", 1500),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1w1d", 691_200),
        ("0s", 0),
        (" 5m ", 300),
        ("PT25M", 1500),
        ("P1DT2H3M4S", 93_784),
        ("P2W", 1_209_600),
        ("pt90s", 90),
    ],
)
def test_duration_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "5", "m", "-5m", "1.5h", "5M", "5m1h", "1h1h", "1h 30m", "5m\n5m", "٣m"],
        *["P", "PT", "P1DT", "P1M", "P1Y", "99999999999s"],
    ],
)
def test_anything_else_is_refused_with_the_fields_name(text: str) -> None:
    with pytest.raises(InvalidFieldError, match=r'"90s"') as caught:
        parse_duration(text, "retry.base")
    assert caught.value.field == "retry.base"


@pytest.mark.parametrize("text", ["9999999999d", "5218w", "PT9999999999S"])
def test_longer_than_a_century_is_refused(text: str) -> None:
    """`carillon report --last 9999999999w` was a traceback."""
    with pytest.raises(InvalidFieldError, match="longer than 100 years"):
        parse_duration(text, "last")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (90, "1m30s"),
        (1500, "25m"),
        (6000, "1h40m"),
        (129_600, "1d12h"),
        (7 * 86_400, "7d"),
    ],
)
def test_canonical_text(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


@exact
@given(st.integers(0, 10**9))
def test_canonical_text_is_read_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
