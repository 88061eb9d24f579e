"""The Lambda function behind a stack's custom resource: applies the jobs that the stack declares.

The jobs are a document in S3, with references to values that are known at deployment only. The
resource's id never changes, so that CloudFormation never replaces, and then deletes, it.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.request import Request, urlopen

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from carillon.api.apply.service import ApplyService
from carillon.api.apply.stack import StackJobs, StackRefusedError, StackService, with_values
from carillon.api.apply.telling import teller
from carillon.api.calendars.service import CalendarService
from carillon.api.jobs.service import JobService
from carillon.clock import SystemClock, SystemEntropy
from carillon.domain.spec.owners import Author, AuthorKind, Via, team_owner
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import Quotas
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores, read_parameters
from carillon.telemetry import Action, create_telemetry

ANSWER_RESERVE = timedelta(seconds=30)
ANSWER_SECONDS = 10

settings = Settings.from_environment(read_parameters=read_parameters)
telemetry = create_telemetry("stack")
clock = SystemClock()
stores = open_stores(settings, clock, lost=telemetry.events_lost)
entropy = SystemEntropy()
quotas = JobQuotas(
    Quotas(settings.limits, stores.quotas, clock), stores.jobs, stores.uses, clock, entropy
)
indexer = Indexer.of(stores, clock)
jobs = JobService(stores, indexer, quotas, clock, entropy, settings, telemetry)
calendars = CalendarService(jobs, stores.calendars, stores.changes, clock)
applying = ApplyService(jobs, calendars, clock)


def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Apply, and tell CloudFormation whether that succeeded, whatever happens."""
    reason = ""
    try:
        _handle(event, context)
    except StackRefusedError as error:
        reason = str(error)
    except Exception as error:  # without an answer the deployment would wait for its timeout
        telemetry.failure(Action.STACK_FAILED, error)
        reason = f"{type(error).__name__}: {error}"[:500]
    _answer(event, reason)


def _handle(event: Mapping[str, Any], context: LambdaContext) -> None:
    properties = event["ResourceProperties"]
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    ends_at = clock.now() + left - ANSWER_RESERVE
    stack_id = event["StackId"]
    author = Author(AuthorKind.MACHINE, stack_id, stack_id.split("/")[1], Via.STACK)
    service = StackService(applying, clock, ends_at, teller(telemetry, author))
    owner, manager = team_owner(properties["Team"]), properties["Manager"]
    if event["RequestType"] == "Delete":
        if properties["TablesGo"] == "true":
            service.prune(StackJobs(owner, manager, author, {}), [])
        return
    place = properties["Document"]
    body = boto3.client("s3").get_object(Bucket=place["Bucket"], Key=place["Key"])["Body"]
    document = with_values(json.loads(body.read()), place.get("Values", {}))
    service.apply(StackJobs(owner, manager, author, document))
    before = event.get("OldResourceProperties", properties)["Team"]
    if before != properties["Team"]:
        service.prune(StackJobs(team_owner(before), manager, author, {}), [])


def _answer(event: Mapping[str, Any], reason: str) -> None:
    answer = {
        "Status": "FAILED" if reason else "SUCCESS",
        "Reason": reason,
        "PhysicalResourceId": event["ResourceProperties"]["Manager"],
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    request = Request(event["ResponseURL"], json.dumps(answer).encode(), method="PUT")
    # The address is signed for no type of content.
    request.add_header("content-type", "")
    with urlopen(request, timeout=ANSWER_SECONDS):
        pass
