"""`carillon dead-letters ...`: list them, run them again, or take them off the list."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from carillon.cli.client import ApiClient, dead_letter_path
from carillon.cli.commands.runs.shown import run_cell, write_run
from carillon.cli.completing import job_names
from carillon.cli.exits import CliError
from carillon.cli.options import (
    Commands,
    LengthOptions,
    SpanOptions,
    YesOption,
    confirm,
    confirm_many,
)
from carillon.cli.output import write_done, write_items, write_json
from carillon.cli.polling import finish
from carillon.cli.session import IdempotencyKeyOption, SessionOptions

dead_letters = Commands(
    help="Runs that failed for good: list, redrive, discard.", no_args_is_help=True
)

_COLUMNS = ("job_name", "fire_at", "finished_at", "attempt", "outcome", "reason", "run_id")
_MOST_NAMES = 2_000
_LEAST_NEEDED = ("finished_at", "attempt", "reason")

RunIdArgument = Annotated[str | None, typer.Argument(metavar="RUN_ID", show_default=False)]


@dataclass(frozen=True, slots=True)
class DeadLetterFilter(SpanOptions):
    """The options that choose dead letters."""

    job: Annotated[
        str | None,
        typer.Option(
            metavar="JOB", help="Of this job: name or id.", show_default=False,
            autocompletion=job_names,
        ),
    ] = None  # fmt: skip
    reason: Annotated[
        str | None,
        typer.Option(
            help="refused, exhausted, executor_died, never_started or unreadable.",
            show_default=False,
        ),
    ] = None
    error: Annotated[
        str | None, typer.Option(help="The kind of error, as http_503.", show_default=False)
    ] = None

    @property
    def members(self) -> dict[str, str | int]:
        """As the API takes them, in a query or a body; raises CliError."""
        given = {"job_id": self.job, "reason": self.reason, "error": self.error}
        return {name: text for name, text in given.items() if text is not None} | self.span


@dataclass(frozen=True, slots=True)
class ManyOptions(DeadLetterFilter):
    """The options that choose several dead letters, and of the operation on them."""

    every: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False
    per_minute: Annotated[
        int | None, typer.Option(help="The most in a minute.", min=1, show_default="the API's")
    ] = None
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Of many: show progress until all are done.")
    ] = True
    idempotency_key: IdempotencyKeyOption = None

    def body(self, run_id: str | None) -> dict[str, Any]:
        """The filter for several dead letters, empty where one is named.

        Raises typer.BadParameter unless the choice is clear, and for options without effect.
        """
        members: dict[str, Any] = dict(self.members)
        if sum((run_id is not None, bool(members), self.every)) != 1:
            raise typer.BadParameter(
                "give a RUN_ID, or --job, --reason, --error, --from or --to, or --all"
            )
        if run_id is not None and (self.per_minute, self.idempotency_key) != (None, None):
            raise typer.BadParameter(
                "--per-minute and --idempotency-key are for many: one is redriven or discarded "
                "once, however often it is requested"
            )
        if self.every:
            members["all"] = True
        if self.per_minute is not None:
            members["per_minute"] = self.per_minute
        return members


@dead_letters.command(name="list")
def list_dead_letters(
    *, chosen: DeadLetterFilter, length: LengthOptions, session: SessionOptions
) -> None:
    """List runs that failed for good, newest first; with --json, an array."""
    api = session.connect()
    query = _with_job_id(api, chosen.members)
    found = list(api.items("/dead-letters", length.most, query))
    if session.is_json:
        write_json(found)
        return
    names = names_of(api, {str(run.get("job_id")) for run in found})
    rows = [run | {"job_name": names.get(str(run.get("job_id")))} for run in found]
    write_items(rows, _COLUMNS, False, run_cell, _LEAST_NEEDED)


@dead_letters.command()
def redrive(
    run_id: RunIdArgument = None,
    *,
    many: ManyOptions,
    session: SessionOptions,
) -> None:
    """Run a dead letter again, or all that the options choose, throttled.

    Shows the new run, or the operation.
    """
    body = many.body(run_id)
    api = session.connect()
    as_json = session.is_json
    if run_id is not None:
        write_run(api.post(dead_letter_path(run_id, "/redrive")), as_json)
        return
    body = _with_job_id(api, body)
    operation = api.post_once("/dead-letters/redrive", body, many.idempotency_key)
    finish(api, operation, many.wait, as_json)


@dead_letters.command()
def discard(
    run_id: RunIdArgument = None,
    *,
    many: ManyOptions,
    yes: YesOption = False,
    session: SessionOptions,
) -> None:
    """Take a dead letter off the list, or all that the options choose; histories keep them."""
    body = many.body(run_id)
    api = session.connect()
    as_json = session.is_json
    if run_id is not None:
        path = dead_letter_path(run_id)
        confirm(f"Discard {run_id} for good?", yes)
        api.delete(path)
        write_done(f"discarded {run_id}", {"run_id": run_id, "settled": "discarded"}, as_json)
        return
    confirm_many("Discard all dead letters that the options choose for good?", yes)
    body = _with_job_id(api, body)
    operation = api.post_once("/dead-letters/discard", body, many.idempotency_key)
    finish(api, operation, many.wait, as_json)


def names_of(api: ApiClient, job_ids: set[str]) -> dict[str, str]:
    """The names of jobs by their ids, as far as the first 2,000 jobs have them. They are beside
    the point: none where they cannot be had."""
    names: dict[str, str] = {}
    with suppress(CliError):
        for job in api.items("/jobs", _MOST_NAMES, {"view": "summary"}) if job_ids else ():
            if job.get("job_id") in job_ids:
                names[job["job_id"]] = job["name"]
                if len(names) == len(job_ids):
                    break
    return names


def _with_job_id(api: ApiClient, members: dict[str, Any]) -> dict[str, Any]:
    """The members with the id of the job that they name."""
    named = members.get("job_id")
    return members if named is None else {**members, "job_id": api.job_id(named)}
