"""Options of `jobs create` and `jobs change`, and the request body they make."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, make_dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carillon.cli.inputs import (
    exception_forms,
    parse_json,
    payload_value,
    read_json,
    schedule_form,
    target_form,
)
from carillon.cli.options import tags_of
from carillon.cli.options_table import OPTIONS
from carillon.domain.spec.options import JobOption
from carillon.errors import InvalidFieldError

_TYPES: Mapping[str, Any] = {
    "text": str, "int": int, "float": float, "bool": bool, "list": list[str],
}  # fmt: skip
_target = partial(typer.Option, rich_help_panel="What is called")


def typer_option(path: str) -> Any:
    """Typer's form of the option for this member of a job."""
    return _info(next(option for option in OPTIONS if option.path == path))


def _info(option: JobOption) -> Any:
    panel = option.panel or None
    flag = option.flag
    if option.kind == "bool":
        flag += f"/--no-{flag.removeprefix('--')}"
    return typer.Option(
        flag, help=option.help, rich_help_panel=panel, metavar=option.metavar, show_default=False
    )


@dataclass(frozen=True)
class _Shortcuts:
    """Options that are not one member each."""

    task: Annotated[str | None, _target(help="Call this registered Python task ...")] = None
    webhook: Annotated[str | None, _target(help="... or POST to this HTTPS URL ...")] = None
    file: Annotated[
        str | None,
        typer.Option(help="The request's body as a JSON file, or - for stdin; options go over it."),
    ] = None


if TYPE_CHECKING:
    JobOptions = _Shortcuts
else:
    JobOptions = make_dataclass(
        "JobOptions",
        [
            (each.parameter, Annotated[_TYPES[each.kind] | None, _info(each)], field(default=None))
            for each in OPTIONS
        ],
        bases=(_Shortcuts,),
        frozen=True,
    )


def refuse_contradictions(options: JobOptions) -> None:
    """Raises typer.BadParameter for options that exclude each other."""
    given = _given(options)
    if sum(target is not None for target in (options.task, options.webhook, given["target"])) > 1:
        raise typer.BadParameter("give one of --task, --webhook and --target")
    if options.file == "-" and given["payload"] == "@-":
        raise typer.BadParameter("--file - and --payload @- cannot both read stdin")


def is_empty(options: JobOptions) -> bool:
    """True if no option was given; lists that were not may be empty, however typer calls them."""
    return all(value in (None, []) for value in asdict(options).values())


def job_body(options: JobOptions) -> dict[str, Any]:
    """The body: the file's, with the options over it.

    The API judges what is missing or not allowed. Raises InvalidFieldError.
    """
    body = {} if options.file is None else read_json(options.file, "file")
    if not isinstance(body, dict):
        raise InvalidFieldError("file", "must hold one JSON object, the request's body")
    if options.task is not None:
        body["target"] = {"type": "task", "name": options.task}
    if options.webhook is not None:
        body["target"] = {"type": "webhook", "url": options.webhook}
    for path, value in _given(options).items():
        if value not in (None, []):
            _put(body, path.split("."), _READ[path](value) if path in _READ else value)
    return body


def _given(options: JobOptions) -> dict[str, Any]:
    return {option.path: getattr(options, option.parameter) for option in OPTIONS}


def _put(body: dict[str, Any], path: list[str], value: Any) -> None:
    """Put a value into an object of the body, over its members; tags go in one by one."""
    member, *rest = path
    kept = body.get(member)
    kept = dict(kept) if isinstance(kept, dict) else {}
    if rest:
        _put(kept, rest, value)
        value = kept
    elif member == "tags":
        value = kept | value
    body[member] = value


def _schedules(texts: list[str]) -> Any:
    forms = [schedule_form(text) for text in texts]
    return forms[0] if len(forms) == 1 else forms


def _concurrency(text: str) -> dict[str, Any]:
    key, equals, limit = text.rpartition("=")
    if not equals or not key:
        raise InvalidFieldError("concurrency", f"{text!r} is no KEY=LIMIT such as database=2")
    return {"key": key, "limit": _whole_number(limit, "concurrency.limit")}


def _after(text: str) -> Any:
    """A name may have a colon, too: what is behind the last one counts only if it is an end."""
    name, _, when = text.rpartition(":")
    if name and when in ("succeeded", "failed", "finished"):
        return {"job": name, "when": when}
    return parse_json(text, "after") if text.lstrip().startswith("{") else text


def _rate(text: str) -> dict[str, Any]:
    key, equals, paced = text.rpartition("=")
    limit, slash, per = paced.partition("/")
    if not slash or not per or (equals and not key):
        message = f"{text!r} is no LIMIT/PER or KEY=LIMIT/PER such as supplier=60/1m"
        raise InvalidFieldError("rate", message)
    return {"limit": _whole_number(limit, "rate.limit"), "per": per, "key": key}


def _whole_number(text: str, field: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidFieldError(field, f"{text!r} is no whole number") from error


_READ: Mapping[str, Callable[[Any], Any]] = {
    "schedule": _schedules,
    "except": lambda texts: list(exception_forms(texts)),
    "target": lambda text: target_form(text, "target"),
    "on_success": lambda text: target_form(text, "on_success"),
    "on_failure": lambda text: target_form(text, "on_failure"),
    "payload": payload_value,
    "after": _after,
    "concurrency": _concurrency,
    "rate": _rate,
    "retry.retry_on": list,
    "tags": tags_of,
    "events": list,
}
"""The conversions of an option's text for members that are more than text."""
