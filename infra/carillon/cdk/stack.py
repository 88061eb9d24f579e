"""The stack: puts the capabilities together and outputs their addresses."""

from aws_cdk import CfnOutput, Stack, Tags
from constructs import Construct

from carillon.cdk.constructs.api import Api
from carillon.cdk.constructs.dashboard import Dashboard, Watched
from carillon.cdk.constructs.functions import Functions
from carillon.cdk.constructs.lanes import Lanes
from carillon.cdk.constructs.notifications import STACK_TAG, Notifications
from carillon.cdk.constructs.observability import Observability
from carillon.cdk.constructs.storage import Events, Tables, Webhooks
from carillon.cdk.constructs.ticker import Clock
from carillon.cdk.options import ON_AWS, Emulation, Options


class CarillonStack(Stack):
    """Everything of one deployment, in any account and region; `emulation` is for the local
    stack alone."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        options: Options,
        emulation: Emulation = ON_AWS,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            # Permissions and what jobs may not call go by this name, in whichever app.
            stack_name=options.stack_name,
            description="Carillon: a serverless job scheduler",
        )
        self.tables = Tables(self, "Tables", options)
        self.lanes = Lanes(self, "Lanes", options)
        self.webhooks = Webhooks(self, "Webhooks", options)
        self.events = Events(self, "Events") if options.event_bus else None
        self.functions = Functions(
            self,
            "Functions",
            options,
            emulation,
            self.tables,
            self.lanes,
            self.webhooks.secret,
            None if self.events is None else self.events.bus,
        )
        self.clock = Clock(self, "Clock", options, self.functions.live(self.functions.tick))
        self.api = Api(self, "Api", options, self.functions.live(self.functions.api))
        self.functions.api.add_environment("ISSUER", self.api.issuer)
        self.functions.api.add_environment("AUDIENCE", self.api.audience)
        self._watch(options, emulation)
        Tags.of(self).add(STACK_TAG, options.stack_name)
        for output, value in self._addresses().items():
            CfnOutput(self, output, value=value)

    def _watch(self, options: Options, emulation: Emulation) -> None:
        watched = Watched(self.functions, self.tables, self.lanes, self.api.http_api)
        notifications = Notifications(self, "Notifications", options)
        observability = Observability(
            self,
            "Observability",
            options,
            watched,
            notifications,
            has_sums=not emulation.is_on,
        )
        if options.dashboard:
            Dashboard(self, "Dashboard", options.stack_name, watched, observability.alarms)

    def _addresses(self) -> dict[str, str]:
        """The stack's outputs: an interface, read by the local stack, tests and operators.

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
