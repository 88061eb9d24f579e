"""Alarms: what somebody can do something about, each with its heading in docs/operate.md."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from carillon.cdk.constructs.dashboard import FIVE_MINUTES, HOUR, MINUTE, Watched, total
from carillon.cdk.constructs.lanes import VISIBILITY_FACTOR
from carillon.cdk.constructs.notifications import Notifications
from carillon.cdk.options import Options
from carillon.domain.canary import CANARY_EXPECT_WITHIN, CANARY_INTERVAL
from carillon.domain.job import Lane
from carillon.domain.message import LONGEST_DELAY_SECONDS
from carillon.telemetry import Metric

OLDEST_MESSAGE_SECONDS = 1200
"""A healthy lane holds messages that wait out SQS's longest delay (900 s); five minutes more."""
OLDEST_MESSAGE_MINUTES = 5
"""The alarm's periods in succession."""

LAG_SECONDS = 120
SKEW_SECONDS = 2
"""As the tick's own limit: further apart, clocks make runs early or late."""
SERVER_ERRORS = 5
"""Of the API in five minutes: fewer are a target's or a store's bad moment."""
CANARY_SILENT_MINUTES = (2 * CANARY_INTERVAL + CANARY_EXPECT_WITHIN) // timedelta(minutes=1) + 1
"""Two in a row have not come in time."""

RUNBOOK = "docs/operate.md"

_MISSING = cloudwatch.TreatMissingData


class Severity(StrEnum):
    """The urgency of an alarm: the first word of its description."""

    PAGE = "PAGE"
    """Now: jobs of all owners are late, or the API is down."""
    TICKET = "TICKET"
    """In working hours."""


def oldest_message_seconds(executor_timeout_seconds: int) -> int:
    """The age of a message that is an alarm where it lasts for OLDEST_MESSAGE_MINUTES.

    What is hidden counts, too: after the longest delay an executor may die with a message, and the
    next one take its whole time.
    """
    handled = LONGEST_DELAY_SECONDS + (VISIBILITY_FACTOR + 1) * executor_timeout_seconds
    return max(OLDEST_MESSAGE_SECONDS, handled - 60 * OLDEST_MESSAGE_MINUTES)


@dataclass(frozen=True, slots=True)
class Rule:
    """`times` periods in succession at the threshold, or `below` it; `missing`: of a period without
    data."""

    threshold: int
    times: int = 1
    below: bool = False
    missing: cloudwatch.TreatMissingData = _MISSING.NOT_BREACHING


