"""The Lambda function behind the HTTP API: composes, and nothing else."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from carillon.api.app import Api
from carillon.clock import SystemClock, SystemEntropy
from carillon.garbage import spare_what_is_loaded
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores, open_task_logs, read_parameters
from carillon.telemetry import create_telemetry


def create_api() -> Api:
    """The API on the stores that the environment names."""
    settings = Settings.from_environment(read_parameters=read_parameters)
    clock = SystemClock()
    telemetry = create_telemetry("api", traced=bool(settings.tracing))
    stores = open_stores(settings, clock, lost=telemetry.events_lost)
    return Api(
        stores=stores,
        clock=clock,
        entropy=SystemEntropy(),
        settings=settings,
        telemetry=telemetry,
        task_logs=open_task_logs(settings),
    )


api = create_api()
spare_what_is_loaded()


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request."""
    return api.answer(event, context)
