"""The report of a simulation: each run on a line as it ends, and the summary."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from carillon.cli.output import printable, write_line, write_table

_MOST_LINES = 40
_STYLES = {"succeeded": "green", "skipped": "yellow"}
Figures = Mapping[str, Any]


def write_run(run: Figures) -> None:
    """One run that has ended; in colour on a terminal."""
    lag = "" if run["lag_seconds"] is None else f"lag {run['lag_seconds']:.3f} s"
    outcome = run["status"] + (f" ({run['reason']})" if run["reason"] else "")
    tried = f"attempt {run['attempt']}" if run["attempt"] > 1 else ""
    kind = run["kind"] if run["kind"] in ("callback", "watch") else ""
    covered = f"{run['covers_count']} occurrences" if run["covers_count"] else ""
    cells = (run["fire_at"], outcome, run["job_name"], kind, covered, lag, tried)
    text = "  ".join(printable(cell) for cell in cells if cell)
    if not _is_terminal():
        write_line(text)
        return
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text, style=_STYLES.get(run["status"], "red")))


def write_summary(summary: Figures) -> None:
    """The whole summary, for people."""
    jobs = f"{summary['job_count']:,} {'job' if summary['job_count'] == 1 else 'jobs'}"
    write_line(f"{jobs} from {summary['from']} to {summary['to']}, seed {summary['seed']}")
    if summary["is_interrupted"]:
        write_line("Interrupted: these are the figures so far")
    write_line("")
    _write_jobs(summary["jobs"])
    write_line("")
    for name, told in _figures(summary):
        write_line(f"{name:<16}{told}")
    for unit in ("seconds", "minutes"):
        peaks = summary["peaks"][unit]
        if peaks:
            write_line("")
            rows = [(peak["at"], peak["starts"], ", ".join(peak["jobs"])) for peak in peaks]
            write_table((f"busiest {unit}", "starts", "jobs"), rows)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _write_jobs(jobs: Sequence[Figures]) -> None:
    columns = ("job", "jobs", "fires", "succeeded", "dead", "skipped", "max_lag", "first_fire_at")
    rows = [
        (
            job["name"],
            job["jobs"],
            job["fires"],
            job["outcomes"].get("succeeded", 0),
            job["outcomes"].get("dead", 0) + job["outcomes"].get("timed_out", 0),
            job["outcomes"].get("skipped", 0),
            _seconds(job["max_lag_seconds"]) if job["fires"] else None,
            ", ".join(job["first"]) or None,
        )
        for job in jobs[:_MOST_LINES]
    ]
    if _is_terminal():  # whose width is seldom enough for all
        write_table(columns[:-1], [row[:-1] for row in rows])
        write_line("")
        write_table(("job", "first_fire_at"), [(row[0], row[-1]) for row in rows])
    else:
        write_table(columns, rows)
    if len(jobs) > _MOST_LINES:
        write_line(f"... and {len(jobs) - _MOST_LINES:,} more definitions: see --json")


def _figures(summary: Figures) -> Iterator[tuple[str, str]]:
    """The subject and the text of each line."""
    lag, usage = summary["lag_seconds"], summary["usage"]
    yield "fires", f"{summary['fires']:,} ({summary['target_calls']:,} calls of targets)"
    yield "outcomes", _counts(summary["outcomes"])
    if summary["skips"]:
        yield "skipped", _counts(summary["skips"])
    if lag["median"] is not None:
        told = (f"{name} {_seconds(lag[name])}" for name in ("median", "p99", "max"))
        yield "lag", ", ".join(told)
    yield "retries", f"{summary['retries']:,}"
    yield "dead letters", _counts(summary["dead_letters"])
    if summary["missed"]:
        yield "missed", f"{summary['missed']:,} without a success in time (expect_within)"
    if summary["callbacks"]:
        yield "callbacks", f"{summary['callbacks']:,}"
    if summary["due"] is not None:
        yield "no outcome yet", f"{summary['open']:,} of {summary['due']:,} that were due"
    if summary["paused"]:
        yield "paused", ", ".join(map(printable, summary["paused"][:10]))
    if summary["faults"]:
        yield "faults", _counts(summary["faults"])
    yield "cost", f"{_dollars(usage['dollars_total'])}, without the targets' own"
    yield "  of ticks", _usage(usage["ticks"])
    yield "  of runs", _usage(usage["runs"])
    yield "  standing", _standing(usage["standing"])
    per_million = usage["runs_dollars_per_million_fires"]
    if per_million is not None:
        yield "", f"${per_million:,.2f} per million fires"


def _usage(usage: Figures) -> str:
    parts = (
        _dollars(usage["dollars_total"]),
        f"{usage['write_units']:,} write units",
        f"{usage['read_units']:,} read units",
        f"{usage['queue_requests']:,} SQS requests",
        f"{usage['lambda_invocations']:,} invocations",
        f"{usage['lambda_gb_seconds']:,.0f} GB-s",
    )
    return ", ".join(parts)


def _standing(usage: Figures) -> str:
    """The costs that arise however little happens: polls of empty queues, monthly charges."""
    parts = (f"{line} {_dollars(dollars)}" for line, dollars in usage["dollars"].items())
    return f"{_dollars(usage['dollars_total'])}: {', '.join(parts)}"


def _dollars(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.01 else "less than $0.01"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 10 else f"{seconds:,.1f} s"
