"""`make bench-cost`: what a million fires cost, and a month in which nothing fires, line by line.

The last lines are one JSON object: by profile the dollars of each line and `usd_per_million`. With
names of profiles (`make bench-cost ONLY="chunks_full chunks_webhook"`) the others, the model and
the goals are left out.
"""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from carillon.domain.wheel.delaying import whole_delay
from carillon.schedules.insight.cost import (
    BARE_REQUEST_CPU_SECONDS,
    BATCH_LOG_BYTES,
    BATCH_WAIT_SECONDS,
    CALL_CPU_SECONDS,
    CALL_SECONDS,
    DEFAULT,
    GRAVITON_SPEED,
    INVOCATION_CPU_SECONDS,
    MONTH_MINUTES,
    PRICES,
    RUN_CALLS,
    RUN_CPU_SECONDS,
    VCPU_MB,
    Line,
    Usage,
    fires,
    idle,
    lasted,
)
from tests.bench.cost import profiles
from tests.bench.cost.measuring import Processor
from tests.bench.cost.profiles import FAILING, IDLE_MINUTES, TASK, Figures
from tests.bench.cost.stage import Measured, Theatre, theatre

ROUNDS = 1
FULL_GOAL, TWO_GOAL, IDLE_GOAL = 1.90, 2.50, 1.50
"""Dollars: per million with full batches and with batches of two; an idle month's requests, writes
and functions."""
CHUNKS_GOAL, WEBHOOK_GOAL = 0.30, 0.35
"""The same in chunks whose successes have no rows: of tasks, and of webhooks."""
BY_THE_MONTH = (Line.METRICS, Line.ALARMS, Line.DASHBOARDS, Line.SECRETS)
INVOCATION, RUN = INVOCATION_CPU_SECONDS, RUN_CPU_SECONDS + RUN_CALLS * CALL_CPU_SECONDS
FIRES_A_MONTH = 300_000_000
TWICE: Mapping[str, Any] = {
    "max_attempts": 3,
    "backoff": {"type": "fixed", "base_seconds": 5},
}
FAILS_ONCE: Mapping[str, Any] = {"target": {"type": "task", "name": "fail_once"}, "retry": TWICE}
ONCE: Mapping[str, Any] = {"retry": {"max_attempts": 1}}
"""No plain job: its one attempt would die with its chunk."""


def main(only: Sequence[str] = ()) -> None:
    began = time.monotonic()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f}")
    figures: dict[str, Figures] = {}
    told: dict[str, dict[str, Any]] = {}
    with theatre() as there:
        _print_assumptions(there.processor)
        for name, play in _plays(there, figures):
            if only and name not in (*only, "idle_month"):
                continue
            # What else the machine does makes a round dearer, never cheaper.
            rounds = [play() for _ in range(ROUNDS)]
            figures[name] = min(rounds, key=lambda one: one.usage.dollars)
            told[name] = _told(name, figures[name])
    if not only:
        told["ten_million_a_day"] = _month(figures)
        _print_model(figures)
        _print_goals(told)
    print(f"\ntook {time.monotonic() - began:.0f} s\n")
    print("{\n" + ",\n".join(f'"{name}": {json.dumps(one)}' for name, one in told.items()) + "\n}")


def _plays(
    there: Theatre, figures: Mapping[str, Figures]
) -> Iterator[tuple[str, Callable[[], Figures]]]:
    """The profiles; what a tick takes without work is known once the first has been played."""
    yield "idle_month", lambda: profiles.idle_month(there)
    tick = _idle_tick(figures["idle_month"])
    webhook = {"type": "webhook", "url": there.receiver}
    for name, batch in (("recurring_full", 10), ("recurring_two", 2), ("recurring_one", 1)):
        yield name, partial(profiles.recurring, there, tick, batch, TASK)
    yield from _chunks(there, tick, webhook)
    yield "one_shot_by_api", lambda: profiles.one_shot(there, tick, 10)
    yield "webhook_full", partial(profiles.recurring, there, tick, 10, webhook)
    yield "two_failures", partial(profiles.recurring, there, tick, 10, FAILING, 20, retry=TWICE)


