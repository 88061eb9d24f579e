"""The options of `carillon jobs create`, as types."""

from typing import Annotated

import typer

from infra.cli.instants import DATES_HELP

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
TaskOption = Annotated[str | None, typer.Option(help="Call this registered Python task ...")]
WebhookOption = Annotated[str | None, typer.Option(help="... or POST to this HTTPS URL.")]
PayloadOption = Annotated[str | None, typer.Option(help="JSON, @FILE, or @- for stdin.")]
MaxAttemptsOption = Annotated[int | None, typer.Option(help="Attempts before a dead letter.")]
TimeoutOption = Annotated[int | None, typer.Option(help="Time limit of one attempt, in seconds.")]
LaneOption = Annotated[str | None, typer.Option(help="high, normal or low.")]
CatchUpOption = Annotated[
    str | None, typer.Option(help="What an outage missed: skip, latest or all.")
]
IdempotencyKeyOption = Annotated[
    str | None,
    typer.Option(help="Repeating this under the same key does nothing a second time."),
]
FileOption = Annotated[
    str | None,
    typer.Option(help="The body of POST /jobs as a JSON file, or - for stdin; options go over it."),
]
