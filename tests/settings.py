"""Every setting of a job with values that are taken and values that are refused.

Tests of the API, of patches, of the stores and of the CLI take their cases from this table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from carillon.domain.spec.job_spec import JobSpec

FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:work"
TASK = {"type": "task", "name": "echo"}
BODY: dict[str, Any] = {"name": "job", "schedule": "every 5m", "target": TASK}
"""A body with what is required."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`good` are pairs of a value as it is given and as it is answered, `bad` of one that is
    refused and the path that the refusal names. `default` is what null is answered as."""

    good: tuple[tuple[Any, Any], ...]
    bad: tuple[tuple[Any, str], ...]
    default: Any = None


def _same(*values: Any) -> tuple[tuple[Any, Any], ...]:
    return tuple((value, value) for value in values)


def _bad(member: str, *values: Any) -> tuple[tuple[Any, str], ...]:
    return tuple((value, member) for value in values)


_INSTANTS = (
    ("2026-12-01T09:00:00+02:00", "2026-12-01T07:00:00Z"),
    ("2026-12-01T09:00:00", "2026-12-01T09:00:00Z"),
)
_NO_INSTANTS = ("tomorrow", 1_767_225_600, "2026-12-01", "2026-12-01T00:00:00.5Z")
_RETRY = {
    "max_attempts": 3,
    "backoff": {"base_seconds": 2, "factor": 2.0, "cap_seconds": 3600, "type": "exponential"},
    "retry_on": [],
}
_HOOK = {
    "type": "webhook",
    "completion": {"within": "2h", "heartbeat": "5m"},
    "url": "https://example.com/ü?a=b",
    "method": "PUT",
    "headers": {"X-Plain": "a b", "X-Key": {"secret": "partner-key"}},
    "signing_secret": {"parameter": "signing"},
}
_LAMBDA = {
    "type": "lambda",
    "completion": {"within": "1d", "heartbeat": "1h"},
    "function_arn": FUNCTION,
    "invocation": "event",
}


def _bad_targets(member: str) -> tuple[tuple[Any, str], ...]:
    hook = {"type": "webhook", "url": "https://example.com/"}
    return (
        ("echo", member),
        ({"name": "echo"}, f"{member}.type"),
        ({"type": "lambada", "name": "echo"}, f"{member}.type"),
        ({"type": "task"}, f"{member}.name"),
        ({"type": "task", "name": "a b"}, f"{member}.name"),
        ({**TASK, "url": "https://a.test/"}, f"{member}.url"),
        ({**TASK, "completion": {}}, f"{member}.completion"),
        (hook | {"completion": {"within": "9s"}}, f"{member}.completion.within"),
        (hook | {"completion": {"within": "15d"}}, f"{member}.completion.within"),
        (hook | {"completion": {"heartbeat": "2s"}}, f"{member}.completion.heartbeat"),
        (hook | {"completion": {"within": "1m", "heartbeat": "2m"}}, f"{member}.completion"),
        ({"type": "webhook", "url": "ftp://example.com/"}, f"{member}.url"),
        ({"type": "webhook", "url": "https://u:p@example.com/"}, f"{member}.url"),
        ({"type": "sqs", "queue_arn": "orders"}, f"{member}.queue_arn"),
        (hook | {"headers": {"Host": "x"}}, f"{member}.headers"),
        (hook | {"headers": {"X-A": 5}}, f"{member}.headers.X-A"),
        (hook | {"headers": {"X-A": "line\nbreak"}}, f"{member}.headers.X-A"),
        (hook | {"headers": {"X-A": {"secret": "a/b"}}}, f"{member}.headers.X-A.secret"),
    )


SETTINGS: dict[str, Setting] = {
    "name": Setting(_same("ü", "x" * 128), _bad("name", "", "  ", "x" * 129, 5)),
    "description": Setting(
        _same("Bills\nof März", "x" * 1024), _bad("description", "", "x" * 1025, 5)
    ),
    "schedule": Setting(
        (
            ({"every": "600s"}, "every 10m"),
            (["0 9 * * 1-5", {"cron": "0 12 * * 6"}], ["0 9 * * 1-5", "0 12 * * 6"]),
        ),
        (
            *_bad("schedule", 5, [], ["every 5m"] * 21, ["every 5m", 5], {}, {"any": []}),
            *_bad("schedule", "every now and then", "61 * * * *"),
            (["every 5m", "every 5m after finish"], "schedule"),
            (["every 5m", "61 * * * *"], "schedule[1]"),
            (["every 5m", {"cron": "61 * * * *"}], "schedule[1].cron"),
            ({"every": "x"}, "schedule.every"),
            ({"every": "5m", "offset": "5m"}, "schedule.offset"),
            ({"every": "5m", "timezone": "UTC"}, "schedule.timezone"),
        ),
    ),
    "except": Setting(
        _same([], ["* * 25 12 *"]),
        (
            *_bad("except", "* * 25 12 *", ["* * 25 12 *"] * 21, [5], ["every 5m"]),
            (["61 * * * *"], "except[0]"),
        ),
        [],
    ),
    "timezone": Setting(_same("Europe/Riga"), _bad("timezone", "Europe/Rigga", "", 5), "UTC"),
    "start_at": Setting(_INSTANTS, _bad("start_at", *_NO_INSTANTS, "0001-01-01T00:00:00+14:00")),
    "end_at": Setting(_INSTANTS, _bad("end_at", *_NO_INSTANTS)),
    "max_runs": Setting(_same(1, 10_000), _bad("max_runs", 0, 10_001, "3", True)),
    "dst": Setting(
        (
            ({"gap": "skip"}, {"gap": "skip", "fold": None}),
            *_same({"gap": "run_after", "fold": "both"}),
        ),
        (
            *_bad("dst", "skip", 5),
            ({"gap": "jump"}, "dst.gap"),
            ({"fold": "third"}, "dst.fold"),
            ({"when": "now"}, "dst.when"),
        ),
        {"gap": None, "fold": None},
    ),
    "after": Setting(
        (
            ("nightly", {"job": "nightly", "when": "succeeded", "within": None}),
            *_same({"job": "Nightly", "when": "finished", "within": "2h"}),
        ),
        (
            *_bad("after", 5, []),
            ("", "after.job"),
            ({}, "after.job"),
            ({"job": "a\nb"}, "after.job"),
            ({"job": "nightly", "when": "skipped"}, "after.when"),
            ({"job": "nightly", "within": "0s"}, "after.within"),
            ({"job": "nightly", "within": "15d"}, "after.within"),
            ({"job": "nightly", "schedule": "@daily"}, "after.schedule"),
        ),
    ),
    "target": Setting(
        _same(_HOOK, TASK, _LAMBDA),
        _bad_targets("target"),
    ),
    "payload": Setting(
        _same({"a": [1, True, "ü", None, 1.5]}, "text", 0, False, [], {"schedule": {}}), ()
    ),
    "template": Setting(_same(True), _bad("template", "yes", 1), False),
    "priority": Setting(_same("high", "low"), _bad("priority", "urgent", "slow", 5), "normal"),
    "result": Setting(_same("full"), _bad("result", "all", 5), "beginning"),
    "catch_up": Setting(_same("skip", "all"), _bad("catch_up", "some", 5), "latest"),
    "grace": Setting(
        (("PT10M", "10m"), ("1s", "1s"), ("14d", "14d")),
        _bad("grace", "0s", "15d", 60, "soon", "x" * 65),
    ),
    "overlap": Setting(_same("skip", "queue_one"), _bad("overlap", "queue", 5), "allow"),
    "tolerance": Setting(
        (("0s", "0s"), ("PT1M30S", "1m30s")), _bad("tolerance", "-1s", "367d", 30)
    ),
    "concurrency": Setting(
        _same({"key": "printer / ü", "limit": 100}),
        (
            *_bad("concurrency", "k", 5),
            ({"key": "k"}, "concurrency.limit"),
            ({"key": "", "limit": 1}, "concurrency.key"),
            ({"key": "a\nb", "limit": 1}, "concurrency.key"),
            ({"key": "k" * 129, "limit": 1}, "concurrency.key"),
            ({"key": "k", "limit": 0}, "concurrency.limit"),
            ({"key": "k", "limit": 101}, "concurrency.limit"),
            ({"key": "k", "limit": 1, "of": 2}, "concurrency.of"),
        ),
    ),
    "rate": Setting(
        (
            ({"limit": 10_000, "per": "86400s"}, {"limit": 10_000, "per": "1d", "key": ""}),
            ({"limit": 1, "per": "1s", "key": None}, {"limit": 1, "per": "1s", "key": ""}),
            *_same({"limit": 5, "per": "1m", "key": "mail"}),
        ),
        (
            *_bad("rate", "60/1m"),
            ({"limit": 1}, "rate.per"),
            ({"limit": 1, "per": 60}, "rate.per"),
            ({"limit": 0, "per": "1s"}, "rate.limit"),
            ({"limit": 10_001, "per": "1s"}, "rate.limit"),
            ({"limit": 1, "per": "0s"}, "rate.per"),
            ({"limit": 1, "per": "25h"}, "rate.per"),
            ({"limit": 1, "per": "1s", "key": "\x7f"}, "rate.key"),
        ),
    ),
    "retry": Setting(
        (
            (
                {
                    "max_attempts": None,
                    "backoff": {"type": "fixed", "base_seconds": 7, "factor": None},
                    "retry_on": ["timeout", "http_5xx", "timeout", "my.Error"],
                },
                {
                    "max_attempts": 3,
                    "backoff": _RETRY["backoff"] | {"type": "fixed", "base_seconds": 7},  # type: ignore[operator]
                    "retry_on": ["timeout", "http_5xx", "my.Error"],
                },
            ),
            ({"max_attempts": 100, "retry_on": None}, _RETRY | {"max_attempts": 100}),
            ({"backoff": None}, _RETRY),
        ),
        (
            *_bad("retry", 5),
            *_bad("retry.max_attempts", *({"max_attempts": bad} for bad in (0, 101, "3", True))),
            ({"attempts": 3}, "retry.attempts"),
            ({"backoff": {"base_seconds": 0}}, "retry.backoff.base_seconds"),
            ({"backoff": {"base_seconds": 86_401}}, "retry.backoff.base_seconds"),
            ({"backoff": {"factor": 0.5}}, "retry.backoff.factor"),
            ({"backoff": {"factor": 101}}, "retry.backoff.factor"),
            ({"backoff": {"cap_seconds": 604_801}}, "retry.backoff.cap_seconds"),
            ({"backoff": {"type": "linear"}}, "retry.backoff.type"),
            ({"backoff": {"jitter": 1}}, "retry.backoff.jitter"),
            ({"retry_on": "timeout"}, "retry.retry_on"),
            ({"retry_on": ["a b"]}, "retry.retry_on[0]"),
            ({"retry_on": ["timeout", "fail"]}, "retry.retry_on[1]"),
            ({"retry_on": ["x"] * 21}, "retry.retry_on"),
        ),
        _RETRY,
    ),
    "timeout_seconds": Setting(_same(1, 55), _bad("timeout_seconds", 0, 896, 1.5, "5", True)),
    "pause_after_failures": Setting(_same(1, 20), _bad("pause_after_failures", 0, 21, "3", 2.5)),
    "expect_within": Setting(
        (("60s", "1m"), ("7d", "7d")), _bad("expect_within", "59s", "8d", 600)
    ),
    "on_success": Setting(_same(TASK, _HOOK), _bad_targets("on_success")),
    "on_failure": Setting(_same(TASK, _LAMBDA), _bad_targets("on_failure")),
    "events": Setting(
        ((["run.dead", "job.paused", "run.dead"], ["run.dead", "job.paused"]),),
        (
            *_bad("events", "run.dead"),
            (["run.dead", "run.eaten"], "events[1]"),
            (["scheduler.idle"], "events[0]"),
        ),
        [],
    ),
    "initial_state": Setting(_same("active"), _bad("initial_state", "asleep"), "active"),
    "on_complete": Setting(_same("delete"), _bad("on_complete", "explode"), "keep"),
    "window": Setting(
        (("PT2M", "2m"), ("50%", "50%")),
        _bad("window", "", 15, "soon", "0s", "25h", "101%"),
    ),
    "calendar": Setting(
        (
            ({"name": "holidays"}, {"name": "holidays", "rule": "skip"}),
            *_same({"name": "holidays", "rule": "next_business_day"}),
        ),
        (
            *_bad("calendar", "holidays", 5),
            ({}, "calendar.name"),
            ({"name": "Holidays"}, "calendar.name"),
            ({"name": "x", "rule": "sometimes"}, "calendar.rule"),
            ({"name": "x", "weekdays": []}, "calendar.weekdays"),
        ),
    ),
    "parent": Setting(_same("channel 7 ü"), _bad("parent", "", "a\tb", "p" * 129, 5)),
    "tags": Setting(
        _same({}, {"a.b-c_D": "", "team": "billing ü"}),
        (
            *_bad("tags", ["a"], {str(number): "" for number in range(21)}),
            ({"a:b": "c"}, "tags.a:b"),
            ({"a": "b,c"}, "tags.a"),
            ({"a": 5}, "tags.a"),
            ({"a": "x" * 257}, "tags.a"),
        ),
        {},
    ),
}
REQUIRED = ("name", "schedule", "target")
GOOD = [(name, *pair) for name, setting in SETTINGS.items() for pair in setting.good]
BAD = [(name, *pair) for name, setting in SETTINGS.items() for pair in setting.bad]


def body_of(name: str, value: Any, rest: dict[str, Any] = BODY) -> dict[str, Any]:
    """A body with this setting; `after` stands in the place of the schedule."""
    return rest | {name: value} | ({"schedule": None} if name == "after" else {})


def members() -> Iterator[str]:
    """The names of all settings in JSON."""
    for name, field in JobSpec.model_fields.items():
        yield field.alias or name
