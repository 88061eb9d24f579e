"""`carillon import`: other schedulers' jobs as a manifest, with a report of what is lost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.inputs import read_text
from carillon.cli.options import Commands
from carillon.cli.output import write_error, write_json
from carillon.cli.session import OutputOptions
from carillon.errors import InvalidFieldError

if TYPE_CHECKING:
    from carillon.importers.entries import Entry
    from carillon.importers.stubs import Stubs

imports = Commands(
    name="import",
    help="Write a manifest of another scheduler's jobs; nothing is created. What does not carry "
    "over is told on stderr, entry by entry; with --json, both are one object.",
    no_args_is_help=True,
)
_UTC = "UTC"


@dataclass(frozen=True, slots=True)
class ImportOptions(OutputOptions):
    """The options of every source."""

    manifest: Annotated[str, typer.Option(help="The manifest's name.")] = "imported"


@dataclass(frozen=True, slots=True)
class StubOptions:
    """The options of sources that run what a deployment cannot."""

    task_prefix: Annotated[
        str, typer.Option(help="Put before the names of tasks, as 'billing.'.")
    ] = ""
    webhook: Annotated[
        str | None, typer.Option(help="Call this URL instead of tasks; it gets the task's name.")
    ] = None
    tasks: Annotated[
        Path | None, typer.Option(help="Write the tasks, to be filled in, to this new module.")
    ] = None

    @property
    def stubs(self) -> "Stubs":
        from carillon.importers.stubs import Stubs

        if self.tasks is not None and self.webhook is not None:
            raise CliError.bad_field("tasks", "none are to be written where a webhook is called")
        if self.tasks is not None and self.tasks.exists():
            raise CliError.bad_field("tasks", f"{self.tasks} exists: name a new file")
        return Stubs(self.task_prefix, self.webhook)


ZoneOption = Annotated[
    str | None,
    typer.Option(help="The zone of times that state none.", show_default="UTC"),
]


@imports.command()
def eventbridge(
    *,
    group: Annotated[str | None, typer.Option(help="This schedule group only.")] = None,
    region: Annotated[
        str | None, typer.Option(help="The AWS region.", show_default="of the credentials")
    ] = None,
    options: ImportOptions,
) -> None:
    """Import the schedules of EventBridge Scheduler, with the AWS credentials at hand."""
    from botocore.exceptions import BotoCoreError, ClientError

    from carillon.importers.eventbridge.account import eventbridge_entries
    from carillon.importers.eventbridge.schedules import remarks_on

    entries: list[Entry] = []
    try:
        with progress_bar() as show:
            for entry in eventbridge_entries(group, region):
                entries.append(entry)
                show(f"{len(entries):,} schedules")
    except (BotoCoreError, ClientError) as error:
        raise CliError.local(
            ExitCode.NOT_ALLOWED, "The schedules cannot be read", str(error)
        ) from error
    _write(entries, remarks_on(entries), options)


@imports.command()
def crontab(
    file: Annotated[str, typer.Argument(help="A crontab; - for stdin.", show_default=False)],
    *,
    timezone: ZoneOption = None,
    user_column: Annotated[
        bool, typer.Option("--user-column", help="A sixth field names the user: /etc/crontab.")
    ] = False,
    tasks: StubOptions,
    options: ImportOptions,
) -> None:
    """Import a crontab; a comment above a line names its job, CRON_TZ sets the zone."""
    from carillon.importers.crontab import CrontabOptions, crontab_entries

    settings = CrontabOptions(timezone or _UTC, user_column, tasks.stubs)
    entries = list(crontab_entries(_text(file), settings))
    _write(entries, _zone_remarks(entries, timezone), options, tasks.tasks)


@imports.command()
def k8s(
    files: Annotated[
        list[str], typer.Argument(help="Manifests with CronJobs; - for stdin.", show_default=False)
    ],
    *,
    timezone: ZoneOption = None,
    tasks: StubOptions,
    options: ImportOptions,
) -> None:
    """Import the CronJobs of Kubernetes, as `kubectl get cronjobs -o yaml` writes them."""
    from carillon.importers.kubernetes import KubernetesOptions, kubernetes_entries

    settings = KubernetesOptions(timezone or _UTC, tasks.stubs)
    try:
        entries = [
            entry for file in files for entry in kubernetes_entries(file, _text(file), settings)
        ]
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    _write(entries, _zone_remarks(entries, timezone), options, tasks.tasks)


@imports.command()
def celery(
    conf: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:NAME",
            help="A Celery app, its settings, or the mapping; the module is imported.",
            show_default=False,
        ),
    ],
    *,
    tasks: StubOptions,
    options: ImportOptions,
) -> None:
    """Import the beat_schedule of a Celery app."""
    from carillon.importers.celery import celery_entries, schedule_of
    from carillon.importers.loading import object_of

    try:
        schedule = schedule_of(object_of(conf, "conf"), conf)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    _write(celery_entries(schedule, tasks.stubs), [], options, tasks.tasks)


@imports.command()
def apscheduler(
    source: Annotated[
        str,
        typer.Argument(
            metavar="URL|MODULE:NAME",
            help="The database of a SQLAlchemy job store, or a scheduler that is not started.",
            show_default=False,
        ),
    ],
    *,
    table: Annotated[str, typer.Option(help="The table of jobs.")] = "apscheduler_jobs",
    tasks: StubOptions,
    options: ImportOptions,
) -> None:
    """Import the jobs of APScheduler 3; a database is only read."""
    from carillon.importers.apscheduler.stores import database_entries, scheduler_entries

    remarks: list[str] = []
    try:
        if "://" in source:
            entries = list(database_entries(source, table, tasks.stubs))
        else:
            entries, remarks = scheduler_entries(source, tasks.stubs)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    _write(entries, remarks, options, tasks.tasks)


def _zone_remarks(entries: "Iterable[Entry]", timezone: str | None) -> list[str]:
    """The zone that was assumed, where it was."""
    bodies = (entry.body for entry in entries if entry.body)
    if timezone or all("timezone" in body for body in bodies):
        return []
    return ["Times that state no zone are taken as UTC: --timezone names another."]


def _text(file: str) -> str:
    try:
        return read_text(file, "file")
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error


def _write(
    entries: "Iterable[Entry]",
    remarks: Sequence[str],
    options: ImportOptions,
    tasks: Path | None = None,
) -> None:
    """The manifest on stdout, the report on stderr, tasks to their file."""
    from carillon.clock import SystemClock
    from carillon.importers.document import manifest_text, report_text
    from carillon.importers.importing import imported
    from carillon.importers.stubs import TIME_LIMIT, skeleton
    from carillon.manifest.manifest import Manifest, ManifestRefusedError

    entries = list(entries)
    if not entries:
        raise CliError.local(ExitCode.BAD_INPUT, "Nothing to import", "the source has no entry")
    limits = [TIME_LIMIT] if any(entry.stub for entry in entries) else []
    found = imported(options.manifest, entries, SystemClock().now(), [*remarks, *limits])
    try:
        Manifest.of(found.document)
    except ManifestRefusedError as error:
        path, message = error.errors[0]
        raise CliError.bad_field(".".join(path), message) from error
    if tasks is not None and found.jobs:  # first of all: it may fail
        try:
            tasks.write_text(skeleton(found.stubs), encoding="utf-8")
        except OSError as error:
            message = f"{tasks} cannot be written: {error.strerror or error}"
            raise CliError.bad_field("tasks", message) from error
    if options.is_json:
        write_json(found.as_json())
    else:
        write_error(report_text(found))
        if found.jobs:
            typer.echo(manifest_text(found), nl=False)
    if not found.jobs:
        raise CliError.local(ExitCode.BAD_INPUT, "Nothing to import", "every entry is left out")
