"""`carillon simulate`: a manifest in virtual time, with no API and no deployment."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO
from zoneinfo import ZoneInfo

import typer

from carillon.cli.commands.manifests.files import FilesArgument, read_manifest, refusal
from carillon.cli.commands.simulation.report import write_run, write_summary
from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import parse_instant, span_of, utc_text
from carillon.cli.output import write_json
from carillon.cli.polling import Interrupts
from carillon.cli.session import JsonOption, invocation_of
from carillon.errors import InvalidFieldError
from carillon.manifest.manifest import ManifestRefusedError
from carillon.schedules import parse_duration

if TYPE_CHECKING:
    from carillon.domain.run import Run
    from carillon.simulation.run import Simulation

_OUT_OF_SERVICE = "out-of-service"

FromOption = Annotated[
    str | None,
    typer.Option("--from", help="ISO 8601; UTC without an offset.", show_default="next minute"),
]
ForOption = Annotated[str, typer.Option("--for", help="How long: 24h, 30d, PT90M.")]
FaultsOption = Annotated[
    str,
    typer.Option(help="Probabilities: tick_missing=0.05,target_fails=0.1", show_default=False),
]
OutOfServiceOption = Annotated[
    list[str] | None,
    typer.Option(
        help="`ticks` or `executors`, and a span: 'ticks 2026-12-01T03:00/PT20M'. Repeatable.",
        show_default=False,
    ),
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same run.", min=0)]
FirstOption = Annotated[int, typer.Option(help="Fire times to list of each job.", min=0, max=100)]
SpeedOption = Annotated[
    float | None,
    typer.Option(help="Show runs as they happen, this many virtual seconds a second.", min=0.01),
]
RunsOption = Annotated[
    Path | None, typer.Option(help="Write each run that has ended to this file, as JSON Lines.")
]


def simulate(
    ctx: typer.Context,
    files: FilesArgument,
    *,
    from_at: FromOption = None,
    span: ForOption = "24h",
    faults: FaultsOption = "",
    out_of_service: OutOfServiceOption = None,
    seed: SeedOption = 0,
    first: FirstOption = 3,
    speed: SpeedOption = None,
    runs: RunsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a manifest through the real scheduler in virtual time, and sum up the results.

    Nothing is deployed or called: targets are simulated. Ctrl-C ends with the summary so far.
    """
    is_json = invocation_of(ctx).as_json
    if is_json and speed is not None:
        raise typer.BadParameter("--speed shows runs to people: not with --json")
    try:
        begin, until = span_of(from_at, span)
        simulation = _simulation(files, begin, until, seed, faults, out_of_service or (), first)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    interrupts, is_live = Interrupts(), speed is not None
    with _runs_file(runs) as lines, interrupts:
        told = _ToldRuns(simulation, lines, is_live=is_live)
        _play(simulation, speed, lambda: told.tell() and interrupts.go_on())
        told.tell()
    summary = {**simulation.summary(), "is_interrupted": interrupts.is_interrupted}
    if is_json:
        write_json(summary)
    else:
        write_summary(summary)
    if summary["crashes"]:
        detail = "; ".join(summary["crashes"])
        raise CliError.local(ExitCode.UNEXPECTED, "Carillon's own code failed", detail)
    if interrupts.is_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def _play(simulation: "Simulation", speed: float | None, go_on: Callable[[], bool]) -> None:
    from carillon.cli.commands.simulation.live import fast_forward, replay

    if speed is not None:
        # Its runs are shown as they happen: they would stand in a bar.
        replay(simulation, speed, go_on)
        return
    begin, until = simulation.now, simulation.plan.until_at
    with progress_bar() as show:

        def go_on_and_show() -> bool:
            passed = min((simulation.now - begin) / (until - begin), 1.0)
            show(utc_text(simulation.now.replace(microsecond=0)), passed, 1.0)
            return go_on()

        fast_forward(simulation, go_on_and_show)


