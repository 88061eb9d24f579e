"""The options of `carillon jobs create` and `change`: None where they were not given."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from carillon.cli.instants import DATES_HELP

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
