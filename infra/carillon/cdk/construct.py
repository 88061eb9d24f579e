"""The construct: puts the capabilities together, in a stack of whichever app."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aws_cdk import CfnOutput, Duration, Names, Stack, Tags
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from carillon.cdk.constructs.api import Api
from carillon.cdk.constructs.dashboard import MINUTE, Dashboard, Watched
from carillon.cdk.constructs.event_rules import Clock, add_rule, event_name
from carillon.cdk.constructs.functions import Functions
from carillon.cdk.constructs.lanes import Lanes
from carillon.cdk.constructs.notifications import STACK_TAG, Notifications
from carillon.cdk.constructs.observability import Observability
from carillon.cdk.constructs.parameters import Parameters
from carillon.cdk.constructs.stack_jobs import StackJobs
from carillon.cdk.constructs.storage import Events, Tables, Webhooks
from carillon.cdk.constructs.targets import TargetPermissions
from carillon.cdk.declared import Declared
from carillon.cdk.discovery import Found, discover
from carillon.cdk.emulation import Emulation
from carillon.cdk.options import Options, team_name
from carillon.cdk.tasks import Tasks
from carillon.errors import ConfigurationError
from carillon.telemetry import Metric

LONGEST_NAME = 60


class Carillon(Construct):
    """A deployment of Carillon, in any account and region; several may be in one stack.

    `options` are those of docs/options.md, each with its default. The construct's id is part of the
    names and ids of all that it makes: another id is another deployment, without jobs. `tasks` are
    the app's own, and its jobs are those of `team`. Raises ConfigurationError, naming the option.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        tasks: Tasks | None = None,
        team: str = "",
        **options: Any,
    ) -> None:
        super().__init__(scope, construct_id)
        chosen = Options.given({**options, "name": options.get("name") or _name_of(self)})
        if tasks is not None:
            own = (options.get("task_modules") and chosen.task_modules) or ()
            chosen = replace(chosen, task_modules=(*own, *tasks.modules))
        found = discover(chosen.task_modules, tasks)
        emulation = Emulation.of(self)
        chosen = emulation.within(chosen)
        self.tables = Tables(self, "Tables", chosen)
        self.lanes = Lanes(self, "Lanes", chosen)
        self.webhooks = Webhooks(self, "Webhooks", chosen)
        self.events = Events(self, "Events", chosen) if chosen.event_bus else None
        self.functions = Functions(
            self,
            "Functions",
            chosen,
            emulation,
            self.tables,
            self.lanes,
            self.webhooks.secret,
            None if self.events is None else self.events.bus,
            tasks,
        )
        self.clock = Clock(self, "Clock", self.functions.live(self.functions.tick))
        self.api = Api(self, "Api", chosen, self.functions.live(self.functions.api))
        self._tell_addresses(emulation)
        self._notifications = Notifications(self, "Notifications", chosen)
        self._open_to_jobs(chosen, team, found)
        self._watch(chosen, emulation)
        Tags.of(self).add(STACK_TAG, chosen.name)
        for output, value in self._addresses().items():
            self._output(output, value)

    def _tell_addresses(self, emulation: Emulation) -> None:
        """Give functions the addresses of the API and the console, which are made after them."""
        api, console = self.functions.api, self.api.console
        api.add_environment("ISSUER", self.api.issuer)
        api.add_environment("AUDIENCE", self.api.audience)
        if console is not None:
            api.add_environment("CONSOLE_CLIENT_ID", console.client_id)
            api.add_environment("SIGN_IN_URL", console.sign_in_url)
        if self.api.machines:
            api.add_environment("TOKEN_URL", self.api.token_url(emulation))
        url = self.api.url(emulation)
        for executor in self.functions.executors.values():
            executor.add_environment("API_URL", url)
            if console is not None and not emulation.is_on:
                executor.add_environment("CONSOLE_URL", f"{url}/console/")

    def _open_to_jobs(self, options: Options, team: str, found: Found) -> None:
        """The parameters, what jobs may call, and the jobs of the stack, where they have a team."""
        parameters = Parameters(self, "Parameters", options.name)
        parameters.add("TASK_NAMES", found.names)
        machines = self.api.machines.items()
        parameters.add("MACHINE_NAMES", [f"{client_id}={name}" for name, client_id in machines])
        parameters.read_by(self.functions.api)
        if team:
            parameters.read_by(self.functions.add_stack_jobs())
        buses = [] if self.events is None else [self.events.bus.event_bus_arn]
        topics = self._notifications.own_arns
        self.targets = TargetPermissions(
            self, "Targets", options, self.functions, self.lanes, buses, topics, parameters
        )
        if not team and found.jobs:
            raise ConfigurationError("team", f"must be set: {found.jobs[0].place} declares a job")
        self._declared = Declared(found, self.targets.allow)
        if team:
            StackJobs(
                self, "Jobs", options, team_name(team), self.functions, parameters, self._declared
            )
        self._team = team

    def add_job(
        self, name: str, *, target: object, schedule: object = None, **settings: Any
    ) -> None:
        """A job of the team, made what is said here by each deployment that changes a declaration.

        `target`, as `on_success` and `on_failure`, is a queue, function, topic or state machine of
        the CDK, which jobs may call by that; the name of a task; or an object as the API takes it,
        in which a construct may stand for its ARN.
        The other settings are those of docs/settings.md, `after` in the place of a schedule. It
        goes when it is not declared any more. Raises ConfigurationError, naming the field.
        """
        self._refuse_without_team("add_job")
        members = {"target": target, **settings}
        if schedule is not None:
            members["schedule"] = schedule
        self._declared.add(name, members, f"{self.node.path}, add_job")

    def add_manifest(self, path: str) -> None:
        """The jobs and calendars of a manifest (docs/cli.md), as by `add_job`."""
        self._refuse_without_team("add_manifest")
        self._declared.add_manifest(Path(path))

    def _refuse_without_team(self, what: str) -> None:
        if not self._team:
            raise ConfigurationError("team", f"must be set for {what}: a stack's jobs are a team's")

    def on(self, event: str, target: object) -> None:
        """Send an event such as `run.dead`, of the jobs declared here and of all others that ask
        for it, to a topic, a queue, a function, or another target of EventBridge's rules. Needs the
        option `event_bus`."""
        if self.events is None:
            raise ConfigurationError("event_bus", f"must be True for on({event!r}, ...)")
        self._declared.tell(event_name(event))
        self._rules += 1
        add_rule(self, f"On{self._rules}", self.events.bus, event, target)

    def grant_manage(self, grantee: iam.IGrantable, *, role: str = "editor") -> None:
        """Let a role or user of IAM manage the team's jobs over HTTP, at `/aws/{team}/jobs` and so
        on, by signed requests: a `viewer` by GET, an `editor` by all methods, and an `admin` at
        `/aws-admin/{team}` also what editors may not (docs/teams.md)."""
        self._refuse_without_team("grant_manage")
        self.api.allow_team(grantee, self._team, role)

    def metric_lag(self, statistic: str = "p99", period: Duration = MINUTE) -> cloudwatch.Metric:
        """The seconds by which runs began late."""
        return self._watched.own(Metric.RUN_LAG, "executor", statistic, period)

    def metric_runs_succeeded(self, period: Duration = MINUTE) -> cloudwatch.Metric:
        return self._watched.own(Metric.RUNS_SUCCEEDED, "executor", "Sum", period)

    def metric_runs_dead(self, period: Duration = MINUTE) -> cloudwatch.Metric:
        """The runs that became dead letters."""
        return self._watched.own(Metric.RUNS_DEAD, "executor", "Sum", period)

    def metric_runs_missed(self, period: Duration = MINUTE) -> cloudwatch.Metric:
        """The runs without a success in the job's `expect_within`."""
        return self._watched.own(Metric.RUNS_MISSED, "executor", "Sum", period)

    @property
    def task_role(self) -> iam.Role:
        """The role of the app's tasks, which may do what is granted to it and nothing else. Each
        task gets short-lived credentials of it; without one tasks have none."""
        return self.functions.task_role

    def _watch(self, options: Options, emulation: Emulation) -> None:
        watched = Watched(options.name, self.functions, self.tables, self.lanes, self.api.http_api)
        self._watched, self._rules = watched, 0
        observability = Observability(
            self,
            "Observability",
            options,
            watched,
            self._notifications,
            has_sums=not emulation.is_on,
        )
        if options.dashboard:
            Dashboard(self, "Dashboard", options.name, watched, observability.alarms)

    def _output(self, name: str, value: str) -> None:
        """Under the construct's path and `name`, without the hash that CDK would add."""
        CfnOutput(self, name, value=value).override_logical_id(f"{_path(self)}{name}")

    def _addresses(self) -> Mapping[str, str]:
        """The outputs: an interface, read by the local stack, tests and operators.

        Functions are named by their live alias: a caller always reaches the live version.
        """
        live = self.functions.live
        addresses = {
            "ApiId": self.api.http_api.api_id,
            "ApiUrl": self.api.stage.url,
            "JobsTable": self.tables.jobs.table_name,
            "WheelTable": self.tables.wheel.table_name,
            "RunsTable": self.tables.runs.table_name,
            "WebhookSecretArn": self.webhooks.secret.secret_arn,
            "DeadLetterQueueUrl": self.lanes.dead_letter_queue.queue_url,
            "TickFunction": live(self.functions.tick).function_arn,
            "DeadLetterFunction": live(self.functions.dead_letter_consumer).function_arn,
            "ApiFunction": live(self.functions.api).function_arn,
        }
        if self.api.users is not None:
            addresses["UserPoolId"] = self.api.users.pool.user_pool_id
            addresses["UserPoolClientId"] = self.api.users.client.user_pool_client_id
        if self.events is not None:
            addresses["EventBusName"] = self.events.bus.event_bus_name
            addresses["EventBusArn"] = self.events.bus.event_bus_arn
        for lane, queue in self.lanes.queues.items():
            title = lane.capitalize()
            addresses[f"QueueUrl{title}"] = queue.queue_url
            executor = self.functions.executors[lane]
            addresses[f"ExecutorFunction{title}"] = live(executor).function_arn
        return addresses


def _name_of(construct: Construct) -> str:
    """The stack's name and the construct's path in it; nothing but the stack's name where the
    construct is the stack's `Default`, which CDK passes over."""
    return Names.unique_resource_name(
        construct, separator="-", allowed_special_characters="-", max_length=LONGEST_NAME
    )


def _path(construct: Construct) -> str:
    """The ids on the way from the stack to the construct as CDK puts them before logical ids."""
    ids = construct.node.path.removeprefix(Stack.of(construct).node.path).split("/")
    return re.sub(r"[^A-Za-z0-9]", "", "".join(each for each in ids if each != "Default"))
