"""The dashboard, and the metrics it shares with the alarms."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration, Stack
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from carillon.cdk.constructs.functions import Functions
from carillon.cdk.constructs.lanes import Lanes
from carillon.cdk.constructs.storage import Tables
from carillon.telemetry import Metric

MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
HOUR = Duration.hours(1)


@dataclass(frozen=True, slots=True)
class Watched:
    """The resources that the dashboard shows, and the name of the deployment."""

    name: str
    functions: Functions
    tables: Tables
    lanes: Lanes
    http_api: gateway.IHttpApi

    def own(
        self, metric: Metric, service: str, statistic: str, period: Duration = MINUTE
    ) -> cloudwatch.Metric:
        """A metric that functions of `service` emit (shared/carillon/telemetry.py)."""
        return cloudwatch.Metric(
            # As the functions' environment has it.
            namespace=self.name,
            metric_name=metric.value,
            dimensions_map={"service": service},
            statistic=statistic,
            period=period,
        )


def total(metrics: Sequence[cloudwatch.IMetric], period: Duration) -> cloudwatch.MathExpression:
    """The sum of metrics; one without data counts for nothing."""
    return cloudwatch.MathExpression(
        expression="SUM(METRICS())",
        using_metrics={f"m{number}": metric for number, metric in enumerate(metrics)},
        period=period,
    )


WIDTH = 8
"""Three graphs a row: a dashboard is 24 wide."""

OUTCOMES = (
    Metric.RUNS_SUCCEEDED,
    Metric.RUNS_RETRIED,
    Metric.RUNS_SKIPPED,
    Metric.RUNS_DEAD,
    Metric.RUNS_MISSED,
)


class Dashboard(Construct):
    """One dashboard of at most 50 metrics, of which an account has three free of charge."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        name: str,
        watched: Watched,
        alarms: Sequence[cloudwatch.Alarm],
    ) -> None:
        super().__init__(scope, construct_id)
        self._watched = watched
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            # An account has its dashboards, whatever their stacks' regions.
            dashboard_name=f"{name}-{Stack.of(self).region}",
            widgets=[
                [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=24)],
                self._dispatch(),
                self._runs(),
                self._queues(),
                self._functions(),
            ],
        )

    def _dispatch(self) -> list[cloudwatch.IWidget]:
        own, tick = self._watched.own, self._watched.functions.tick
        ticks = tick.metric_invocations(period=MINUTE, statistic="Sum", label="ticks")
        lags = [
            own(Metric.WATERMARK_LAG, "tick", "Maximum"),
            own(Metric.CANARY_LAG, "executor", "Maximum"),
        ]
        sent = own(Metric.OCCURRENCES_SENT, "tick", "Sum")
        # Only there where the tick may not invoke itself, or Lambda takes nothing.
        uninvited = own(Metric.SHARES_UNINVITED, "tick", "Sum")
        return [
            _graph("Ticks a minute", [ticks, uninvited]),
            _graph("Behind, in seconds", lags),
            _graph("Occurrences sent a minute", [sent]),
        ]

    def _runs(self) -> list[cloudwatch.IWidget]:
        own = self._watched.own
        lags = [own(Metric.RUN_LAG, "executor", statistic) for statistic in ("p50", "p99")]
        outcomes = [own(metric, "executor", "Sum") for metric in OUTCOMES]
        buried = own(Metric.RUNS_DEAD, "dead-letter-consumer", "Sum").with_(label="dead in the DLQ")
        api = self._watched.http_api
        return [
            _graph("Lag of runs, in seconds", lags),
            _graph("Outcomes a minute", [*outcomes, buried]),
            _graph(
                "Refused by the API, and failed",
                [api.metric_client_error(label="4xx"), api.metric_server_error(label="5xx")],
                "Sum",
            ),
        ]

    def _queues(self) -> list[cloudwatch.IWidget]:
        lanes = self._watched.lanes
        depths = [
            queue.metric_approximate_number_of_messages_visible(label=str(name))
            for name, queue in [*lanes.queues.items(), ("dead letters", lanes.dead_letter_queue)]
        ]
        ages = [
            queue.metric_approximate_age_of_oldest_message(label=str(name))
            for name, queue in lanes.queues.items()
        ]
        tables = self._watched.tables
        named = {"jobs": tables.jobs, "wheel": tables.wheel, "runs": tables.runs}
        throttled = [
            table.metric(f"{what}ThrottleEvents", label=f"{name} {what.lower()}s")
            for name, table in named.items()
            for what in ("Read", "Write")
        ]
        return [
            _graph("Messages that wait", depths, "Maximum"),
            _graph("Oldest message, in seconds", ages, "Maximum"),
            _graph("Throttled by DynamoDB", throttled, "Sum"),
        ]

    def _functions(self) -> list[cloudwatch.IWidget]:
        named = self._named_functions()
        return [
            _graph("Throttled", [f.metric_throttles(label=name) for name, f in named], "Sum"),
            _graph("Errors", [f.metric_errors(label=name) for name, f in named], "Sum"),
            _graph("Duration, p99", [f.metric_duration(label=name) for name, f in named], "p99"),
        ]

    def _named_functions(self) -> list[tuple[str, lambda_.Function]]:
        functions = self._watched.functions
        return [
            ("tick", functions.tick),
            *((f"executor {lane}", each) for lane, each in functions.executors.items()),
            ("dead-letter consumer", functions.dead_letter_consumer),
            ("api", functions.api),
        ]


def _graph(
    title: str, metrics: Sequence[cloudwatch.Metric], statistic: str | None = None
) -> cloudwatch.GraphWidget:
    shown = [each.with_(period=MINUTE, statistic=statistic or each.statistic) for each in metrics]
    return cloudwatch.GraphWidget(title=title, left=shown, width=WIDTH)
