"""The progress of dispatch, by the control items; and the entries that ticks leave out."""

from collections.abc import Iterator

from carillon.doctor.checks import (
    alarms,
    clock,
    concurrency,
    depths,
    functions,
    mappings,
    recursion,
    secret,
    skew,
    tables,
    ticks_own,
    time_zones,
)
from carillon.doctor.facts import Snapshot, TableFacts, Unknown
from carillon.doctor.verdicts import Check, Level, Verdict, judged
from carillon.domain.wheel.entry import minute_of
from carillon.domain.wheel.segment import Control

_LATE_MINUTES = 2
_TICK_MINUTES = 3
"""The rule comes within its minute, and the look-ahead makes up for a late one."""
_ENTRIES_A_MINUTE = 40_000
"""Of one tick with 512 MB: measured at 0.24 ms of a processor for each, of which it has 0.29; it
has most of a lease's 45 s."""


def examine(seen: Snapshot) -> list[Verdict]:
    """The verdicts of all checks, in the order to read them."""
    return [verdict for check in CHECKS for verdict in check(seen)]


def _controls(seen: Snapshot) -> dict[int, Control]:
    return {n: each for n, each in seen.controls.items() if isinstance(each, Control)}


def ticks(seen: Snapshot) -> Iterator[Verdict]:
    """Judged by the horizon, which each tick moves to its minute and the look-ahead."""
    ticked = [each.horizon for each in _controls(seen).values() if each.token]
    hidden = [each for each in seen.controls.values() if isinstance(each, Unknown)]
    if hidden and not ticked:
        yield Verdict("last tick", Level.UNKNOWN, hidden[0].reason)
        return
    if not ticked:
        text = "no tick has visited any segment"
        yield Verdict("last tick", Level.WRONG, text, "is the rule enabled? read the tick's log")
        return
    age = minute_of(seen.at) - (max(ticked) - seen.settings.look_ahead_minutes)
    advice = "is the rule enabled, and may the tick be invoked? read its log"
    wrong = f"{age} minutes ago" if age > _TICK_MINUTES else ""
    if age < -1:
        wrong, advice = f"{-age} minutes ahead", "the clock of a tick, or this one, is wrong"
    yield judged("last tick", wrong, f"{max(age, 0)} minutes ago", advice)


def segments(seen: Snapshot) -> Iterator[Verdict]:
    late, owed, known = [], 0, len(seen.controls)
    for number, control in seen.controls.items():
        if isinstance(control, Unknown):
            known -= 1
            name, advice = f"segment {number}", f"carillon admin mend-segment {number}"
            if control.is_broken:
                yield Verdict(name, Level.WRONG, control.reason, advice)
            else:  # not these credentials, or not now
                yield Verdict(name, Level.UNKNOWN, control.reason)
        elif control is not None:
            lag = control.lag_minutes(seen.at)
            owed += sum(each.until - each.done for each in control.backlog)
            if lag >= _LATE_MINUTES:
                late.append(f"{number} by {lag} min")
    if not known:
        return
    yield judged(
        "dispatch",
        f"segments are behind: {', '.join(late)}" if late else "",
        f"{known} segments are up to date" + (f", {owed} minutes owed" if owed else ""),
        "after an outage: wait while it catches up; else raise memory_mb of the tick, then"
        " tick_workers",
    )


def growth(seen: Snapshot) -> Iterator[Verdict]:
    """Each minute reads a sixtieth of an hour's entries, if all jobs fire every hour."""
    wheel, workers = seen.tables.get("wheel"), seen.settings.tick_workers
    met = wheel.items // 60 if isinstance(wheel, TableFacts) else 0
    text = f"about {met:,} entries a minute at most, for up to {workers} ticks"
    if met > _ENTRIES_A_MINUTE * workers:
        segments = f"segments to {4 * workers + 4}, then carillon admin spread"
        advice = f"raise memory_mb of the tick, or tick_workers, and {segments}"
        yield Verdict("growth", Level.ADVICE, text, advice)
    elif seen.settings.segments < workers:
        advice = f"deploy with segments={4 * workers}: a tick without one idles"
        yield Verdict("growth", Level.ADVICE, f"{workers} ticks share too few segments", advice)
    else:
        yield Verdict("growth", Level.OK, text)


def unreadable(seen: Snapshot) -> Iterator[Verdict]:
    if isinstance(seen.set_aside, Unknown):
        yield Verdict("entries set aside", Level.UNKNOWN, seen.set_aside.reason)
        return
    for each in seen.set_aside:
        text = f"segment {each.segment}, slot {each.slot}, {each.key}: {each.reason}"
        if each.is_readable:
            advice = "it can be read by now, so leave it; if ticks go on telling of it, audit"
            yield Verdict("entries set aside", Level.ADVICE, text, advice)
            continue
        # A reindex overwrites entries that are still a job's: if they were deleted before it,
        # nothing would report the entry until then; if they were deleted unseen after it, so would
        # be a mended one.
        advice = (
            f"carillon admin reindex --segment {each.segment}, while the lanes are empty; what"
            " cannot be read after that is no job's: delete that item of the wheel's table"
        )
        yield Verdict("entries set aside", Level.WRONG, text, advice)
    if not seen.set_aside:
        yield Verdict("entries set aside", Level.OK, "none")


CHECKS: tuple[Check, ...] = (
    functions,
    clock,
    ticks,
    segments,
    growth,
    unreadable,
    mappings,
    depths,
    concurrency,
    ticks_own,
    recursion,
    time_zones,
    tables,
    secret,
    alarms,
    skew,
)
