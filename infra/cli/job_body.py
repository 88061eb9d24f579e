"""From the options of `jobs create` to the body of `POST /jobs`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infra.cli.instants import parse_instant, utc_text
from infra.cli.json_input import exception_forms, payload_value, read_json, schedule_form
from shared.errors import InvalidFieldError
from shared.recurrence.zones import load_zone

_COPIED = (
    "name", "timezone", "max_runs", "on_complete", "window", "lane", "catch_up", "timeout_seconds"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options as they were given; None where they were not."""

    file: str | None = None
    name: str | None = None
    schedule: Sequence[str] | None = None
    exceptions: Sequence[str] | None = None
    timezone: str | None = None
    start_at: str | None = None
    end_at: str | None = None
    max_runs: int | None = None
    on_complete: str | None = None
    window: str | None = None
    calendar: str | None = None
    calendar_rule: str | None = None
    dst_gap: str | None = None
    dst_fold: str | None = None
    task: str | None = None
    webhook: str | None = None
    payload: str | None = None
    lane: str | None = None
    catch_up: str | None = None
    max_attempts: int | None = None
    timeout_seconds: int | None = None


def job_body(options: JobOptions) -> dict[str, Any]:
    """The body: what the file says, and the options over it.

    What is missing or not allowed is the API's to say. Raises InvalidFieldError.
    """
    body = {} if options.file is None else read_json(options.file, "file")
    if not isinstance(body, dict):
        raise InvalidFieldError("file", "must hold one JSON object, the body of POST /jobs")
    for member in _COPIED:
        value = getattr(options, member)
        if value is not None:
            body[member] = value
    _put_schedule(body, options)
    _merge(body, "calendar", name=options.calendar, rule=options.calendar_rule)
    _merge(body, "dst", gap=options.dst_gap, fold=options.dst_fold)
    _merge(body, "retry", max_attempts=options.max_attempts)
    if options.task is not None:
        body["target"] = {"type": "task", "name": options.task}
    if options.webhook is not None:
        body["target"] = {"type": "webhook", "url": options.webhook}
    if options.payload is not None:
        body["payload"] = payload_value(options.payload)
    return body


def _put_schedule(body: dict[str, Any], options: JobOptions) -> None:
    if options.schedule:
        forms = [schedule_form(text) for text in options.schedule]
        body["schedule"] = forms[0] if len(forms) == 1 else forms
    if options.exceptions:
        body["except"] = list(exception_forms(options.exceptions))
    for member in ("start_at", "end_at"):
        text = getattr(options, member)
        if text is not None:
            zone = load_zone(str(body.get("timezone") or "UTC"))
            body[member] = utc_text(parse_instant(text, zone, member))


def _merge(body: dict[str, Any], member: str, **given: str | int | None) -> None:
    """Put what was given into an object of the body, over what stands there."""
    values = {name: value for name, value in given.items() if value is not None}
    if values:
        kept = body.get(member)
        body[member] = {**(kept if isinstance(kept, dict) else {}), **values}
