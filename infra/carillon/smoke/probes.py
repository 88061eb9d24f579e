"""The probes: a job each, and its expected outcome."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from carillon.settings import Settings
from carillon.smoke.judging import (
    P99_SECONDS,
    Judge,
    called_back,
    chain,
    missed,
    one_run,
    retried_late,
    steady,
)

_LONGEST_RETRY_SECONDS = 300
"""The wheel brings a retry only beyond the deployment's `longest_delay_seconds`."""
_SOON = timedelta(seconds=6)
_TYPES = ("lambda", "sqs", "sns", "events", "states")


@dataclass(frozen=True, slots=True)
class Probe:
    """A job to create, `within` which time it must be judged. One without a schedule fires once,
    soon after its own creation: making all of them takes its time."""

    name: str
    body: Mapping[str, Any] = field(repr=False)
    judge: Judge = field(repr=False)
    within: timedelta = timedelta(seconds=60)


def job_of(probe: Probe, now: datetime, parent: str) -> dict[str, Any]:
    """The body that creates a probe's job at `now`; no other `parent` has one of its name."""
    soon = f"at {now + _SOON:%Y-%m-%dT%H:%M:%S}"
    name = f"{parent} {probe.name}".replace("/", ":")
    return {"name": name, "parent": parent, "schedule": soon, **probe.body}


def task(name: str) -> dict[str, str]:
    return {"type": "task", "name": name}


def quick_probes(p99_seconds: float = P99_SECONDS) -> Iterator[Probe]:
    """Probes that take little more than a minute."""
    once = {"target": task("echo")}
    late = timedelta(seconds=85)
    yield Probe("one-shot", {**once, "payload": {"a": 1}}, one_run("succeeded"))
    yield Probe("one-shot, high", {**once, "priority": "high"}, one_run("succeeded"))
    yield Probe("one-shot, low", {**once, "priority": "low"}, one_run("succeeded"))
    steps = {"schedule": "every 2s", "target": task("echo")}
    yield Probe("every 2s", steps, steady(2, 20, p99_seconds), timedelta(seconds=75))
    delay = {"schedule": "every 1s after finish", "target": task("echo")}
    yield Probe("fixed delay", delay, chain(18), late)
    minute = {"schedule": "* * * * *", "target": task("echo"), "max_runs": 1}
    yield Probe("cron", minute, one_run("succeeded"), late)
    limit = {**once, "target": task("overrun"), "payload": {"seconds": 30}, "timeout_seconds": 2}
    limit |= {"retry": {"max_attempts": 1}}
    yield Probe("killed at its limit", limit, one_run("timed_out", error="timeout"))
    crash = {**once, "target": task("die"), "retry": {"max_attempts": 1}}
    yield Probe("task that crashes", crash, one_run("dead", error="task_died"))
    fixed = {"type": "fixed", "base_seconds": 1}
    retry = {"retry": {"max_attempts": 3, "backoff": fixed}, "on_failure": task("echo")}
    fails = {**once, "target": task("fail"), **retry}
    yield Probe("retries, callback", fails, called_back)
    watched = {**once, "target": task("fail"), "retry": {"max_attempts": 1}, "expect_within": "1m"}
    yield Probe("missed-run check", watched, missed, late)


def long_probes(
    now: datetime, settings: Settings, p99_seconds: float = P99_SECONDS
) -> Iterator[Probe]:
    """Probes that take minutes: entries that wait on the wheel, and lags over five minutes."""
    steps = {"schedule": "every 1s", "target": task("echo")}
    yield Probe("every 1s, 5 min", steps, steady(1, 300, p99_seconds), timedelta(minutes=7))
    far = f"at {now + timedelta(minutes=6):%Y-%m-%dT%H:%M:%S}"
    body = {"schedule": far, "target": task("echo")}
    yield Probe("one-shot by the wheel", body, one_run("succeeded"), timedelta(minutes=7))
    delay = {"schedule": "every 5s after finish", "target": task("echo")}
    yield Probe("fixed delay, 5 min", delay, chain(45), timedelta(minutes=8))
    if settings.longest_delay_seconds <= _LONGEST_RETRY_SECONDS - 60:
        fixed = {"type": "fixed", "base_seconds": _LONGEST_RETRY_SECONDS}
        retry = {"retry": {"max_attempts": 2, "backoff": fixed}}
        late = {"target": task("fail_once"), **retry}
        yield Probe("retry by the wheel", late, retried_late, timedelta(minutes=7))


def webhook_probe(url: str, method: str) -> Probe:
    """A call of `url`; the receiver knows if its signature was valid."""
    target = {"type": "webhook", "url": url, "method": method}
    payload = {"payload": {"smoke": True}} if method == "POST" else {}
    body = {"target": target, "retry": {"max_attempts": 3}, **payload}
    return Probe("webhook", body, one_run("succeeded"))


def target_probes(texts: Sequence[str]) -> Iterator[Probe]:
    """A call of each AWS resource: by its ARN, whose service names the type, or by a target in
    JSON."""
    for text in texts:
        target = target_of(text)
        body = {"target": target, "payload": {"smoke": True}}
        arn = next(value for value in target.values() if str(value).startswith("arn:"))
        name = f"{target['type']} {arn.split(':', 5)[-1]}"
        yield Probe(name, body, one_run("succeeded"))


def target_of(text: str) -> dict[str, Any]:
    """The target that calls a resource; raises ValueError for one that jobs cannot call."""
    if text.startswith("{"):
        target = json.loads(text)
        if "type" not in target or not any(str(x).startswith("arn:") for x in target.values()):
            raise ValueError(f"{text!r} is no target: it needs a type, and the ARN of a resource")
        return dict(target)
    service = text.split(":")[2] if text.count(":") >= 5 else ""
    types = {
        "lambda": {"type": "lambda", "function_arn": text},
        "sqs": {"type": "sqs", "queue_arn": text},
        "sns": {"type": "sns", "topic_arn": text},
        "events": {"type": "eventbridge", "bus_arn": text, "source": "smoke", "detail_type": "try"},
        "states": {"type": "stepfunctions", "state_machine_arn": text},
    }
    if service not in types:
        raise ValueError(f"{text!r} is none of {', '.join(_TYPES)}, nor a target in JSON")
    return types[service]


def untried_types(settings: Settings, arns: Sequence[str]) -> list[str]:
    """The services whose resources the deployment lets jobs call, and that no ARN was given for."""
    allowed = {pattern.split(":")[2] for pattern in settings.target_arns if ":" in pattern}
    return sorted(service for service in allowed if not any(f":{service}:" in arn for arn in arns))
