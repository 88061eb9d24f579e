"""`carillon admin smoke`: drives a deployed stack and reports the results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from carillon.cli.commands.admin.stores import AdminOptions, open_unchecked
from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import printable, write_json, write_line
from carillon.cli.session import SessionOptions
from carillon.client.sign_in import is_loopback
from carillon.smoke.judging import P99_SECONDS

if TYPE_CHECKING:
    from carillon.local.receiver import Receiver
    from carillon.settings import Settings
    from carillon.smoke.probes import Probe
    from carillon.smoke.smoke import Result

QuickOption = Annotated[bool, typer.Option("--quick", help="Only what takes a minute and a half.")]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="The ARN of an AWS resource to call that jobs may call, or a target in JSON; may be "
        "repeated.",
    ),
]
ListenOption = Annotated[
    int, typer.Option(help="Port of this machine that --public-url leads to.", show_default=False)
]
PublicUrlOption = Annotated[
    str, typer.Option(help="An https address that leads to --listen, to check signatures by.")
]
MostLagOption = Annotated[
    float,
    typer.Option(
        help="Seconds of lag that 99 of 100 starts of an `every` job may not exceed; half of them "
        "may not exceed a third of it."
    ),
]


def smoke(
    *,
    quick: QuickOption = False,
    target: TargetOption = None,
    listen: ListenOption = 0,
    public_url: PublicUrlOption = "",
    most_lag: MostLagOption = P99_SECONDS,
    options: AdminOptions,
) -> None:
    """Create jobs of every kind on a deployment, check their runs, and remove them.

    As the signed-in user (CARILLON_API_URL and CARILLON_TOKEN, or `carillon login`), with AWS
    credentials to read the stack. A line for each check with its figure; exit code 1 where one
    does not hold.
    """
    from carillon.clock import SystemClock
    from carillon.smoke.smoke import Result, Smoke

    settings, _ = open_unchecked(options)
    api = SessionOptions(options.ctx).connect()
    clock = SystemClock()
    work = Smoke(api, clock, f"smoke-{clock.now():%Y%m%dT%H%M%S}")
    as_json = options.is_json
    failed = 0
    with _receiver(settings, api.api_url, listen, public_url) as receiver:
        url = public_url or (receiver.url if receiver else "")
        probes = list(_probes(settings, api.api_url, url, target or [], quick, most_lag))
        try:
            for result in _awaited(work.run(probes), len(probes)):
                failed += not result.holds
                _tell(result, as_json)
            if receiver is not None:
                verified = sum(each.verified for each in receiver.deliveries)
                text = f"{verified} of {len(receiver.deliveries)} deliveries verified"
                held = 0 < verified == len(receiver.deliveries)
                failed += not held
                _tell(Result("webhook signature", held, text), as_json)
        finally:
            cleaned = work.clean_up()
            _tell(cleaned, as_json)
    if failed or not cleaned.holds:
        raise typer.Exit(ExitCode.UNEXPECTED)


def _awaited(results: "Iterator[Result]", count: int) -> "Iterator[Result]":
    """The results as they come, under a bar; there may be more of them than probes."""
    with progress_bar() as show:
        show(f"0 of {count} checks", 0, count)
        for done, result in enumerate(results, 1):
            yield result
            show(f"{done} of {max(done, count)} checks", done, max(done, count))


def _probes(
    settings: "Settings",
    api_url: str,
    receiver_url: str,
    arns: Sequence[str],
    quick: bool,
    most_lag: float,
) -> "Iterator[Probe]":
    """The targets of this drive; reports those that it leaves out. Raises CliError for an ARN that
    is none."""
    from carillon.smoke.probes import (
        long_probes,
        quick_probes,
        target_probes,
        untried_types,
        webhook_probe,
    )

    yield from quick_probes(most_lag)
    if receiver_url:
        yield webhook_probe(receiver_url, "POST")
    else:
        _note("webhook signature: not checked without --listen and --public-url")
        yield webhook_probe(f"{api_url}/openapi.json", "GET")
    try:
        yield from target_probes(arns)
    except ValueError as error:
        raise CliError.bad_field("target", str(error)) from error
    for service in untried_types(settings, arns):
        _note(f"targets of {service}: not called without --target, an ARN or JSON")
    if not quick:
        yield from long_probes(datetime.now(UTC), settings, most_lag)


@contextmanager
def _receiver(
    settings: "Settings", api_url: str, port: int, public_url: str
) -> "Iterator[Receiver | None]":
    """The receiver of webhooks, which checks their signatures: on loopback where the deployment is
    on this machine, behind `public_url` elsewhere; None without one."""
    if not public_url and not is_loopback(api_url):
        yield None
        return
    import boto3

    from carillon.local.receiver import Receiver

    def read_secret() -> str:
        arn = settings.webhook_secret_arn
        secrets = boto3.client("secretsmanager")
        return str(secrets.get_secret_value(SecretId=arn)["SecretString"])

    with Receiver(read_secret, port=port) as receiver:
        yield receiver


def _note(text: str) -> None:
    typer.echo(f"      {text}", err=True)


def _tell(result: "Result", as_json: bool) -> None:
    if as_json:
        write_json(asdict(result), compact=True)
    else:
        mark = "ok" if result.holds else "WRONG"
        write_line(printable(f"{mark:<6}{result.check:<24} {result.text}"))
