"""Contradictions between a job's members, and limits of the deployment.

Every `refuse_` function raises InvalidFieldsError with all that is wrong.
"""

import json
import re
from collections.abc import Collection
from functools import partial
from urllib.parse import urlsplit

from carillon.api.http.problems import InvalidFieldsError, refuse_all
from carillon.domain.addresses import ascii_host, is_public, lies_in, literal_address
from carillon.domain.policies import CatchUp
from carillon.domain.spec.containers import (
    LONGEST_REPORT,
    LONGEST_TRACEPARENT,
    longest_values,
    run_variables,
)
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.merge_patch import TARGETS
from carillon.domain.targets import (
    BatchTarget,
    EcsTarget,
    Target,
    TaskTarget,
    WebhookTarget,
    arns_called,
)
from carillon.domain.templates import check_template, render_payload
from carillon.errors import InvalidFieldError
from carillon.schedules import (
    DEFAULT_DST,
    CalendarRule,
    Delay,
    Every,
    Schedule,
    format_duration,
)
from carillon.settings import Settings
from carillon.tasks import UnknownTaskError

LIMITED = frozenset({*TARGETS, "timeout_seconds", "events"})
"""The fields that a deployment limits."""

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE | re.ASCII)
_LONGEST_HOST = 254
"""Characters, counting the dot behind each label."""


_OF_SCHEDULES = (
    *("except_", "start_at", "end_at", "max_runs", "dst", "catch_up", "grace"),
    *("tolerance", "expect_within", "on_complete", "window", "calendar"),
)
_DEFAULTS = {"except_": [], "dst": DEFAULT_DST}
"""The forms of defaults in a stored job, where they differ from those in a request."""


def refuse_settings_of_schedules(spec: JobSpec) -> None:
    """Settings of a schedule, beside `after`. A time zone means nothing there, but the defaults of
    a manifest may give it."""
    if spec.after is None:
        return
    fields = {name: JobSpec.model_fields[name] for name in _OF_SCHEDULES}
    said = [
        (field.alias or name, "is a setting of a schedule: it goes without `after`")
        for name, field in fields.items()
        if getattr(spec, name) not in (field.default, _DEFAULTS.get(name))
    ]
    if said:
        raise InvalidFieldsError(said)


def refuse_contradictions(spec: JobSpec, schedule: Schedule) -> None:
    """Members that make no sense together."""
    refuse_all(
        lambda: _refuse_tolerance(spec, schedule),
        lambda: _refuse_watch(spec, schedule),
        lambda: _refuse_grace(spec),
        lambda: _refuse_bodiless_payload(spec),
        lambda: _refuse_template(spec),
        lambda: _refuse_large_overrides(spec),
    )


def refuse_beyond_deployment(spec: JobSpec, changed: Collection[str], settings: Settings) -> None:
    """Limits of the deployment hold for what is `changed`: an older value may be beyond them."""
    checks = [
        partial(refuse_target, field, target, settings)
        for field in TARGETS
        if (target := getattr(spec, field)) is not None and field in changed
    ]
    if "timeout_seconds" in changed:
        checks.append(partial(_refuse_timeout, spec, settings))
    if "events" in changed:
        checks.append(partial(_refuse_events, spec, settings))
    refuse_all(*checks)


def refuse_target(field: str, target: Target, settings: Settings) -> None:
    """A target that could never be called in this deployment."""
    refuse_all(
        *(
            partial(check, field, target, settings)
            for check in (_refuse_host, _refuse_foreign, _refuse_unknown_task)
        )
    )


def _refuse_timeout(spec: JobSpec, settings: Settings) -> None:
    longest = settings.longest_timeout_seconds
    if (spec.timeout_seconds or 0) > longest:
        raise InvalidFieldError(
            "timeout_seconds", f"must be at most {longest}, the limit of this deployment"
        )


def _refuse_events(spec: JobSpec, settings: Settings) -> None:
    if spec.events and not settings.event_bus:
        raise InvalidFieldError(
            "events", "this deployment has no event bus: set `event_bus` in the CDK context"
        )


def _refuse_grace(spec: JobSpec) -> None:
    if spec.grace is not None and spec.catch_up is CatchUp.ALL:
        raise InvalidFieldError(
            "grace", 'has no say under catch_up "all", where each one runs however late: omit it'
        )


def _refuse_template(spec: JobSpec) -> None:
    if problems := _template_problems(spec):
        raise InvalidFieldsError(problems)


def _template_problems(spec: JobSpec) -> list[tuple[str, str]]:
    if not spec.template:
        return []
    return check_template(json.loads(spec.payload), runs_after=spec.after is not None)


