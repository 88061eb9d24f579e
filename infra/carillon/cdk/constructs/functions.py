"""The Lambda functions, each with its own role, log group and grants."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from aws_cdk import CfnResource, Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from carillon.cdk.assets import Assets
from carillon.cdk.constructs.environment import environment
from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.constructs.lanes import Lanes
from carillon.cdk.constructs.permissions import (
    allow,
    allow_email,
    allow_secrets,
    allow_spans,
    allow_to_invoke_itself,
)
from carillon.cdk.constructs.storage import Tables
from carillon.cdk.emulation import Emulation
from carillon.cdk.options import Options
from carillon.cdk.releases import CALLERS, LIVE, described
from carillon.cdk.tasks import Tasks
from carillon.domain.job import Lane
from carillon.settings import TRACES_TO_XRAY

BATCH_SIZE = 10
API_TIMEOUT_SECONDS = 29
"""An HTTP API gives up after 30 s."""
STACK_JOBS_TIMEOUT_SECONDS = 600

TESTED_PYTHON = "the runtime is the Python that synthesised, on which everything was tested"
FINDINGS = {
    "AwsSolutions-L1": TESTED_PYTHON,
    "Serverless-LambdaLatestVersion": TESTED_PYTHON,
    "Serverless-LambdaDLQ": "a tick that failed is made up for by the next one, and told by an "
    "alarm; queues and API call the others and hear of failures themselves",
    "Serverless-LambdaEventSourceMappingDestination": "mappings of SQS have no destination: what "
    "they fail on goes by the queue's own redrive policy",
    "Serverless-LambdaTracing": "every trace has its price; logs bear the run's id on all its way",
}
"""Of cdk-nag, on every function."""

READ_ITEM = ("dynamodb:GetItem",)
READ_BATCH = ("dynamodb:BatchGetItem",)
PUT_ITEM = ("dynamodb:PutItem",)
DELETE_ITEM = ("dynamodb:DeleteItem",)
WRITE_BATCH = ("dynamodb:BatchWriteItem",)
QUERY = ("dynamodb:Query",)
SEND = ("sqs:SendMessage",)
PUT_EVENTS = ("events:PutEvents",)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The differences between the functions."""

    handler: str
    service: str
    timeout_seconds: int
    description: str
    memory_mb: int
    is_executor: bool = False
    reserved_concurrency: int | None = None


