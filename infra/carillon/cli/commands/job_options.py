"""Options of `jobs create` and `jobs change`, and the request body they make."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any

import typer

from carillon.cli.inputs import (
    exception_forms,
    payload_value,
    read_json,
    schedule_form,
    target_form,
)
from carillon.cli.instants import DATES_HELP
from carillon.cli.options import tags_of
from carillon.errors import InvalidFieldError

_target = partial(typer.Option, rich_help_panel="What is called")
_retry = partial(typer.Option, rich_help_panel="Attempts")
_policy = partial(typer.Option, rich_help_panel="Policies", show_default=False)
_label = partial(typer.Option, rich_help_panel="Labels and events", show_default=False)

NameOption = Annotated[str | None, typer.Option(help="What you call the job.")]
ScheduleOption = Annotated[
    list[str] | None,
    typer.Option(
        help='"17 * * * *", "every 25m", "at ...", or a JSON form; several are united.',
        show_default=False,
    ),
]
ExceptOption = Annotated[
    list[str] | None,
    typer.Option(
        "--except", help="Without the occurrences of this schedule; repeatable.", show_default=False
    ),
]
TimezoneOption = Annotated[str | None, typer.Option(help="IANA time zone of the schedule.")]
StartAtOption = Annotated[
    str | None, typer.Option(help=f"The schedule's start and anchor. {DATES_HELP}")
]
EndAtOption = Annotated[
    str | None, typer.Option(help=f"The last instant that may fire. {DATES_HELP}")
]
MaxRunsOption = Annotated[int | None, typer.Option(help="End after so many occurrences.")]
OnCompleteOption = Annotated[
    str | None, typer.Option(help="When no occurrence is left: keep (the job) or delete.")
]
WindowOption = Annotated[
    str | None,
    typer.Option(help='Spread: start up to "15m" later, or "50%" of the interval.'),
]
CalendarOption = Annotated[
    str | None, typer.Option(help="The name of the calendar whose days are closed.")
]
CalendarRuleOption = Annotated[
    str | None,
    typer.Option(help="On closed days: skip, next_business_day or previous_business_day."),
]
DstGapOption = Annotated[
    str | None, typer.Option(help="Local times that the clocks skip: run_after or skip.")
]
DstFoldOption = Annotated[
    str | None, typer.Option(help="Local times shown twice: first, second or both.")
]
FileOption = Annotated[
    str | None,
    typer.Option(help="The request's body as a JSON file, or - for stdin; options go over it."),
]
TaskOption = Annotated[str | None, _target(help="Call this registered Python task ...")]
WebhookOption = Annotated[str | None, _target(help="... or POST to this HTTPS URL ...")]
TargetOption = Annotated[
    str | None,
    _target(help="... or this: the ARN of a function, queue, topic or state machine; or JSON."),
]
PayloadOption = Annotated[str | None, _target(help="JSON, @FILE, or @- for stdin.")]
TemplateOption = Annotated[
    bool | None, _target(help="Whether the payload has {{placeholders}}.", show_default=False)
]
OnSuccessOption = Annotated[
    str | None, _target(help="Call this when a run succeeds: a task, URL, ARN, or JSON.")
]
OnFailureOption = Annotated[
    str | None, _target(help="Call this when a run is dead: a task, URL, ARN, or JSON.")
]
MaxAttemptsOption = Annotated[int | None, _retry(help="Attempts before a dead letter.")]
BackoffOption = Annotated[
    str | None, _retry(help="Between attempts: exponential (with jitter) or fixed.")
]
BackoffBaseOption = Annotated[int | None, _retry(help="The first delay, in seconds.")]
BackoffFactorOption = Annotated[float | None, _retry(help="How much longer each next one is.")]
BackoffCapOption = Annotated[int | None, _retry(help="The longest delay, in seconds.")]
RetryOnOption = Annotated[
    list[str] | None,
    _retry(
        help="Retry this kind of error only, as timeout or http_5xx; repeatable.",
        show_default=False,
    ),
]
TimeoutOption = Annotated[
    int | None, _retry("--timeout", help="Time limit of one attempt, in seconds.")
]
PriorityOption = Annotated[str | None, _policy(help="high, normal or low.")]
OverlapOption = Annotated[
    str | None, _policy(help="While a run is active: allow, skip or queue_one.")
]
ToleranceOption = Annotated[
    str | None,
    _policy(help="Drop a run that starts sooner after the last one than the interval less this."),
]
CatchUpOption = Annotated[
    str | None, _policy(help="What an outage of ticks or executors missed: skip, latest or all.")
]
GraceOption = Annotated[
    str | None, _policy(help='How late is not missed yet, as "5m"; 1 minute without.')
]
ConcurrencyOption = Annotated[
    str | None,
    _policy(metavar="KEY=LIMIT", help="At most LIMIT runs at once of all jobs with the KEY."),
]
RateOption = Annotated[
    str | None,
    _policy(
        metavar="LIMIT/PER[@KEY]",
        help="At most LIMIT starts per duration, as 60/1m; of all jobs with the KEY, if any.",
    ),
]
PauseAfterFailuresOption = Annotated[
    int | None, _policy(help="Pause the job after so many dead runs in a row.")
]
ExpectWithinOption = Annotated[
    str | None, _policy(help='Say when no success is recorded so long after a fire time, as "10m".')
]
ParentOption = Annotated[
    str | None, _label(help="What the job belongs to; jobs can be chosen by it.")
]
TagOption = Annotated[list[str] | None, _label("--tag", help="KEY=VALUE; repeatable.")]
EventOption = Annotated[
    list[str] | None, _label("--event", help="Publish this event, as run.dead; repeatable.")
]


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Named as in the API's JSON where one option is one member."""

    name: NameOption = None
    schedule: ScheduleOption = None
    timezone: TimezoneOption = None
    start_at: StartAtOption = None
    end_at: EndAtOption = None
    max_runs: MaxRunsOption = None
    on_complete: OnCompleteOption = None
    exceptions: ExceptOption = None
    window: WindowOption = None
    calendar: CalendarOption = None
    calendar_rule: CalendarRuleOption = None
    dst_gap: DstGapOption = None
    dst_fold: DstFoldOption = None
    task: TaskOption = None
    webhook: WebhookOption = None
    target: TargetOption = None
    payload: PayloadOption = None
    template: TemplateOption = None
    on_success: OnSuccessOption = None
    on_failure: OnFailureOption = None
    max_attempts: MaxAttemptsOption = None
    backoff: BackoffOption = None
    backoff_base: BackoffBaseOption = None
    backoff_factor: BackoffFactorOption = None
    backoff_cap: BackoffCapOption = None
    retry_on: RetryOnOption = None
    timeout_seconds: TimeoutOption = None
    priority: PriorityOption = None
    overlap: OverlapOption = None
    tolerance: ToleranceOption = None
    catch_up: CatchUpOption = None
    grace: GraceOption = None
    concurrency: ConcurrencyOption = None
    rate: RateOption = None
    pause_after_failures: PauseAfterFailuresOption = None
    expect_within: ExpectWithinOption = None
    parent: ParentOption = None
    tags: TagOption = None
    events: EventOption = None
    file: FileOption = None


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
