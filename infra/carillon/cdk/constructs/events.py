"""The bus of lifecycle events, for whoever subscribes to it with rules of their own."""

from aws_cdk import Stack
from aws_cdk import aws_events as events
from constructs import Construct


class Events(Construct):
    """A bus that only the deployment's own functions put events on; without rules it is free."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        # Named like the stack's other resources, so that jobs are refused it as a target.
        name = f"{Stack.of(self).stack_name}-events"
        self.bus = events.EventBus(
            self, "Bus", event_bus_name=name, description="Lifecycle events of Carillon"
        )
