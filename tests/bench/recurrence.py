"""`make bench-recurrence`: our engine beside cronsim, croniter and APScheduler, in one run.

Two questions, on the same expressions and zones. "What comes next?": each library in its quickest
mode, an object made once and asked again and again. "What fires in this minute?": ours over 100,000
entries that share 1,000 schedules, against one `next` of the fastest peer per entry, which is how
the peers would answer it. Rounds are interleaved and the best of each counts. Whether a bar is kept
is printed, not asserted: machines differ.
"""

import platform
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import NamedTuple
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]
from croniter import croniter  # type: ignore[import-untyped]
from cronsim import CronSim

from carillon.schedules import Schedule, parse_schedule

ROUNDS = 5
ENTRIES = 100_000
MINUTES = 3
MOST_NEXT_RATIO = 1.2
LEAST_CHECK_RATIO = 20
START = datetime(2026, 5, 4, 7, 3, 20, tzinfo=UTC)
PEERS = ("cronsim", "croniter", "APScheduler")

Step = Callable[[], datetime | None]
"""Gives the next occurrence after the one that it gave last."""


class Row(NamedTuple):
    """An expression that all four read alike, and how many occurrences are asked for in a round."""

    expression: str
    zone: str
    asked: int = 200


ROWS = [
    Row("* * * * *", "UTC"),
    Row("*/5 * * * *", "Europe/Riga"),
    Row("17 * * * *", "America/New_York"),
    Row("*/15 9-17 * * MON-FRI", "UTC"),
    Row("*/15 9-17 * * MON-FRI", "Europe/Riga"),
    Row("0 9 * * MON-FRI", "America/New_York"),
    Row("30 2 * * *", "UTC"),
    Row("30 2 * * *", "Europe/Riga"),
    Row("0 12 1,15 * *", "America/New_York", 50),
    Row("5 4 * * SUN", "UTC", 50),
    Row("0 0 1 1 *", "Europe/Riga", 20),
    Row("0 6 29 2 *", "UTC", 5),
    Row("*/10 * * * * *", "UTC"),
    Row("30 15 6 * * *", "Europe/Riga"),
]


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}")
    agree()
    compare_next()
    compare_check()


def agree() -> None:
    """All four must give the same answers, or their times could not be compared."""
    for row in ROWS:
        steps = steppers(row.expression, row.zone)
        answers = {name: [step() for _ in range(5)] for name, step in steps.items()}
        for name, answer in answers.items():
            assert answer == answers["ours"], f"{row}: {name} answers otherwise"


def compare_next() -> None:
    """Prints microseconds per next occurrence."""
    names = ("ours", *PEERS)
    print(f"\n{'next occurrence, us':40}" + "".join(f"{name:>12}" for name in names) + "   ratio")
    totals = dict.fromkeys(names, 0.0)
    worst = 0.0
    for row in ROWS:
        best = best_of(row)
        for name in names:
            totals[name] += best[name]
        ratio = best["ours"] / min(best[peer] for peer in PEERS)
        worst = max(worst, ratio)
        print(line(f"{row.expression:23} {row.zone}", [best[name] for name in names], ratio))
    fastest = min(PEERS, key=lambda peer: totals[peer])
    print(line("sum", [totals[name] for name in names], totals["ours"] / totals[fastest]))
    kept = "kept" if worst <= MOST_NEXT_RATIO else "missed"
    print(f"at most {MOST_NEXT_RATIO} times the fastest peer, in every row: {kept} ({worst:.2f})")


