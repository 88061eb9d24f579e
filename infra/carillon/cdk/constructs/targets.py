"""The AWS resources that jobs may call, and the deployment's own, which they may not."""

from collections.abc import Sequence
from contextlib import suppress

from aws_cdk import aws_iam as iam
from constructs import Construct

from carillon.cdk.constructs.functions import Functions
from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.constructs.lanes import Lanes
from carillon.cdk.constructs.parameters import Parameters
from carillon.cdk.constructs.permissions import acknowledge_wildcard, allow
from carillon.cdk.options import Options
from carillon.cdk.target_arns import actions_of


class TargetPermissions(Construct):
    """The executors' grants for what jobs may call; without any target they may read parameters
    alone.

    The grants are exact. What is the deployment's own is denied whatever is allowed, since an owner
    who could call its functions through a job could act as any owner, and who could publish to its
    topic could raise false alarms.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        options: Options,
        functions: Functions,
        lanes: Lanes,
        bus_arns: Sequence[str],
        topic_arns: Sequence[str],
        parameters: Parameters,
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        self._parameters = parameters
        self._dead_letters = lanes.dead_letter_queue.queue_arn
        self._function_arns = [each.function_arn for each in functions.all]
        queues = [each.queue_arn for each in (*lanes.queues.values(), lanes.dead_letter_queue)]
        self._topics = topic_arns
        self._own = [*self._function_arns, *queues, *bus_arns, *topic_arns]
        self._allowed: list[str] = []
        for consumer in functions.consumers:
            parameters.open_to(consumer)
        functions.assets.count_in(self._allowed)
        for pattern in options.target_arns:
            self.allow(pattern.split(":")[2], pattern)
        if options.pass_role_arns:
            for executor in functions.executors.values():
                executor.add_to_role_policy(_passing(options.pass_role_arns))

    def allow(self, service: str, arn: str, resource: object = None) -> None:
        """Let jobs call a resource of `service`, or those that a pattern covers.

        The construct of a `resource` tells the key that encrypts what is sent there, and the roles
        that a task of ECS has.
        """
        if resource is not None:
            self._allow_what_it_uses(service, resource)
        if arn in self._allowed:
            return
        if not self._allowed:
            self._refuse_own()
        self._allowed.append(arn)
        self._parameters.add("TARGET_ARNS", [arn])
        for executor in self._functions.executors.values():
            allow(executor, actions_of(service), [arn])
            acknowledge_wildcard(executor, arn, "the operator's own list of what jobs may call")

    def _allow_what_it_uses(self, service: str, resource: object) -> None:
        """Grants for the keys and roles of a resource; CDK merges those that are made twice."""
        for executor in self._functions.executors.values():
            for name in ("encryption_master_key", "master_key"):
                key = getattr(resource, name, None)
                if key is not None and executor.role is not None:
                    key.grant_encrypt_decrypt(executor.role)
            roles = _roles_of(resource) if service == "ecs" else []
            if roles:
                executor.add_to_role_policy(_passing(roles))

    def _refuse_own(self) -> None:
        self._parameters.add("OWN_ARNS", self._own)
        for function in (*self._functions.consumers, self._functions.api):
            self._parameters.read_by(function)
        roles = [each.role for each in self._functions.executors.values()]
        # Of a policy of its own: what a function's role has, the function depends on. A managed
        # one: those within a role have 10,240 characters together, which CDK fills with targets.
        denied = iam.ManagedPolicy(
            self,
            "Refused",
            description="What jobs never call: the deployment's own",
            roles=[role for role in roles if role is not None],
        )
        versions = [f"{arn}:*" for arn in self._function_arns]
        denied.add_statements(
            _denied("lambda:InvokeFunction", [*self._function_arns, *versions]),
            _denied("sqs:SendMessage", [self._dead_letters]),
            *(_denied("sns:Publish", [topic]) for topic in self._topics),
        )
        acknowledge(denied, "AwsSolutions-IAM5", "every version is denied")


def _roles_of(task_definition: object) -> list[str]:
    arns: list[str] = []
    for use in ("task", "execution"):
        with suppress(RuntimeError):  # of an imported definition that was not told its roles
            role = getattr(task_definition, f"{use}_role", None)
            arns += [] if role is None else [role.role_arn]
    return arns


def _passing(role_arns: Sequence[str]) -> iam.PolicyStatement:
    """The permission to hand these roles to tasks of ECS, and to no other service."""
    return iam.PolicyStatement(
        actions=["iam:PassRole"],
        resources=list(role_arns),
        conditions={"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
    )


def _denied(action: str, resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(effect=iam.Effect.DENY, actions=[action], resources=list(resources))
