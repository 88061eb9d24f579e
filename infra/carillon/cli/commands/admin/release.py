"""`carillon admin release`: which release is live, and the switch to another one."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carillon.cli.commands.admin.stores import AdminOptions, outputs_of
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import utc_text
from carillon.cli.output import write_done, write_items

if TYPE_CHECKING:
    from carillon.cdk.releases import Versions

ReleaseArgument = Annotated[
    str, typer.Argument(metavar="[RELEASE]", help="The one to be live.", show_default=False)
]
_COLUMNS = ("release", "published_at", "live")


def release(release: ReleaseArgument = "", *, options: AdminOptions) -> None:
    """List the releases of a deployment, newest first; or make one of them live.

    Every function's alias is switched to its version of that release, with the environment, memory
    and layer that it had: going back, those that send messages first, else those that receive them.
    What has been sent already is received by what is live. Tables, queues, alarms and permissions
    stay as they are. Repeating it does no harm.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from carillon.cdk.releases import switches

    as_json = options.is_json
    try:
        outputs_of(options.stack)
        functions = list(_functions(options.stack))
        if not release:
            write_items(_listed(functions), _COLUMNS, as_json)
            return
        switched = switches(functions, release)
        for name, version in switched:
            _switch(name, version)
    except LookupError as error:
        raise CliError.local(ExitCode.NOT_FOUND, "No such release", str(error)) from error
    except (BotoCoreError, ClientError) as error:
        failed = "Not all functions are switched" if release else "The stack cannot be read"
        detail = f"stack {options.stack}: {error}"
        raise CliError.local(ExitCode.NOT_ALLOWED, failed, detail) from error
    told = {"release": release, "switched": dict(switched)}
    lines = [f"{name}: version {version}" for name, version in switched]
    write_done("\n".join([*lines, f"release {release} is live"]), told, as_json)


def _functions(stack: str) -> "Iterator[Versions]":
    import boto3

    from carillon.cdk.releases import LIVE, Versions
    from carillon.resources import resources_of

    client = boto3.client("lambda")
    for kind, _, name in resources_of(boto3.client("cloudformation"), stack):
        if kind == "AWS::Lambda::Function":
            try:
                live = client.get_alias(FunctionName=name, Name=LIVE)["FunctionVersion"]
            except client.exceptions.ResourceNotFoundException:
                continue  # the console's has no releases
            pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=name)
            versions = (version for page in pages for version in page["Versions"])
            yield Versions.of(name, versions, live)


def _listed(functions: "list[Versions]") -> list[dict[str, Any]]:
    published: dict[str, datetime] = {}
    for each in functions:
        for release, at in each.published_at.items():
            published[release] = min(published.get(release, at), at)
    newest_first = sorted(published, key=published.__getitem__, reverse=True)
    return [
        {
            "release": release,
            "published_at": utc_text(published[release]),
            "live": f"{_live_of(functions, release)} of {len(functions)} functions",
        }
        for release in newest_first
    ]


def _live_of(functions: "list[Versions]", release: str) -> int:
    return sum(each.by_release.get(release) == each.live for each in functions)


def _switch(name: str, version: int) -> None:
    import boto3

    from carillon.cdk.releases import LIVE

    client = boto3.client("lambda")
    client.update_alias(FunctionName=name, Name=LIVE, FunctionVersion=str(version))
