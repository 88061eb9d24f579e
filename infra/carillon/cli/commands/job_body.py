"""From the options of `jobs create` and `change` to the body of their requests."""

from dataclasses import asdict
from typing import Any

import typer

from carillon.cli.commands.job_options import JobOptions
from carillon.cli.inputs import exception_forms, payload_value, read_json, schedule_form
from carillon.cli.options import tags_of
from carillon.cli.target_text import target_form
from carillon.errors import InvalidFieldError

_COPIED = (
    "name", "timezone", "start_at", "end_at", "max_runs", "on_complete", "window", "template",
    "timeout_seconds", "priority", "overlap", "tolerance", "catch_up", "grace",
    "pause_after_failures", "expect_within", "parent",
)  # fmt: skip


def refuse_contradictions(options: JobOptions) -> None:
    """Raises typer.BadParameter for options that cannot stand together."""
    targets = (options.task, options.webhook, options.target)
    if sum(target is not None for target in targets) > 1:
        raise typer.BadParameter("give one of --task, --webhook and --target")
    if options.file == "-" and options.payload == "@-":
        raise typer.BadParameter("--file - and --payload @- cannot both read stdin")


def is_empty(options: JobOptions) -> bool:
    """Whether no option was given; lists that were not may be empty, however typer calls them."""
    return all(value in (None, []) for value in asdict(options).values())


def job_body(options: JobOptions) -> dict[str, Any]:
    """The body: what the file says, and the options over it.

    What is missing or not allowed is the API's to say. Raises InvalidFieldError.
    """
    body = {} if options.file is None else read_json(options.file, "file")
    if not isinstance(body, dict):
        raise InvalidFieldError("file", "must hold one JSON object, the request's body")
    for member in _COPIED:
        value = getattr(options, member)
        if value is not None:
            body[member] = value
    _put_schedule(body, options)
    _put_targets(body, options)
    _put_retry(body, options)
    if options.concurrency is not None:
        body["concurrency"] = _concurrency(options.concurrency)
    if options.rate is not None:
        body["rate"] = _rate(options.rate)
    if options.tags:
        _merge(body, "tags", **tags_of(options.tags))
    if options.events:
        body["events"] = list(options.events)
    return body


def _put_schedule(body: dict[str, Any], options: JobOptions) -> None:
    if options.schedule:
        forms = [schedule_form(text) for text in options.schedule]
        body["schedule"] = forms[0] if len(forms) == 1 else forms
    if options.exceptions:
        body["except"] = list(exception_forms(options.exceptions))
    _merge(body, "calendar", name=options.calendar, rule=options.calendar_rule)
    _merge(body, "dst", gap=options.dst_gap, fold=options.dst_fold)


def _put_targets(body: dict[str, Any], options: JobOptions) -> None:
    if options.task is not None:
        body["target"] = {"type": "task", "name": options.task}
    if options.webhook is not None:
        body["target"] = {"type": "webhook", "url": options.webhook}
    for member in ("target", "on_success", "on_failure"):
        text = getattr(options, member)
        if text is not None:
            body[member] = target_form(text, member)
    if options.payload is not None:
        body["payload"] = payload_value(options.payload)


def _put_retry(body: dict[str, Any], options: JobOptions) -> None:
    backoff: dict[str, Any] = {}
    kept = body.get("retry")
    if isinstance(kept, dict) and isinstance(kept.get("backoff"), dict):
        backoff["backoff"] = kept["backoff"]
    _merge(
        backoff,
        "backoff",
        type=options.backoff,
        base_seconds=options.backoff_base,
        factor=options.backoff_factor,
        cap_seconds=options.backoff_cap,
    )
    _merge(
        body,
        "retry",
        max_attempts=options.max_attempts,
        retry_on=options.retry_on or None,
        **backoff,
    )


def _merge(body: dict[str, Any], member: str, **given: Any) -> None:
    """Put what was given into an object of the body, over what stands there."""
    values = {name: value for name, value in given.items() if value is not None}
    if values:
        kept = body.get(member)
        body[member] = {**(kept if isinstance(kept, dict) else {}), **values}


def _concurrency(text: str) -> dict[str, Any]:
    key, equals, limit = text.rpartition("=")
    if not equals or not key:
        raise InvalidFieldError("concurrency", f"{text!r} is no KEY=LIMIT such as database=2")
    return {"key": key, "limit": _whole_number(limit, "concurrency.limit")}


def _rate(text: str) -> dict[str, Any]:
    limit, slash, rest = text.partition("/")
    per, at, key = rest.partition("@")
    if not slash or not per or (at and not key):
        message = f"{text!r} is no LIMIT/PER or LIMIT/PER@KEY such as 60/1m@supplier"
        raise InvalidFieldError("rate", message)
    return {"limit": _whole_number(limit, "rate.limit"), "per": per, "key": key}


def _whole_number(text: str, field: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidFieldError(field, f"{text!r} is no whole number") from error
