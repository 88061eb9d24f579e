"""The metrics that alarms and dashboard look at: AWS's, and the deployment's own."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration, Stack
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_

from carillon.cdk.constructs.functions import Functions
from carillon.cdk.constructs.lanes import Lanes
from carillon.cdk.constructs.storage import Tables
from carillon.telemetry import Metric

MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
HOUR = Duration.hours(1)


@dataclass(frozen=True, slots=True)
class Watched:
    """What is looked at of a deployment."""

    functions: Functions
    tables: Tables
    lanes: Lanes
    http_api: gateway.IHttpApi

    @property
    def consumers(self) -> Sequence[lambda_.Function]:
        """The functions that queues invoke."""
        return (*self.functions.executors.values(), self.functions.dead_letter_consumer)

    @property
    def all_functions(self) -> Sequence[lambda_.Function]:
        return (self.functions.tick, *self.consumers, self.functions.api)

    def own(
        self, metric: Metric, service: str, statistic: str, period: Duration = MINUTE
    ) -> cloudwatch.Metric:
        """A metric that functions of `service` emit (shared/carillon/telemetry.py)."""
        return cloudwatch.Metric(
            # As the functions' environment has it.
            namespace=Stack.of(self.functions).stack_name,
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
