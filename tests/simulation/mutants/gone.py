"""Bugs planted into what removes the entries of generations that have ended."""

from carillon.services.indexer import Indexer
from tests.simulation.mutants.kit import (
    Mutant,
    Swap,
    asked,
    both,
    faulty,
    given,
    instead,
    scheduled,
    small,
)

_AT_THE_END = Swap(Indexer, "remove_ended_entries", instead(lambda self, before, after: None))
_WHEN_MET = Swap(Indexer, "remove_stale_entry", instead(lambda self, job, message: None))
_ENDING = both(
    scheduled("every 20s", "every 40s"),
    asked("delete", 1),
    given(ticks_down=(), executors_down=()),
)

GONE = (
    Mutant(
        "entries_left",
        ("gone",),
        "the entries of a generation that has ended stay where they are",
        (_AT_THE_END, _WHEN_MET),
        reshape=both(small(16), _ENDING),
    ),
    Mutant(
        "entries_left_until_met",
        ("gone",),
        "the entries of a generation that has ended stay until what they send is met",
        (_AT_THE_END,),
        reshape=both(small(16), _ENDING),
    ),
    Mutant(
        "met_entries_left",
        ("gone",),
        "who meets what an entry of an ended generation has sent lets the entry stand",
        (_WHEN_MET,),
        reshape=both(small(100), _ENDING, faulty(throttled=0.1, dies=0.02)),
    ),
)