def _chunks(
    there: Theatre, tick: Usage, webhook: Mapping[str, str]
) -> Iterator[tuple[str, Callable[[], Figures]]]:
    """Chunks: five a batch where nothing else is said, ten at most as event sources hand over."""
    played = partial(profiles.chunked, there, tick)
    yield "chunks_full", partial(played, 5)
    yield "chunks_one", partial(played, 1)
    yield "chunks_ten", partial(played, 10)
    yield "chunks_webhook", partial(played, 5, webhook)
    yield "chunks_webhook_ten", partial(played, 10, webhook)
    for size in (24, 120):  # bytes of each run's result, no two of them alike
        answering = {**webhook, "url": f"{there.receiver}{size - len('200 ')}"}
        yield f"chunks_{size}b", partial(played, 5, payloads=size)
        yield f"chunks_webhook_{size}b", partial(played, 5, answering)
    # One in ten goes alone: after its first attempt, as such, and by a policy that has rows.
    for name, tenth in (("failing", FAILS_ONCE), ("alone", ONCE), ("skip", {"overlap": "skip"})):
        yield f"chunks_tenth_{name}", partial(played, 10, tenth=tenth)
    # All seconds of the minute: seven a second and segment are ten million a day of sixteen.
    spread: dict[str, Any] = {"seconds": range(60), "minutes": 1}
    yield "chunks_spread_4", partial(played, 5, each=7, **spread)

    def sixteen() -> Figures:
        idle_tick = _idle_tick(profiles.idle_month(there, 16))
        return profiles.chunked(there, idle_tick, 5, each=7, segments=16, **spread)

    yield "chunks_spread_16", sixteen
    # The same load in four segments; a third of the seconds tells of all.
    third: dict[str, Any] = {"seconds": range(0, 60, 3), "minutes": 1}
    yield "chunks_spread_28", partial(played, 5, each=28, **third)
    yield "chunks_100k_a_day", partial(played, 1, each=17, minutes=10)
    yield "chunks_1k_a_day", partial(played, 1, each=1, minutes=10)


def _idle_tick(figures: Figures) -> Usage:
    return figures.measured["tick"].usage * (1 / IDLE_MINUTES)


def _print_assumptions(processor: Processor) -> None:
    memory_mb, days = DEFAULT.memory_mb, DEFAULT.run_retention_days
    share = memory_mb / VCPU_MB
    print(f"""
prices      us-east-1, on demand, arm64, without free tiers (insight/cost.py names the pages)
history     {days} days, without recovery
processor   a bare put_item takes {1e3 * processor.bare_seconds:.2f} ms here, \
{1e3 * processor.wire_seconds:.2f} of them on a plain socket (no TLS),
            and {1e3 * BARE_REQUEST_CPU_SECONDS:.2f} on the model's machine: times below are \
{processor.speed:.2f} of those taken here;
            a Graviton core is {GRAVITON_SPEED} of that one, {memory_mb} MB have {share:.3f} of it
waiting     as executors slept, ticks at each tenth of a second; SQS delivers at once; up to
            500 messages a tick are sent just before a whole second, more are sent at once
calls       {CALL_SECONDS * 1000:.0f} ms each, waited for where no other thread has work
apart       what targets take, and what is there however little fires (idle_month)
""")


def _told(name: str, figures: Figures) -> dict[str, Any]:
    """Print a profile; its figures as JSON's types."""
    usage = figures.per_million if figures.fires else figures.usage
    print(f"\n{name}: ${usage.dollars:.2f} {'per million fires' if figures.fires else 'a month'}")
    for line, dollars in usage.dollars_by_line.items():
        amount = f"{usage.of(line):>14,.2f} {PRICES[line].unit}"
        print(f"  {line.value:20}{dollars:8.3f}  {amount}")
    if figures.alone:
        print(f"  {figures.alone} of {figures.fires} left their chunks, and went alone")
    for service, one in figures.measured.items():
        if one.invocations:
            _print_invocations(service, one)
    lines = {line.value: round(dollars, 4) for line, dollars in usage.dollars_by_line.items()}
    if not figures.fires:
        apart = sum(usage.dollars_by_line.get(line, 0.0) for line in BY_THE_MONTH)
        ours = usage.dollars - apart
        return {
            **lines,
            "usd_without_monthly_charges": round(ours, 3),
            "usd_per_month": round(usage.dollars, 3),
        }
    waits = figures.measured["executor"].waits
    return {
        **lines,
        "fires": figures.fires,
        "alone": figures.alone,
        "executor_invocations": len(waits),
        "mean_wait_ms": round(1000 * statistics.mean(waits), 1),
        "longest_wait_ms": round(1000 * max(waits), 1),
        "usd_per_million": round(usage.dollars, 3),
    }


def _print_invocations(service: str, one: Measured) -> None:
    n = one.invocations
    waited = f"waited {1000 * statistics.mean(one.waits):.0f} ms (most {1000 * max(one.waits):.0f})"
    logged = f"logged {one.log_bytes / n:.0f} bytes in {one.log_events / n:.1f} events"
    print(f"  {service} {n} times: {1000 * one.cpu_seconds / n:.1f} ms of CPU, {waited}, {logged}")
    there = one.cpu_seconds / n / (GRAVITON_SPEED * DEFAULT.memory_mb / VCPU_MB)
    print(f"    which lasts {there:.2f} s with what {DEFAULT.memory_mb} MB have of a Graviton core")
    print(
        f"    {', '.join(f'{request} {times}' for request, times in sorted(one.requests.items()))}"
    )


