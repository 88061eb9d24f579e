"""`carillon notifications ...`: messages about what goes wrong; put, list, show, delete, test."""

from typing import Annotated, Any

import typer

from carillon.cli.client import notification_path
from carillon.cli.exits import CliError
from carillon.cli.inputs import read_json
from carillon.cli.options import Commands, YesOption, confirm, tags_of
from carillon.cli.output import write_answer, write_done, write_items
from carillon.cli.session import SessionOptions
from carillon.errors import InvalidFieldError

notifications = Commands(
    help="Messages to Slack, e-mail, topics and webhooks about what goes wrong.",
    no_args_is_help=True,
)

_COLUMNS = ("name", "on", "jobs", "to", "at_most_every", "last", "error")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
FileOption = Annotated[
    str | None,
    typer.Option(help="The body of PUT /notifications/NAME as a JSON file, or - for stdin."),
]
OnOption = Annotated[
    list[str] | None,
    typer.Option("--on", help="An event, as run.dead; repeatable.", show_default=False),
]
JobsOption = Annotated[
    str | None, typer.Option("--jobs", help="A job's name, or the beginning of names and *.")
]
TagOption = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Only jobs with KEY=VALUE; repeatable.", show_default=False),
]
EveryOption = Annotated[
    str | None, typer.Option("--at-most-every", help="The time between two messages, as 15m.")
]
SlackOption = Annotated[
    str | None, typer.Option("--slack", help="The secret that holds Slack's webhook URL.")
]
WebhookOption = Annotated[str | None, typer.Option("--webhook", help="A URL that is called.")]
TopicOption = Annotated[str | None, typer.Option("--sns", help="The ARN of an SNS topic.")]
EmailOption = Annotated[str | None, typer.Option("--email", help="An e-mail address.")]


@notifications.command()
def put(
    name: NameArgument,
    *,
    file: FileOption = None,
    on: OnOption = None,
    jobs: JobsOption = None,
    tag: TagOption = None,
    at_most_every: EveryOption = None,
    slack: SlackOption = None,
    webhook: WebhookOption = None,
    sns: TopicOption = None,
    email: EmailOption = None,
    session: SessionOptions,
) -> None:
    """Create a notification, or replace it whole; options go over the file."""
    channels = {
        "slack": {"url": {"secret": slack}} if slack else None,
        "webhook": {"url": webhook} if webhook else None,
        "sns": {"topic_arn": sns} if sns else None,
        "email": {"address": email} if email else None,
    }
    given = [{"type": kind, **body} for kind, body in channels.items() if body]
    if len(given) > 1:
        raise typer.BadParameter("give one of --slack, --webhook, --sns and --email")
    try:
        body = _body(file, on, jobs, tag, at_most_every, given)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    if not body:
        raise typer.BadParameter("give --file, or --on and a channel")
    answer = session.connect().put(notification_path(name), body)
    write_answer(answer, session.is_json)


@notifications.command(name="list")
def list_notifications(*, session: SessionOptions) -> None:
    """List your notifications and their last deliveries; with --json, an array."""
    found = list(session.connect().items("/notifications", None))
    write_items(found, _COLUMNS, session.is_json, _cell)


@notifications.command()
def show(name: NameArgument, *, session: SessionOptions) -> None:
    """Show one notification, whole."""
    write_answer(session.connect().get(notification_path(name)), session.is_json)


@notifications.command()
def test(name: NameArgument, *, session: SessionOptions) -> None:
    """Send a test message; `show` then has its delivery."""
    answer = session.connect().post(notification_path(name, "/test"))
    write_done(f"a test is on its way: {answer['run_id']}", answer, session.is_json)


@notifications.command()
def delete(name: NameArgument, *, yes: YesOption = False, session: SessionOptions) -> None:
    """Delete a notification."""
    api = session.connect()
    path = notification_path(name)
    confirm(f"Delete the notification {name} for good?", yes)
    api.delete(path)
    write_done(f"deleted {name}", {"name": name, "state": "deleted"}, session.is_json)


def _body(
    file: str | None,
    on: list[str] | None,
    jobs: str | None,
    tags: list[str] | None,
    at_most_every: str | None,
    channels: list[dict[str, Any]],
) -> dict[str, Any]:
    """The body of PUT; the API judges what is not allowed in it. Raises InvalidFieldError."""
    body = {} if file is None else read_json(file, "file")
    if not isinstance(body, dict):
        raise InvalidFieldError("file", "must hold one JSON object, the body of PUT")
    given = {
        "on": on,
        "jobs": jobs,
        "tags": tags_of(tags or ()),
        "at_most_every": at_most_every,
        "to": channels[0] if channels else None,
    }
    return {**body, **{each: value for each, value in given.items() if value not in (None, [], {})}}


def _cell(notification: dict[str, Any], column: str) -> Any:
    last = notification.get("last_delivery") or {}
    match column:
        case "on":
            return " ".join(notification["on"])
        case "to":
            return notification["to"]["type"]
        case "last":
            return last.get("status")
        case "error":
            return last.get("error_kind")
    return notification.get(column)
