"""`carillon report`: how well jobs have run over a span of days."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from carillon.cli.client import ApiClient, Json
from carillon.cli.exits import CliError
from carillon.cli.instants import utc_text
from carillon.cli.output import write_error, write_items
from carillon.cli.session import SessionOptions
from carillon.errors import InvalidFieldError
from carillon.schedules import parse_duration

COLUMNS = (
    "of", "success", "succeeded", "dead", "timed_out", "missed", "skipped", "unknown", "pending",
    "lag_p50", "lag_p99", "lag_max", "late",
)  # fmt: skip
LEAST_NEEDED = ("lag_p50", "pending", "lag_max", "skipped", "unknown", "timed_out", "succeeded")
_FAILED = ("dead", "timed_out", "missed", "unknown")
_LONGEST_DAYS = 199


@dataclass(slots=True)
class Row:
    """The sums of one job, one tag, or all; `worst` are the largest of its days, in seconds.
    `unit`: h where the days are hours."""

    of: str
    unit: str = "d"
    counts: Counter[str] = field(default_factory=Counter)
    worst: dict[str, float] = field(default_factory=dict)
    days: int = 0
    late_days: int = 0

    def add(self, bucket: Json, target_seconds: float) -> None:
        self.counts.update(bucket["counts"])
        lag = bucket.get("lag")
        if lag:
            self.days += 1
            self.late_days += lag["p99"] > target_seconds
            self.worst = {name: max(self.worst.get(name, 0.0), lag[name]) for name in lag}

    def told(self) -> Json:
        """The cells; `success` is the share of what should have succeeded and has."""
        failed = sum(self.counts[name] for name in _FAILED)
        judged = failed + self.counts["succeeded"]
        return {
            "of": self.of,
            # Never rounded up to a whole.
            "success": None if not judged else self.counts["succeeded"] * 100_000 // judged / 1e5,
            **{name: self.counts[name] for name in COLUMNS[2:9]},
            "lag_p50": self.worst.get("p50"),
            "lag_p99": self.worst.get("p99"),
            "lag_max": self.worst.get("max"),
            "late": f"{self.late_days} of {self.days} {self.unit}" if self.days else None,
        }


def report(
    *,
    last: Annotated[str, typer.Option(metavar="SPAN", help="So far back: 24h, 30d.")] = "7d",
    by: Annotated[
        str | None,
        typer.Option(metavar="job|tag:KEY", help="A row for each.", show_default="one row"),
    ] = None,
    lag_target: Annotated[
        str,
        typer.Option(
            help="A day is late if its 99th percentile of lag is more; an hour, up to 2d."
        ),
    ] = "5s",
    session: SessionOptions,
) -> None:
    """Show how well jobs have run: successes, what failed or was missed, and lag.

    The success rate counts what failed, was missed, or left no trace against what succeeded;
    skipped and cancelled runs, and what is under way, do not count. Lags are of the worst day, or
    the worst hour where the span is two days at most; the first one is summed up whole. With
    --json, an array.
    """
    try:
        span = timedelta(seconds=parse_duration(last, "last"))
        target_seconds = parse_duration(lag_target, "lag_target")
        if not timedelta() < span <= timedelta(days=_LONGEST_DAYS):
            raise InvalidFieldError("last", f"must be from 1s to {_LONGEST_DAYS}d")
        group, wanted = _group_of(by)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    api = session.connect()
    until = datetime.now(UTC).replace(microsecond=0)
    step = "hour" if span <= timedelta(days=2) else "day"
    query = {"from": utc_text(until - span), "to": utc_text(until), "by": step, "group": group}
    answer = api.get("/runs/summary", query)
    if answer.get("complete") is False:
        write_error("Note: a limit was reached; what was not looked for counts as pending")
    names = _names(api) if group == "job" else {}
    rows = rows_of(answer.get("buckets", ()), wanted, names, target_seconds, step[0])
    write_items(rows, COLUMNS, session.is_json, _cell, LEAST_NEEDED)


def rows_of(
    buckets: Iterable[Json], wanted: str, names: Json, target_seconds: float, unit: str = "d"
) -> list[Json]:
    """A row for each key that begins with `wanted`, by name; one for all where keys are null."""
    rows: dict[str, Row] = {}
    for bucket in buckets:
        key = "" if bucket.get("key") is None else str(bucket["key"])
        if key.startswith(wanted):
            told = str(names.get(key, key.removeprefix(wanted))) if key else "all jobs"
            rows.setdefault(key, Row(told, unit)).add(bucket, target_seconds)
    return [row.told() for row in sorted(rows.values(), key=lambda row: row.of)]


def _group_of(by: str | None) -> tuple[str, str]:
    """The API's grouping, and the begin of the keys that are asked for."""
    match (by or "").partition(":"):
        case "", "", "":
            return "status", ""
        case "job", "", "":
            return "job", ""
        case "tag", ":", key if key:
            return "tag", f"{key}:"
    raise InvalidFieldError("by", f"{by!r} is neither job nor a tag, as tag:team")


def _names(api: ApiClient) -> Json:
    return {
        str(job["job_id"]): job["name"] for job in api.items("/jobs", None, {"view": "summary"})
    }


def _cell(row: Json, column: str) -> Any:
    value = row.get(column)
    if column == "success" and value is not None:
        return f"{round(value * 100_000) // 10 / 100:.2f}%"
    return f"{value:.2f} s" if isinstance(value, float) else value