def _print_model(figures: Mapping[str, Figures]) -> None:
    """What the model of shared/carillon/schedules/insight/cost.py rests on, as measured now."""
    full, one = figures["recurring_full"], figures["recurring_one"]
    runs = {name: each.measured["executor"] for name, each in (("full", full), ("one", one))}
    cpu = {name: each.cpu_seconds / each.invocations for name, each in runs.items()}
    log = runs["full"].log_bytes / runs["full"].invocations
    waits = [*runs["full"].waits, *runs["one"].waits]
    print(f"""
measured    {1000 * cpu["one"]:.2f} ms of CPU for a batch of one, {1000 * cpu["full"]:.2f} for ten
modelled    {1000 * (INVOCATION + RUN):.2f} ms, {1000 * (INVOCATION + 10 * RUN):.2f} ms
measured    {log:.0f} bytes of log a batch, {1000 * statistics.mean(waits):.0f} ms waited
modelled    {BATCH_LOG_BYTES} bytes, {1000 * BATCH_WAIT_SECONDS:.0f} ms
modelled    ${fires(1e6).dollars:.2f} per million, full; ${fires(1e6, 2).dollars:.2f} by twos; \
${fires(1e6, 1).dollars:.2f} by ones; ${idle(MONTH_MINUTES).dollars:.2f} an idle month""")


def _month(figures: Mapping[str, Figures]) -> dict[str, Any]:
    """Ten million fires a day: 7,000 a minute, which no tick keeps waiting for the second's end."""
    fixed = figures["idle_month"].usage.dollars
    names = ("recurring_full", "recurring_two", "recurring_one")
    full, two, one = (_unaligned(figures[name]) for name in names)
    month = {
        name: per * FIRES_A_MONTH / 1e6 + fixed for name, per in (("full", full), ("one", one))
    }
    print(f"\nten_million_a_day (computed): ${full:.2f} per million, full batches,")
    print(f"  ${two:.2f} by twos, ${one:.2f} by ones;")
    print(f"  with what stands ${month['full']:,.0f} a month, ${month['one']:,.0f} by ones")
    return {
        "usd_per_month": round(month["full"], 2),
        "usd_per_month_batches_of_one": round(month["one"], 2),
        "usd_per_million": round(full, 3),
        "usd_per_million_batches_of_two": round(two, 3),
        "usd_per_million_batches_of_one": round(one, 3),
        "mean_wait_ms": round(1000 * _unaligned_wait(), 1),
    }


def _unaligned(figures: Figures) -> float:
    """Dollars per million where messages are sent at any fraction of a second."""
    usage, executor = figures.per_million, figures.measured["executor"]
    batches = executor.invocations * 1e6 / figures.fires
    wait = lasted(Line.WAITING, _unaligned_wait() * batches, DEFAULT.memory_mb)
    return (usage - Usage({Line.WAITING: usage.of(Line.WAITING)}) + wait).dollars


def _unaligned_wait() -> float:
    """Mean seconds that a batch waits for its second, over a hundred fractions of the sending."""
    ahead = [60 + hundredth / 100 for hundredth in range(100)]
    return statistics.mean(max(0.0, seconds - whole_delay(seconds)) for seconds in ahead)


def _print_goals(told: Mapping[str, Mapping[str, Any]]) -> None:
    print()
    ten = told["ten_million_a_day"]
    for text, reached, goal in (
        ("per million, full batches", told["recurring_full"]["usd_per_million"], FULL_GOAL),
        ("per million at 10M a day, full", ten["usd_per_million"], FULL_GOAL),
        ("per million at 10M a day, two", ten["usd_per_million_batches_of_two"], TWO_GOAL),
        ("per million, batches of two", told["recurring_two"]["usd_per_million"], TWO_GOAL),
        ("per million, chunks, tasks", told["chunks_full"]["usd_per_million"], CHUNKS_GOAL),
        ("per million, chunks, webhooks", told["chunks_webhook"]["usd_per_million"], WEBHOOK_GOAL),
        ("idle month", told["idle_month"]["usd_without_monthly_charges"], IDLE_GOAL),
    ):
        verdict = "met" if reached <= goal else "missed"
        print(f"goal {text:32} ${goal:.2f}: {verdict}, ${reached:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