def _refuse_bodiless_payload(spec: JobSpec) -> None:
    """It would be dropped. A callback's is Carillon's own, so that a GET may well do as a ping."""
    target = spec.target
    if isinstance(target, WebhookTarget) and target.is_bodiless and spec.payload != "null":
        raise InvalidFieldError(
            "payload",
            f"cannot go with {target.method}, which has no body: omit it, or use POST, PUT or "
            "PATCH, or say it in the URL's query",
        )


def _refuse_large_overrides(spec: JobSpec) -> None:
    """A payload that its container could not get. A callback's is judged when it is called."""
    target = spec.target
    if not isinstance(target, EcsTarget | BatchTarget):
        return
    if isinstance(target, EcsTarget) and target.container is None:
        needing = {"payload": spec.payload != "null", "target.completion": target.completion}
        for field in (name for name, is_given in needing.items() if is_given):
            message = "needs `target.container`, the name of the container that gets it"
            raise InvalidFieldError(field, message)
    if _template_problems(spec):
        return  # it is refused as a template, and could grow without bounds
    values = longest_values(spec.name, spec.tags)
    payload = render_payload(spec.payload, values) if spec.template else spec.payload
    try:
        report_to = None if target.completion is None else LONGEST_REPORT
        target.overrides(run_variables(values, payload, report_to, LONGEST_TRACEPARENT))
    except ValueError as error:
        raise InvalidFieldError("payload", str(error)) from error


def _refuse_tolerance(spec: JobSpec, schedule: Schedule) -> None:
    if spec.tolerance is None:
        return
    if not isinstance(schedule, Every):
        raise InvalidFieldError(
            "tolerance", "needs an interval to count from: a single `every` schedule, or omit it"
        )
    if spec.tolerance >= schedule.interval_seconds:
        interval = format_duration(schedule.interval_seconds)
        raise InvalidFieldError("tolerance", f"must be less than the interval, {interval}")


def _refuse_watch(spec: JobSpec, schedule: Schedule) -> None:
    if spec.expect_within is None:
        return
    if isinstance(schedule, Delay):
        raise InvalidFieldError(
            "expect_within", "cannot be told for a fixed delay, which has no fire times ahead"
        )
    if spec.calendar is not None and spec.calendar.rule is not CalendarRule.SKIP:
        raise InvalidFieldError(
            "expect_within",
            f"cannot be told under a calendar's rule {spec.calendar.rule}, which moves fire times: "
            f"use {CalendarRule.SKIP}",
        )


def _refuse_host(field: str, target: Target, settings: Settings) -> None:
    """A target that would fail at every attempt: the executor judges each address again.

    Plain http, and addresses that are not public, are for networks that the operator has named.
    """
    if not isinstance(target, WebhookTarget):
        return
    parts = urlsplit(target.url)
    host = parts.hostname or ""
    if not _can_be_host(host):
        raise InvalidFieldError(
            f"{field}.url",
            "must have the name of a host, in which ß and ς are written as xn--…, or an IP address",
        )
    address = literal_address(ascii_host(host))
    if address is not None and lies_in(address, settings.webhook_allowed_networks):
        return
    if parts.scheme == "http":
        raise InvalidFieldError(f"{field}.url", "must begin with https://")
    if address is not None and not is_public(address):
        raise InvalidFieldError(
            f"{field}.url",
            f"has the address {address}, which is not public: this deployment calls such only in "
            "the networks of `webhook_allowed_networks` in the CDK context",
        )


def _can_be_host(name: str) -> bool:
    if literal_address(name) is not None:
        return True
    try:
        labels = ascii_host(name.removesuffix(".")).split(".")
    except UnicodeError:
        return False
    return sum(map(len, labels)) + len(labels) <= _LONGEST_HOST and all(
        map(_LABEL.fullmatch, labels)
    )


def _refuse_foreign(field: str, target: Target, settings: Settings) -> None:
    """The executor's role may call the resources on the list and no others."""
    for member, arn in arns_called(target).items():
        if settings.allows_target(arn):
            continue
        if settings.is_own(arn):
            reason = "belongs to this deployment itself: jobs may never call it"
        else:
            reason = "is not allowed in this deployment: add it to `target_arns` in the CDK context"
        raise InvalidFieldError(f"{field}.{member}", f"{arn} {reason}")


def _refuse_unknown_task(field: str, target: Target, settings: Settings) -> None:
    """A task that would be dead at its first fire: synthesis has listed those that there are."""
    if not isinstance(target, TaskTarget) or not settings.task_names:
        return
    if target.name not in settings.task_names:
        error = UnknownTaskError(target.name, settings.task_names)
        raise InvalidFieldError(f"{field}.name", str(error))
