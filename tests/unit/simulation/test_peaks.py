"""The busiest spans, beside what counting everything finds."""

import random
from collections import Counter

from carillon.simulation.summary import MOST_PEAKS, Peaks


def test_the_highest_are_found_as_if_all_were_kept() -> None:
    chance = random.Random(5)
    for _ in range(50):
        instants = sorted(chance.randrange(600) for _ in range(chance.randrange(400)))
        counts = Counter(second // 60 * 60 for second in instants)
        expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_PEAKS]
        peaks = Peaks(60)

        for second in instants:
            peaks.mark(second * 1_000_000 + 999_999, "job")

        assert [(began, count) for began, count, _ in peaks.highest()] == expected


def test_a_peak_names_who_made_most_of_it() -> None:
    peaks = Peaks(1)
    for name in ("b", "a", "c", "c", "d", "e", "f", "g"):
        peaks.mark(7_000_000, name)

    assert peaks.highest() == [(7, 8, ("c", "a", "b", "d", "e"))]


def test_asking_in_between_loses_nothing() -> None:
    peaks = Peaks(1)
    peaks.mark(1_000_000, "a")
    peaks.highest()
    peaks.mark(2_000_000, "b")

    assert peaks.highest() == [(1, 1, ("a",)), (2, 1, ("b",))]
