"""The simulation finds planted bugs: a few of them here, all by `make simulate-mutants`."""

import re
from inspect import signature
from pathlib import Path
from types import FunctionType

import pytest

from tests.simulation.mutants.hunting import BY_NAME, MUTANTS, hunt, outcome_of
from tests.simulation.mutants.kit import Mutant, Swap, swapped

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"
QUICK = {
    "watermark_before_sends": 10,
    "drift": 10,
    "given_away_counts_as_dispatched": 10,
    "claim_unconditional": 20,
    "acknowledged_first": 10,
    "last_passer_resets_the_rate": 20,
    "batch_one_by_one": 10,
    "permit_not_taken": 10,
    "stopped_goes_on": 10,
    "open_without_check": 10,
    "late_report_accepted": 20,
    "redelivered_result_untold": 20,
    "job_left_out_of_a_summary": 10,
    "summed_since_the_change": 10,
    "handed_over_from_now_on": 20,
    "passed_over_and_missed": 10,
}
"""Mutants that few seeds give away, with more seeds than they take."""

_INVARIANTS = {
    *("I1", "I2", "I3", "I4", "pause", "delete", "overlap", "skip", "runaway", "attempts", "late"),
    "history",
    *("lane", "change", "watch", "rate", "gone", "share", "permits", "renamed", "paused", "stop"),
    *("after", "complete", "completion", "feed", "notice", "result", "handed over", "owner"),
}


def test_the_table_is_complete() -> None:
    assert len(BY_NAME) == len(MUTANTS) >= 60
    for mutant in MUTANTS:
        assert mutant.swaps, mutant.name
        assert mutant.planted, mutant.name
        assert set(mutant.breaks) <= _INVARIANTS, mutant.name


def test_the_page_names_each() -> None:
    """In the table, or in the list of those that cannot break anything."""
    page = PAGE.read_text()
    table = page.partition("| mutant | planted |")[2].partition("\n\n")[0]
    cannot_break = {name for name, mutant in BY_NAME.items() if mutant.cannot_break}
    assert sorted(re.findall(r"^\| `(\w+)` \| ", table, re.MULTILINE)) == sorted(
        BY_NAME.keys() - cannot_break
    )
    assert cannot_break <= set(re.findall(r"^- `(\w+)`: ", page, re.MULTILINE))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_planted_and_pulled_out_again(mutant: Mutant) -> None:
    def now() -> list[object]:
        return [vars(swap.owner)[swap.name] for swap in mutant.swaps]

    before = now()
    with swapped(mutant.swaps):
        assert all(there is not was for there, was in zip(now(), before, strict=True))
    assert all(there is was for there, was in zip(now(), before, strict=True))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_takes_the_arguments_of_what_it_replaces(mutant: Mutant) -> None:
    """Else it would be found by its own crash."""
    for swap in mutant.swaps:
        there = vars(swap.owner)[swap.name]
        if isinstance(there, FunctionType):
            planted = signature(swap.make(there))
            wanted = signature(there).parameters.values()
            places = [p for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            by_name = {p.name: None for p in wanted if p.kind is p.KEYWORD_ONLY}
            planted.bind(*places, **by_name)
            planted.bind(*[p for p in places if p.default is p.empty], **by_name)


def test_names_are_put_back_after_an_error() -> None:
    class Owner:
        name = "sound"

    swaps = (Swap(Owner, "name", lambda was: f"not {was}"), Swap(Owner, "missing", lambda was: was))
    with pytest.raises(KeyError), swapped(swaps):
        pytest.fail("there is no such name to plant")
    assert Owner.name == "sound"


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(name: str) -> None:
    found = hunt(BY_NAME[name], most=QUICK[name])
    assert found.violation is not None, f"{name} was not found by {QUICK[name]} seeds"


def test_a_hunt_comes_to_nothing_where_nothing_is_planted() -> None:
    sound = Mutant("none", ("I1", "I2", "I3", "I4"), "nothing", ())
    assert hunt(sound, most=3).violation is None


def test_the_same_seed_is_the_same_for_a_mutant() -> None:
    mutant = BY_NAME["acknowledged_first"]
    first, second = (outcome_of(mutant, 0, planted=True) for _ in range(2))
    assert first.violations == second.violations
    assert first.strikes == second.strikes