def compare_check() -> None:
    """Prints microseconds per entry of a minute, and of the fastest peer's next."""
    lines = many_lines()
    schedules = [parse_schedule(expression, zone) for expression, zone in lines]
    entries = [schedules[number % len(schedules)] for number in range(ENTRIES)]
    order = random.Random(3)
    order.shuffle(entries)
    peers = [steppers(expression, zone) for expression, zone in lines]
    order.shuffle(peers)
    first_minute = int(START.timestamp()) // 60
    ours = []
    theirs: dict[str, list[float]] = {name: [] for name in PEERS}
    for turn in range(ROUNDS):
        minutes = range(first_minute + turn * MINUTES, first_minute + (turn + 1) * MINUTES)
        ours.append(timed(partial(check, entries, minutes)) / ENTRIES / MINUTES)
        for name in PEERS:
            steps = [peer[name] for peer in peers]
            theirs[name].append(timed(partial(ask, steps)) / len(steps))
    best = {name: min(spent) * 1e6 for name, spent in theirs.items()}
    print(
        f"\nwhat fires in a minute, {ENTRIES:,} entries of {len(lines):,} schedules, us per entry"
    )
    print(
        f"ours {min(ours) * 1e6:.3f}; one next of " + ", ".join(f"{n} {best[n]:.2f}" for n in best)
    )
    ratio = min(best.values()) / min(ours) / 1e6
    kept = "kept" if ratio >= LEAST_CHECK_RATIO else "missed"
    print(f"at least {LEAST_CHECK_RATIO} times faster than the fastest peer: {kept} ({ratio:.0f})")
    later = [[first_minute + 9_000 + turn] for turn in range(ROUNDS)]
    fresh = min(timed(partial(check, schedules, minutes)) for minutes in later)
    print(f"ours, a schedule's first question in a minute: {fresh / len(lines) * 1e6:.2f} us")


def check(entries: list[Schedule], minutes: range | list[int]) -> int:
    fired = 0
    for minute in minutes:
        for schedule in entries:
            if schedule.seconds_of_minute(minute):
                fired += 1
    return fired


def ask(steps: list[Step]) -> None:
    for step in steps:
        step()


def many_lines() -> list[tuple[str, str]]:
    """1,000 different lines of the kinds that users write."""
    zones = ("UTC", "Europe/Riga", "America/New_York")
    made = []
    for number in range(1000):
        minute, hour = number % 60, number // 60 % 24
        text = (
            f"{minute} * * * *",
            f"{minute} {hour} * * *",
            f"{minute % 5}-59/5 9-17 * * MON-FRI",
            f"{minute} {hour} {number % 28 + 1} * *",
            f"*/{number % 29 + 2} {hour} * * MON,WED,{('FRI', 'SAT', 'SUN')[number % 3]}",
        )[number % 5]
        made.append((text, zones[number // 5 % 3]))
    return made


def best_of(row: Row) -> dict[str, float]:
    """Microseconds per occurrence, by library."""
    found: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, step in steppers(row.expression, row.zone).items():
            spent = timed(partial(ask, [step] * row.asked)) / row.asked * 1e6
            found[name] = min(spent, found.get(name, spent))
    return found


def steppers(expression: str, zone: str) -> dict[str, Step]:
    """All four at START, ready to be asked."""
    tz = UTC if zone == "UTC" else ZoneInfo(zone)
    local = START.astimezone(tz)
    has_seconds = len(expression.split()) == 6
    sim = CronSim(expression, local)
    iterator = croniter(expression, local, ret_type=datetime, second_at_beginning=has_seconds)
    return {
        "ours": ours(parse_schedule(expression, zone)),
        "cronsim": sim.__next__,
        "croniter": iterator.get_next,
        "APScheduler": apscheduler(expression, tz, local),
    }


def ours(schedule: Schedule) -> Step:
    last: datetime | None = START

    def step() -> datetime | None:
        nonlocal last
        assert last is not None
        last = schedule.next(last)
        return last

    return step


def apscheduler(expression: str, tz: tzinfo, local: datetime) -> Step:
    fields = expression.split()
    second = fields.pop(0) if len(fields) == 6 else "0"
    minute, hour, day, month, day_of_week = fields
    trigger = CronTrigger(
        second=second,
        minute=minute,
        hour=hour,
        day=day,
        month=month,
        day_of_week=day_of_week,
        timezone=tz,
    )
    last: datetime | None = local

    def step() -> datetime | None:
        nonlocal last
        last = trigger.get_next_fire_time(last, last)
        return last

    return step


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def line(title: str, figures: list[float], ratio: float) -> str:
    return f"{title:40}" + "".join(f"{figure:12.2f}" for figure in figures) + f"{ratio:8.2f}"


if __name__ == "__main__":
    main()
