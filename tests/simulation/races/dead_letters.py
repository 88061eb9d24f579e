"""Races of a dead letter: redriven twice, or redriven and discarded."""

from collections.abc import Iterator
from dataclasses import replace

from carillon.domain.run import Resolution, RunStatus
from tests.simulation.races.ending import Ending
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import (
    OWNER,
    Race,
    at,
    create,
    executor,
    fails_first,
    lived,
    one_shot,
    race,
    refuses,
    request,
    run_id,
)

DISCARD = request("discard", lambda api: api.dead_letters.discard(OWNER, run_id(2)))


def redrive(name: str) -> Actor:
    return request(name, lambda api: api.dead_letters.redrive(OWNER, run_id(2)))


def _dead() -> Setting:
    """The only run of a one-shot was refused for good."""
    contents = lived(at(4), {at(0, 10): create(**one_shot(2))}, behave=refuses)
    return race(at(4, 1), contents, [], behave=fails_first)


def redrive_twice() -> Setting:
    """Two redrive one dead letter, while its redriven run fails once and is to be retried."""
    actors = [redrive("redrive a"), redrive("redrive b"), executor()]
    return replace(_dead(), actors=actors)


def redrive_discard() -> Setting:
    return replace(_dead(), actors=[redrive("redrive"), DISCARD, executor()])


def redriven_well(ending: Ending) -> Iterator[str]:
    """The dead letter and the run that was made of it say the same, and it is what was told.

    Of two who are told at once either may win. A discard that died may have cancelled a run that
    had yet to begin: it was asked for, and the run says so.
    """
    dead, made = ending.run(run_id(2)), ending.run(run_id(2, 1))
    assert dead is not None
    settled = "unsettled" if dead.settled is None else dead.settled.value
    how = "absent" if made is None else made.status.value
    if made is not None and made.reason == "its dead letter was discarded":
        return
    if dead.settled is Resolution.REDRIVEN and how != RunStatus.SUCCEEDED:
        yield f"I1: the dead letter is redriven, but its run is {how}"
    if dead.settled is Resolution.DISCARDED and how not in ("absent", RunStatus.CANCELLED):
        yield f"the dead letter is discarded, but its run is {how}"
    if ending.told and dead.settled is None:
        yield f"{', '.join(sorted(ending.told))} was answered, but the dead letter is {settled}"
    if ending.told and "discard" not in ending.told and how != RunStatus.SUCCEEDED:
        yield f"I1: only a redrive was answered, but its run is {how}"
    if ending.told == {"discard"} and how == RunStatus.SUCCEEDED:
        yield "only a discard was answered, but the dead letter has run again"


_DEAD = frozenset({RunStatus.DEAD})

REDRIVES = (
    Race(
        "redrive against redrive",
        redrive_twice,
        "claim_unconditional",
        allowed=_DEAD,
        check=redriven_well,
    ),
    Race(
        "redrive against discard",
        redrive_discard,
        "settle_unread",
        allowed=_DEAD,
        check=redriven_well,
        losses=0,
    ),
)
