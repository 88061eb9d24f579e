"""What a job's members may not be together, and what a deployment does not allow.

Everything here raises InvalidFieldError.
"""

import re
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from functions.api.documents import TARGETS
from functions.api.errors import InvalidFieldsError
from functions.api.policy_fields import seconds_of
from functions.api.schemas import JobBody
from shared.domain.policies import CatchUp
from shared.domain.targets import Target, WebhookTarget
from shared.domain.templates import check_template
from shared.errors import InvalidFieldError
from shared.recurrence import CalendarRule, Delay, Every, Schedule, format_duration
from shared.settings import Settings

LIMITED = frozenset({*TARGETS, "timeout_seconds", "events"})
"""The fields that a deployment has a say in."""

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE | re.ASCII)
_LONGEST_HOST = 254
"""Characters, counting the dot behind each label."""


def refuse_contradictions(body: JobBody, schedule: Schedule) -> None:
    """Members that make no sense together; InvalidFieldsError for a template with mistakes."""
    _refuse_tolerance(body, schedule)
    _refuse_watch(body, schedule)
    if body.grace is not None and body.catch_up is CatchUp.ALL:
        raise InvalidFieldError(
            "grace", 'has no say under catch_up "all", where each one runs however late: omit it'
        )
    if body.template:
        problems = check_template(body.payload)
        if problems:
            raise InvalidFieldsError(problems)


def refuse_beyond_deployment(body: JobBody, changed: Collection[str], settings: Settings) -> None:
    """Limits of the deployment hold for what is `changed`: an older value may be beyond them."""
    for field in TARGETS:
        target: Target | None = getattr(body, field)
        if target is not None and field in changed:
            _refuse_unknown_host(field, target)
            _refuse_plain_http(field, target, settings)
            _refuse_foreign(field, target, settings)
    longest = settings.longest_timeout_seconds
    if "timeout_seconds" in changed and (body.timeout_seconds or 0) > longest:
        raise InvalidFieldError(
            "timeout_seconds", f"must be at most {longest}, the limit of this deployment"
        )
    if "events" in changed and body.events and not settings.event_bus:
        raise InvalidFieldError(
            "events", "this deployment has no event bus: set `event_bus` in the CDK context"
        )


def _refuse_tolerance(body: JobBody, schedule: Schedule) -> None:
    tolerance_seconds = seconds_of(body.tolerance)
    if tolerance_seconds is None:
        return
    if not isinstance(schedule, Every):
        raise InvalidFieldError(
            "tolerance", "needs an interval to count from: a single `every` schedule, or omit it"
        )
    if tolerance_seconds >= schedule.interval_seconds:
        interval = format_duration(schedule.interval_seconds)
        raise InvalidFieldError("tolerance", f"must be less than the interval, {interval}")


def _refuse_watch(body: JobBody, schedule: Schedule) -> None:
    if body.expect_within is None:
        return
    if isinstance(schedule, Delay):
        raise InvalidFieldError(
            "expect_within", "cannot be told for a fixed delay, which has no fire times ahead"
        )
    if body.calendar is not None and body.calendar.rule is not CalendarRule.SKIP:
        raise InvalidFieldError(
            "expect_within",
            f"cannot be told under a calendar's rule {body.calendar.rule}, which moves fire times: "
            f"use {CalendarRule.SKIP}",
        )


def _refuse_unknown_host(field: str, target: Target) -> None:
    """What no lookup can find would fail at every attempt."""
    if isinstance(target, WebhookTarget) and not _can_be_host(urlsplit(target.url).hostname or ""):
        raise InvalidFieldError(f"{field}.url", "must have the name of a host, or an IP address")


def _can_be_host(name: str) -> bool:
    try:
        ip_address(name)
        return True
    except ValueError:
        pass
    try:
        labels = name.removesuffix(".").encode("idna").decode().split(".")
    except UnicodeError:
        return False
    return sum(map(len, labels)) + len(labels) <= _LONGEST_HOST and all(
        map(_LABEL.fullmatch, labels)
    )


def _refuse_plain_http(field: str, target: Target, settings: Settings) -> None:
    """Plain http is for addresses that the operator has named; the executor checks again."""
    if not isinstance(target, WebhookTarget):
        return
    parts = urlsplit(target.url)
    if parts.scheme != "http":
        return
    try:
        address = ip_address(parts.hostname or "")
    except ValueError:
        address = None
    networks = settings.webhook_allowed_networks
    if address is None or not any(address in network for network in networks):
        raise InvalidFieldError(f"{field}.url", "must begin with https://")


def _refuse_foreign(field: str, target: Target, settings: Settings) -> None:
    """The executor's role may call what is on the list and nothing else."""
    arn = target.resource_arn
    if arn is None or settings.allows_target(arn):
        return
    member = next(name for name, value in target if value == arn)
    if settings.is_own(arn):
        reason = "belongs to this deployment itself: jobs may never call it"
    else:
        reason = "is not allowed in this deployment: add it to `target_arns` in the CDK context"
    raise InvalidFieldError(f"{field}.{member}", f"{arn} {reason}")
