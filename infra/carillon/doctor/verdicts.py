"""The verdicts of checks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from carillon.doctor.facts import Snapshot


class Level(StrEnum):
    OK = "ok"
    ADVICE = "advice"
    """Nothing is wrong; something could be better."""
    UNKNOWN = "not known here"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one check; `advice` is its remedy, "" where it needs none."""

    check: str
    level: Level
    text: str
    advice: str = ""


Check = Callable[[Snapshot], Iterator[Verdict]]


def judged(check: str, wrong: str, fine: str, advice: str) -> Verdict:
    """Wrong where there is a text for it, else fine."""
    return Verdict(check, Level.WRONG, wrong, advice) if wrong else Verdict(check, Level.OK, fine)
