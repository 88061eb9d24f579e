"""The shares of a minute: events, segments, and how many ticks its work is worth."""

from collections import Counter

import pytest

from carillon.tick.sharing import (
    NO_SHARE,
    Bound,
    Share,
    Shares,
    Weight,
    Worth,
    in_order,
    segments_of,
    share_in,
    shares,
)

WORTH = Worth()


@pytest.mark.parametrize(
    "event", [{}, {"worker": 3}, {"source": "aws.events"}, None, [], "share"], ids=str
)
def test_an_event_that_names_no_share_is_the_root_s(event: object) -> None:
    assert share_in(event) is None


def test_an_event_names_its_share_and_its_minute_does_not_count() -> None:
    event = {"share": 3, "of": 8, "minute": 17}
    assert share_in(event) == Share(3, 8)


@pytest.mark.parametrize(
    "event",
    [
        {"share": 8, "of": 8},
        {"share": -1, "of": 8},
        {"share": 0, "of": 0},
        {"share": 1},
        {"share": "1", "of": 8},
        {"share": 1, "of": 8.0},
        {"share": True, "of": 8},
        {"share": None, "of": None},
    ],
    ids=str,
)
def test_a_share_that_cannot_be_read_begins_with_nothing_and_is_no_root(event: object) -> None:
    assert share_in(event) == NO_SHARE
    assert segments_of((2, 3, 0, 1), NO_SHARE) == ((), (2, 3, 0, 1))


def test_the_first_segment_changes_from_minute_to_minute() -> None:
    assert [in_order(4, minute) for minute in (6, 7, 8)] == [
        (2, 3, 0, 1),
        (3, 0, 1, 2),
        (0, 1, 2, 3),
    ]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("segments", [1, 4, 7, 64])
def test_shares_begin_with_each_segment_once_and_look_at_all_others(of: int, segments: int) -> None:
    order = in_order(segments, 17)
    begun: Counter[int] = Counter()
    for number in range(of):
        own, others = segments_of(order, Share(number, of))
        begun.update(own)
        assert sorted((*own, *others)) == list(range(segments))
    assert begun == Counter(range(segments))


def test_a_share_looks_at_others_from_its_own_on() -> None:
    assert segments_of((0, 1, 2, 3, 4, 5), Share(1, 3)) == ((1, 4), (2, 3, 5, 0))


@pytest.mark.parametrize(
    ("weight", "left", "wanted"),
    [
        (Weight(0, 0.05), 63, Shares(1, Bound.MESSAGES)),
        (Weight(7, 1.0), 63, Shares(1, Bound.MESSAGES)),
        (Weight(8, 1.0), 63, Shares(2, Bound.MESSAGES)),
        (Weight(2_000, 0.02), 63, Shares(1, Bound.SECONDS)),
        (Weight(2_000, 0.5), 63, Shares(16, Bound.SECONDS)),
        (Weight(9_000, 1.0), 63, Shares(32, Bound.SECONDS)),
        (Weight(9_000, 4.0), 63, Shares(63, Bound.SEGMENTS)),
        (Weight(9_000, 40.0), 200, Shares(64, Bound.WORKERS)),
        (Weight(0, 0.0, has_backlog=True), 3, Shares(3, Bound.SEGMENTS)),
        (Weight(9_000, 40.0), 0, Shares(1, Bound.SEGMENTS)),
    ],
    ids=[
        "nothing is due",
        "an ordinary minute whose calls are slow",
        "a little more than an ordinary minute",
        "much, but quickly done",
        "seconds of work",
        "a herd",
        "no more segments are left",
        "no more ticks are there",
        "an outage has left work of which nothing is known",
        "no segment is left",
    ],
)
def test_the_ticks_for_a_minute(weight: Weight, left: int, wanted: Shares) -> None:
    assert shares(weight, left, 64, WORTH) == wanted