def _simulation(
    files: Sequence[str],
    begin: datetime,
    until: datetime,
    seed: int,
    faults: str,
    out_of_service: Sequence[str],
    first: int,
) -> "Simulation":
    """Raises InvalidFieldError, and CliError for faults of the manifest."""
    # Imported here: no other command needs the scheduler's own code.
    from carillon.simulation.faults import Faults
    from carillon.simulation.run import Plan, Simulation
    from carillon.simulation.workload import Workload

    down = [_outage(text, begin, until) for text in out_of_service]
    plan = Plan(
        begin,
        until,
        seed,
        Faults.parse(faults),
        [span for what, span in down if what == "ticks"],
        [span for what, span in down if what == "executors"],
        first,
    )
    manifest = read_manifest(files)
    try:
        return Simulation(Workload.of(manifest), plan)
    except ManifestRefusedError as error:
        raise refusal(manifest, error.errors) from error


def _outage(
    text: str, from_at: datetime, until_at: datetime
) -> tuple[str, tuple[datetime, datetime]]:
    """The part that is out of service, and its span; raises InvalidFieldError."""
    what, _, span = text.strip().partition(" ")
    begin, slash, end = span.strip().partition("/")
    if what not in ("ticks", "executors") or not slash:
        message = f"{text!r} is not of the form 'ticks 2026-12-01T03:00/PT20M'"
        raise InvalidFieldError(_OUT_OF_SERVICE, message)
    began_at = parse_instant(begin, ZoneInfo("UTC"), _OUT_OF_SERVICE)
    try:
        until = began_at + timedelta(seconds=parse_duration(end))
    except InvalidFieldError:
        until = parse_instant(end, ZoneInfo("UTC"), _OUT_OF_SERVICE)
    if until <= began_at:
        raise InvalidFieldError(_OUT_OF_SERVICE, f"{text!r} ends before it begins")
    if until <= from_at or began_at >= until_at:
        simulated = f"{utc_text(from_at)} to {utc_text(until_at)}"
        raise InvalidFieldError(_OUT_OF_SERVICE, f"{text!r} lies outside of {simulated}")
    return what, (began_at, until)


@contextmanager
def _runs_file(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    with _writing(path):
        lines = path.open("w", encoding="utf-8")
    try:
        yield lines
    finally:
        with _writing(path):
            lines.close()


@contextmanager
def _writing(path: object) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CliError.bad_field("runs", f"{path} cannot be written: {error}") from error


class _ToldRuns:
    """Each run that ends is written to the file, or shown, or both."""

    def __init__(self, simulation: "Simulation", lines: TextIO | None, *, is_live: bool) -> None:
        self._lines = lines
        self._is_live = is_live
        self._records: list[dict[str, Any]] = []
        if lines is not None or is_live:
            simulation.tally.on_ended = self._ended

    def tell(self) -> bool:
        """Show those that have ended since the last time; always true."""
        records, self._records = self._records, []
        for record in records:
            if self._lines is not None:
                with _writing(self._lines.name):
                    self._lines.write(json.dumps(record) + "\n")
            if self._is_live:
                write_run(record)
        if records and self._is_live:
            sys.stdout.flush()  # a pipe is to get them in time, too
        return True

    def _ended(self, run: "Run", job_name: str) -> None:
        # Kept: a full disk or a closed pipe is no failure of the run that is just ending.
        self._records.append(_record(run, job_name))


def _record(run: "Run", job_name: str) -> dict[str, Any]:
    """A run that has ended, named as the API names its members."""

    def text(instant: datetime | None) -> str | None:
        return None if instant is None else utc_text(instant)

    return {
        "job_name": job_name,
        "run_id": run.key.run_id,
        "kind": run.key.kind.value,
        "fire_at": text(run.key.fire_at),
        "status": run.status.value,
        "reason": run.reason,
        "attempt": run.attempt,
        "started_at": text(run.started_at),
        "finished_at": text(run.finished_at),
        "lag_seconds": run.lag_seconds,
        "covers_count": run.covers_count,
    }
