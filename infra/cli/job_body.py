"""From the options of `jobs create` to the body of `POST /jobs`."""

from dataclasses import dataclass
from typing import Any

from infra.cli.instants import parse_instant, utc_text
from infra.cli.json_input import payload_value, read_json, schedule_form
from shared.errors import InvalidFieldError
from shared.recurrence.zones import load_zone


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options as they were given; None where they were not."""

    file: str | None = None
    name: str | None = None
    schedule: str | None = None
    timezone: str | None = None
    start_at: str | None = None
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
    for member in ("name", "timezone", "lane", "catch_up", "timeout_seconds"):
        value = getattr(options, member)
        if value is not None:
            body[member] = value
    if options.schedule is not None:
        body["schedule"] = schedule_form(options.schedule)
    if options.start_at is not None:
        zone = load_zone(str(body.get("timezone") or "UTC"))
        body["start_at"] = utc_text(parse_instant(options.start_at, zone, "start_at"))
    if options.task is not None:
        body["target"] = {"type": "task", "name": options.task}
    if options.webhook is not None:
        body["target"] = {"type": "webhook", "url": options.webhook}
    if options.payload is not None:
        body["payload"] = payload_value(options.payload)
    if options.max_attempts is not None:
        retry = body.get("retry")
        kept = retry if isinstance(retry, dict) else {}
        body["retry"] = {**kept, "max_attempts": options.max_attempts}
    return body
