"""Notifications about the deployment: the topics of its alarms, and the budget."""

from aws_cdk import Annotations, ArnFormat, Stack
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.options import Options

STACK_TAG = "carillon:stack"
"""Every resource has it, with the stack's name; the budget counts by it. Costs are separated by a
tag only once it is activated for cost allocation (docs/operate.md)."""

BUDGET_SHARES = (("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100))
"""The notified shares: spent, or to be spent by the end of the month, in percent of the budget."""


class Notifications(Construct):
    """An existing topic (`alarm_topic`), one of our own with an e-mail address behind it
    (`alarm_email`), both, or neither; and a budget (`monthly_budget_dollars`). `own_arns` has the
    topic of our own."""

    def __init__(self, scope: Construct, construct_id: str, options: Options) -> None:
        super().__init__(scope, construct_id)
        self._options = options
        self._topics: list[sns.ITopic] = []
        self.own_arns: list[str] = []
        if options.alarm_topic:
            topic = sns.Topic.from_topic_arn(self, "Existing", options.alarm_topic)
            self._topics.append(topic)
        if options.alarm_email:
            own = self._own_topic(options.alarm_email)
            self._topics.append(own)
            self.own_arns.append(own.topic_arn)
        if options.keep_data and not self._topics:
            Annotations.of(self).add_warning_v2(
                "carillon:alarms", "alarms notify nobody: set alarm_email or alarm_topic"
            )
        if options.monthly_budget_dollars:
            self._budget(options.monthly_budget_dollars)

    def attach(self, alarm: cloudwatch.Alarm) -> None:
        """Have the alarm notify every topic, when it is raised and when it is over."""
        for topic in self._topics:
            alarm.add_alarm_action(actions.SnsAction(topic))
            alarm.add_ok_action(actions.SnsAction(topic))

    def _own_topic(self, email: str) -> sns.Topic:
        # Without a key of KMS: alarms cannot publish under SNS's own, one of ours costs $1 a month,
        # and their messages hold names and figures, which leave by e-mail anyway.
        topic = sns.Topic(self, "Alarms", enforce_ssl=True)
        topic.add_subscription(subscriptions.EmailSubscription(email))
        reason = "SNS itself repeats e-mails; an alarm's state stays to be looked at"
        acknowledge(topic, "Serverless-SNSRedrivePolicy", reason)
        stack = Stack.of(self)
        alarms = stack.format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name="*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        # A policy of one's own takes the place of the one that lets the account's alarms in.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {"aws:SourceArn": alarms},
                },
            )
        )
        return topic

    def _budget(self, dollars: int) -> None:
        budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                # One account has its budgets, whatever their stacks' regions.
                budget_name=f"{self._options.name}-{Stack.of(self).region}",
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=dollars, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{STACK_TAG}${self._options.name}"]},
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        notification_type=kind,
                        comparison_operator="GREATER_THAN",
                        threshold=percent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=self._subscribers(),
                )
                for kind, percent in BUDGET_SHARES
            ],
        )

    def _subscribers(self) -> list[budgets.CfnBudget.SubscriberProperty]:
        """The e-mail address itself, not its topic: Budgets may not publish there."""
        addresses = {"SNS": self._options.alarm_topic, "EMAIL": self._options.alarm_email}
        return [
            budgets.CfnBudget.SubscriberProperty(subscription_type=kind, address=address)
            for kind, address in addresses.items()
            if address
        ]
