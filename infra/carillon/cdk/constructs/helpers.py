"""Log retention, and acknowledged findings of cdk-nag."""

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import IConstruct

_BY_DAYS = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    120: logs.RetentionDays.FOUR_MONTHS,
    150: logs.RetentionDays.FIVE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    400: logs.RetentionDays.THIRTEEN_MONTHS,
    545: logs.RetentionDays.EIGHTEEN_MONTHS,
    731: logs.RetentionDays.TWO_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
    3653: logs.RetentionDays.TEN_YEARS,
}


def log_retention(days: int) -> logs.RetentionDays:
    """CDK's value for one of options.LOG_RETENTION_DAYS."""
    return _BY_DAYS[days]


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept what `rule` finds on `construct` and below, for `reason`."""
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=rule, reason=reason))
