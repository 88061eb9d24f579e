"""`make bench-simulate`: a day of 1,000,000 fires, in virtual time, by the real tick and executor.

Prints figures with the machine; nothing is asserted but the count of the fires. `--rows 10000` is
the same fleet with so many fires a day, for trying.
"""

import argparse
import gc
import platform
import resource
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from carillon.cli.commands.simulation.live import fast_forward
from carillon.simulation.run import Plan, Simulation
from carillon.simulation.workload import Workload
from tests.support.manifests import workload_of

FROM_AT = datetime(2026, 12, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="fires of the day")
    rows = parser.parse_args().rows
    fleet = fleet_of(rows)
    print(f"{platform.machine()}, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}")
    print(f"{fleet.job_count:,} jobs, {len(fleet.definitions):,} definitions")
    began = time.perf_counter()
    simulation = Simulation(fleet, Plan(FROM_AT, FROM_AT + DAY, seed=1))
    gc.freeze()  # the fleet is not looked through again and again
    print(f"created in {time.perf_counter() - began:,.1f} s", flush=True)
    fast_forward(simulation, lambda: True)
    seconds = time.perf_counter() - began
    report(simulation.summary(), seconds)


def fleet_of(fires: int) -> Workload:
    """Jobs with so many fires in a day of UTC: every ten seconds, every minute, every five
    minutes, hourly, and what is left daily, a quarter of it at one of four full hours."""
    jobs: list[dict[str, Any]] = []
    kinds: tuple[tuple[float, int, Callable[[int], str]], ...] = (
        (0.17, 8_640, lambda n: f"every 10s offset {n % 10}s"),
        (0.63, 1_440, lambda n: f"every 1m offset {n * 7 % 60}s" if n % 4 else "* * * * *"),
        (0.03, 288, lambda n: f"{n % 5}-59/5 * * * *"),
        (0.14, 24, lambda n: f"{n * 11 % 60} * * * *"),
    )
    for share, per_day, schedule in kinds:
        numbers = range(int(fires * share) // per_day)
        jobs += [_job(f"{per_day}-a-day-{n}", schedule(n), "UTC") for n in numbers]
    fires_left = fires - sum(int(job["name"].partition("-")[0]) for job in jobs)
    for number in range(fires_left):
        hour = number % 24
        minute = number * 13 % 60 if number % 4 else 0
        cron = f"{minute} {hour if number % 4 else number // 4 % 4 * 6} * * *"
        jobs.append(_job(f"1-a-day-{number}", cron, ZONES[number % len(ZONES)]))
    return workload_of(jobs)


def report(summary: dict[str, Any], seconds: float) -> None:
    """Print what the day took."""
    lag, usage = summary["lag_seconds"], summary["usage"]
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"fires           {summary['fires']:,} of {summary['due']:,} due")
    print(f"outcomes        {summary['outcomes']}")
    print(f"lag             median {lag['median']} s, p99 {lag['p99']} s, max {lag['max']} s")
    print(f"busiest second  {summary['peaks']['seconds'][0]['starts']:,} starts")
    print(f"estimated cost  ${usage['dollars_total']:.2f}")
    print(
        f"wall time       {seconds:,.1f} s, of which this process had {time.process_time():,.1f} s"
    )
    print(f"rate            {summary['fires'] / seconds:,.0f} fires/s")
    print(f"peak memory     {peak_mib:,.0f} MiB")


def _job(name: str, schedule: str, zone: str) -> dict[str, Any]:
    target = {"type": "task", "name": "refresh"}
    return {"name": name, "schedule": schedule, "timezone": zone, "target": target}


if __name__ == "__main__":
    main()
