"""The look of runs: the columns of their lists, and one run whole."""

from collections.abc import Mapping
from typing import Any

from carillon.cli.client import Json
from carillon.cli.output import (
    effective_at,
    printable,
    write_json,
    write_line,
    write_record,
    write_table,
)

COLUMNS = (
    "fire_at", "effective_at", "kind", "status", "attempt", "lag_seconds", "outcome", "run_id",
)  # fmt: skip
COLUMNS_ACROSS = (
    "job_name", "fire_at", "kind", "status", "attempt", "lag_seconds", "duration_seconds",
    "outcome", "run_id",
)  # fmt: skip
LEAST_NEEDED = ("effective_at", "duration_seconds", "lag_seconds", "attempt", "kind")
_ATTEMPT_COLUMNS = ("attempt", "started_at", "finished_at", "error")


def run_cell(run: Mapping[str, Any], column: str) -> Any:
    """The columns of a list of runs."""
    if column == "effective_at":
        return effective_at(run)
    return _outcome(run) if column == "outcome" else run.get(column)


def write_run(run: Json, as_json: bool) -> None:
    """A run, whole: a line per member, then a table of its attempts."""
    if as_json:
        write_json(run)
        return
    attempts = run.get("attempts")
    told = {name: value for name, value in run.items() if name != "attempts"}
    if "error" in told:
        told["error"] = _error(told["error"])
    write_record(told)
    rows = [entry for entry in attempts or () if isinstance(entry, dict)]
    if rows:
        write_line("")
        write_table(_ATTEMPT_COLUMNS, [_attempt_row(entry) for entry in rows])


def _attempt_row(attempt: Json) -> list[Any]:
    return [
        _error(attempt.get(column)) if column == "error" else attempt.get(column)
        for column in _ATTEMPT_COLUMNS
    ]


def _outcome(run: Mapping[str, Any]) -> Any:
    """The reason and the details: the error, the result or the reason, and the note on it."""
    error = run.get("error") or run.get("error_kind")
    outcome = _error(error) or run.get("result") or run.get("reason")
    settled, note = run.get("settled"), run.get("note")
    more = ", ".join(printable(each) for each in (settled, note) if each)
    if not more:
        return outcome
    return f"{printable(outcome)} ({more})" if outcome else more


def _error(error: Any) -> Any:
    return f"{error.get('kind')}: {error.get('message')}" if isinstance(error, dict) else error