class Observability(Construct):
    """All alarms. AWS charges for each metric that an alarm reads, so one over several functions
    costs as much as one for each; it is one message instead of seven."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        options: Options,
        watched: Watched,
        notifications: Notifications,
        *,
        has_sums: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        self._options = options
        self._has_sums = has_sums
        self._watched = watched
        self._notifications = notifications
        self.alarms: list[cloudwatch.Alarm] = []
        self._watch_dispatch()
        self._watch_lanes()
        self._watch_runs()
        self._watch_functions()

    def _watch_dispatch(self) -> None:
        watched, page = self._watched, Severity.PAGE
        tick = watched.functions.tick
        self._alarm(
            "TicksMissing",
            tick.metric_invocations(period=MINUTE, statistic="Sum"),
            Rule(1, times=5, below=True, missing=_MISSING.BREACHING),
            f"{page}: no tick for five minutes, so that nothing new is sent",
        )
        self._alarm(
            "TickErrors",
            tick.metric_errors(period=MINUTE, statistic="Sum"),
            Rule(1, times=3),
            f"{page}: ticks fail, and what is due is late until one succeeds",
        )
        self._alarm(
            "WatermarkLag",
            watched.own(Metric.WATERMARK_LAG, "tick", "Maximum"),
            # Without ticks there is no figure, and nothing has become better.
            Rule(LAG_SECONDS, times=3, missing=_MISSING.IGNORE),
            f"{page}: dispatch is {LAG_SECONDS} s behind and does not catch up",
        )
        self._alarm(
            "CanarySilent",
            watched.own(Metric.CANARY_LAG, "executor", "SampleCount"),
            Rule(1, times=CANARY_SILENT_MINUTES, below=True, missing=_MISSING.BREACHING),
            f"{page}: the deployment's own job has not run in time twice in a row",
        )
        self._alarm(
            "ClockSkew",
            watched.own(Metric.CLOCK_SKEW, "tick", "Maximum"),
            Rule(SKEW_SECONDS, times=3),
            f"{Severity.TICKET}: the tick's clock is {SKEW_SECONDS} s or more from DynamoDB's",
        )
        self._alarm(
            "EntriesSetAside",
            watched.own(Metric.ENTRIES_SET_ASIDE, "tick", "Sum", HOUR),
            Rule(1),
            f"{Severity.TICKET}: entries of the wheel cannot be read, and their jobs do not fire",
        )

    def _watch_lanes(self) -> None:
        for lane, queue in self._watched.lanes.queues.items():
            self._watch_lane(lane, queue)
        self._alarm(
            "DeadLetters",
            self._watched.lanes.dead_letter_queue.metric_approximate_number_of_messages_visible(
                period=MINUTE, statistic="Maximum"
            ),
            Rule(1, times=5),
            f"{Severity.TICKET}: nobody takes what lies in the dead-letter queue",
        )

    def _watch_lane(self, lane: Lane, queue: sqs.Queue) -> None:
        # Backfills fill the one, targets that hang the other: nobody was promised a time there.
        severity = Severity.TICKET if lane in (Lane.LOW, Lane.SLOW) else Severity.PAGE
        self._alarm(
            f"OldestMessage{lane.capitalize()}",
            queue.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
            Rule(
                oldest_message_seconds(self._options.executor_timeout_seconds),
                times=OLDEST_MESSAGE_MINUTES,
            ),
            f"{severity}: lane {lane} is minutes behind",
            heading="OldestMessage",
        )

    def _watch_runs(self) -> None:
        limit, ticket = self._options.alarm_lost_runs, Severity.TICKET
        if limit:
            self._alarm(
                "RunsDead",
                self._watched.own(Metric.RUNS_DEAD, "executor", "Sum", HOUR),
                Rule(limit),
                f"{ticket}: {limit} runs or more have failed for good within an hour",
            )
            self._alarm(
                "RunsMissed",
                self._watched.own(Metric.RUNS_MISSED, "executor", "Sum", HOUR),
                Rule(limit),
                f"{ticket}: {limit} runs or more were not done within their time in an hour",
            )
        # Its lane buries what has no attempt left, the consumer what lies in the dead-letter queue.
        services = ("executor", "dead-letter-consumer")
        died = [self._watched.own(Metric.EXECUTORS_DIED, each, "Sum", HOUR) for each in services]
        self._total_alarm(
            "ExecutorsDied",
            total(died, HOUR),
            Rule(1),
            f"{ticket}: runs are dead whose executors died, or which none could begin",
        )

    def _watch_functions(self) -> None:
        watched = self._watched
        throttles = [
            each.metric_throttles(period=FIVE_MINUTES, statistic="Sum")
            for each in watched.functions.all
        ]
        self._total_alarm(
            "Throttles",
            total(throttles, FIVE_MINUTES),
            Rule(1, times=3),
            f"{Severity.PAGE}: Lambda refuses invocations for want of concurrency",
        )
        errors = [
            each.metric_errors(period=FIVE_MINUTES, statistic="Sum")
            for each in watched.functions.consumers
        ]
        self._total_alarm(
            "ExecutorErrors",
            total(errors, FIVE_MINUTES),
            Rule(1, times=3),
            f"{Severity.TICKET}: executors die in the midst of their work",
        )
        self._alarm(
            "ApiErrors",
            watched.http_api.metric_server_error(period=FIVE_MINUTES, statistic="Sum"),
            Rule(SERVER_ERRORS, times=2),
            f"{Severity.PAGE}: the API answers 5xx",
        )

    def _total_alarm(
        self, name: str, metric: cloudwatch.IMetric, rule: Rule, description: str
    ) -> None:
        """At a sum of metrics; not on emulators, which know none."""
        if self._has_sums:
            self._alarm(name, metric, rule, description)

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        rule: Rule,
        description: str,
        *,
        heading: str = "",
    ) -> None:
        """`heading` is that of the runbook, if it is not the alarm's name."""
        operators = cloudwatch.ComparisonOperator
        at_least = operators.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        alarm = cloudwatch.Alarm(
            self,
            name,
            alarm_name=f"{self._options.name}-{name}",
            alarm_description=f"{description}. {RUNBOOK}#{(heading or name).lower()}",
            metric=metric,
            threshold=rule.threshold,
            evaluation_periods=rule.times,
            comparison_operator=operators.LESS_THAN_THRESHOLD if rule.below else at_least,
            treat_missing_data=rule.missing,
        )
        self._notifications.attach(alarm)
        self.alarms.append(alarm)