class Functions(Construct):
    """tick, one executor per lane, the dead-letter consumer and api.

    Each has a published version and the alias `live`, by which alone it is called: a deployment
    switches from one version to the next in one step, and back. Old versions are kept for that.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        options: Options,
        emulation: Emulation,
        tables: Tables,
        lanes: Lanes,
        webhook_secret: secretsmanager.ISecret,
        event_bus: events.IEventBus | None,
        tasks: Tasks | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._options = options
        self._tables = tables
        self._lane_arns = [queue.queue_arn for queue in lanes.queues.values()]
        self._dead_letter_queue = lanes.dead_letter_queue
        self._secret = webhook_secret
        self._event_bus = event_bus
        self.assets = Assets(self, "Assets", options, emulation, tasks)
        variables = environment(options, emulation, tables, lanes, webhook_secret, event_bus)
        folder = self.assets.task_folder
        self._environment = {**variables, **({"TASK_FOLDER": folder} if folder else {})}
        self._live: dict[str, lambda_.Alias] = {}
        self._log_groups: dict[str, logs.ILogGroup] = {}
        self.tick = self._create_tick()
        self.executors = {lane: self._create_executor(lane, lanes.queues[lane]) for lane in Lane}
        self.dead_letter_consumer = self._create_dead_letter_consumer()
        self.api = self._create_api()
        self.stack_jobs: lambda_.Function | None = None
        self._order_switches()
        for rule, reason in FINDINGS.items():
            acknowledge(self, rule, reason)

    def live(self, function: lambda_.Function) -> lambda_.Alias:
        """The alias of the function's live version."""
        return self._live[function.node.id]

    @cached_property
    def task_role(self) -> iam.Role:
        """A role without any grant, which the executors alone may assume, for tasks."""
        roles = [each.role for each in self.executors.values()]
        executors = [iam.ArnPrincipal(role.role_arn) for role in roles if role is not None]
        role = iam.Role(
            self,
            "TaskRole",
            assumed_by=iam.CompositePrincipal(*executors),
            description="Tasks of Carillon",
            max_session_duration=Duration.hours(1),
        )
        for executor in self.executors.values():
            executor.add_environment("TASK_ROLE_ARN", role.role_arn)
            allow(executor, ["sts:AssumeRole"], [role.role_arn])
        return role

    @property
    def consumers(self) -> Sequence[lambda_.Function]:
        """The functions that queues invoke."""
        return (*self.executors.values(), self.dead_letter_consumer)

    @property
    def all(self) -> Sequence[lambda_.Function]:
        stack_jobs = () if self.stack_jobs is None else (self.stack_jobs,)
        return (self.tick, *self.consumers, self.api, *stack_jobs)

    def _order_switches(self) -> None:
        """Senders of messages switch to a newer version after the functions that must understand
        them."""
        called = [alias for name, alias in self._live.items() if name not in CALLERS]
        for caller in CALLERS:
            for alias in called:
                _resource(self._live[caller]).add_resource_dependency(_resource(alias))

    def _create_tick(self) -> lambda_.Function:
        shape = _Shape(
            handler="carillon.tick.handler.handler",
            service="tick",
            timeout_seconds=self._options.tick_timeout_seconds,
            description="Sends what is due to the lanes, once a minute",
            memory_mb=self._options.memory_mb["tick"],
            reserved_concurrency=self._tick_concurrency(),
        )
        tick = self._function("Tick", shape)
        # The plans of chunks lie beside runs.
        rows = [self._tables.jobs.table_arn, self._tables.runs.table_arn]
        allow(tick, (*READ_ITEM, *PUT_ITEM), rows)
        wheel = (*READ_ITEM, *PUT_ITEM, *DELETE_ITEM, *WRITE_BATCH, *QUERY)
        allow(tick, wheel, [self._tables.wheel.table_arn])
        allow(tick, SEND, self._lane_arns)
        if self._options.tick_workers > 1:
            allow_to_invoke_itself(tick, self.live(tick))
        return tick

    def _tick_concurrency(self) -> int | None:
        """One for each tick that may share a minute, and two for those that last into the next."""
        if not self._options.tick_reserved_concurrency:
            return None
        return self._options.tick_workers + 2

    def _create_executor(self, lane: Lane, queue: sqs.Queue) -> lambda_.Function:
        shape = _Shape(
            handler="carillon.executor.handler.handler",
            service="executor",
            timeout_seconds=self._options.executor_timeout_seconds,
            description=f"Runs the {lane} lane",
            memory_mb=self._options.memory_mb["executor"],
            is_executor=True,
        )
        executor = self._function(f"Executor{lane.capitalize()}", shape)
        self._allow_running(executor)
        # Operations search dead letters, and the jobs of an owner.
        indexes = [self._tables.attention_index_arn, self._tables.owner_index_arn]
        allow(executor, QUERY, indexes)
        allow_secrets(executor, self._secret.secret_arn, self._options.secrets_prefix)
        if self._options.email_sender:
            allow_email(executor, self._options.email_sender)
        limit = self._options.lanes[lane]["max_concurrency"]
        self.live(executor).add_event_source(_batches(queue, limit, lane.batch_size))
        return executor

    def _create_dead_letter_consumer(self) -> lambda_.Function:
        shape = _Shape(
            handler="carillon.executor.handler.dead_letter_handler",
            service="dead-letter-consumer",
            timeout_seconds=self._options.executor_timeout_seconds,
            description="Records why runs died whose executors could not",
            memory_mb=self._options.memory_mb["executor"],
            is_executor=True,
        )
        consumer = self._function("DeadLetterConsumer", shape)
        self._allow_running(consumer)
        self.live(consumer).add_event_source(_batches(self._dead_letter_queue))
        return consumer

    def _allow_running(self, function: lambda_.Function) -> None:
        """The permissions of the run protocol: read jobs and calendars, complete and pause jobs,
        pass gates, continue operations, find notifications, record runs, send copies, schedule late
        retries."""
        jobs = (*READ_ITEM, *READ_BATCH, *PUT_ITEM, *QUERY)
        allow(function, jobs, [self._tables.jobs.table_arn])
        runs = (*READ_ITEM, *READ_BATCH, *PUT_ITEM, *DELETE_ITEM, *QUERY)
        allow(function, runs, [self._tables.runs.table_arn])
        wheel = (*READ_ITEM, *PUT_ITEM, *DELETE_ITEM, *WRITE_BATCH)
        allow(function, wheel, [self._tables.wheel.table_arn])
        allow(function, SEND, self._lane_arns)
        if self._options.tracing == TRACES_TO_XRAY:
            allow_spans(function)

    def _create_api(self) -> lambda_.Function:
        shape = _Shape(
            handler="carillon.api.handler.handler",
            service="api",
            timeout_seconds=API_TIMEOUT_SECONDS,
            description="Answers the HTTP API",
            memory_mb=self._options.memory_mb["api"],
        )
        api = self._function("Api", shape)
        self._allow_answering(api)
        groups = [self._log_groups[executor.node.id] for executor in self.executors.values()]
        api.add_environment("LOG_GROUPS", ",".join(group.log_group_name for group in groups))
        allow(api, ["logs:FilterLogEvents"], [group.log_group_arn for group in groups])
        return api

    def add_stack_jobs(self) -> lambda_.Function:
        """The function that applies the jobs of the stack, which may do what the API does."""
        shape = _Shape(
            handler="carillon.api.stack_handler.handler",
            service="apply",
            timeout_seconds=STACK_JOBS_TIMEOUT_SECONDS,
            description="Applies the jobs that the stack declares",
            memory_mb=self._options.memory_mb["api"],
        )
        self.stack_jobs = function = self._function("Apply", shape)
        self._allow_answering(function)
        return function

    def _allow_answering(self, api: lambda_.Function) -> None:
        tables = self._tables
        rows = (*READ_ITEM, *PUT_ITEM, *QUERY)
        # Jobs leave by their tombstone's expiry; calendars, in the same table, are deleted.
        allow(api, (*rows, *DELETE_ITEM, *READ_BATCH), [tables.jobs.table_arn])
        allow(api, QUERY, [tables.owner_index_arn])
        # Lists of runs read chunks, many at once.
        allow(api, (*rows, *READ_BATCH), [tables.runs.table_arn])
        # Entries of jobs that are gone leave at once.
        wheel = (*READ_ITEM, *PUT_ITEM, *DELETE_ITEM, *WRITE_BATCH)
        allow(api, wheel, [tables.wheel.table_arn])
        allow(api, QUERY, [tables.attention_index_arn])
        allow(api, SEND, self._lane_arns)

    def _function(self, name: str, shape: _Shape) -> lambda_.Function:
        log_group = logs.LogGroup(
            self,
            f"{name}Logs",
            retention=self._options.log_retention,
            removal_policy=RemovalPolicy.DESTROY,
        )
        # A role of our own: CDK's would carry a managed policy for every log group there is.
        role = iam.Role(
            self, f"{name}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")
        )
        self._log_groups[name] = log_group
        log_group.grant_write(role)
        function = self._configured(name, shape, role, log_group)
        self._live[name] = function.add_alias(LIVE)
        if self._event_bus is not None:
            allow(function, PUT_EVENTS, [self._event_bus.event_bus_arn])
        return function

    def _configured(
        self, name: str, shape: _Shape, role: iam.IRole, log_group: logs.ILogGroup
    ) -> lambda_.Function:
        loop = lambda_.RecursiveLoop
        return lambda_.Function(
            self,
            name,
            code=self.assets.code,
            handler=shape.handler,
            runtime=self.assets.runtime,
            architecture=lambda_.Architecture.ARM_64,
            layers=[self.assets.layer, *(self.assets.task_layers if shape.is_executor else ())],
            role=role,
            log_group=log_group,
            # Of the platform's own lines only what went wrong: those of each good invocation
            # (START, END, REPORT) would be a third of all that is stored.
            logging_format=lambda_.LoggingFormat.JSON,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            memory_size=shape.memory_mb,
            reserved_concurrent_executions=shape.reserved_concurrency,
            timeout=Duration.seconds(shape.timeout_seconds),
            environment={**self._environment, "POWERTOOLS_SERVICE_NAME": shape.service},
            # Also what makes every function publish a version with every release.
            description=described(shape.description, self.assets.release),
            # Retries and copies are messages to the function's own queue: after 16 of them
            # Lambda would take the chain for a runaway loop and cut it.
            recursive_loop=loop.ALLOW if shape.is_executor else loop.TERMINATE,
            # Kept to go back to; but with one of a deployment that failed, Lambda would publish no
            # other of the same release, and the deployment could not be repeated.
            current_version_options=lambda_.VersionOptions(
                removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
            ),
        )


def _batches(
    queue: sqs.IQueue, max_concurrency: int | None = None, batch_size: int = BATCH_SIZE
) -> event_sources.SqsEventSource:
    """A mapping without a maximum concurrency polls less often while its queue is empty (Lambda:
    configuring scaling behavior for SQS event source mappings)."""
    return event_sources.SqsEventSource(
        queue,
        batch_size=batch_size,
        max_concurrency=max_concurrency,
        report_batch_item_failures=True,
    )


def _resource(alias: lambda_.Alias) -> CfnResource:
    resource = alias.node.default_child
    assert isinstance(resource, CfnResource)
    return resource
