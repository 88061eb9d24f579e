import json
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

import pytest

from carillon.cdk.options import LANES, Options
from carillon.domain.job import Lane
from carillon.errors import ConfigurationError
from tests.infra.stacks import REPOSITORY, TARGETS, default_context

DEFAULTS: dict[str, Any] = {
    each.name: each.default_factory()
    for each in fields(Options)
    if each.default_factory is not MISSING
}


def rows() -> Iterator[str]:
    """The table of docs/options.md, as the options declare it."""
    for each in fields(Options):
        read = each.metadata["read"]
        bounds = f" ({read.least:,} to {read.most:,})" if hasattr(read, "most") else ""
        yield f"| `{each.name}` | {shown(DEFAULTS[each.name])}{bounds} | {each.metadata['words']} |"


def shown(default: object) -> str:
    if default in ("", (), {}):
        return "none"
    if isinstance(default, tuple):
        return ", ".join(default)
    # In a table of Markdown a bar ends the cell.
    text = default if isinstance(default, str) else json.dumps(default).replace('"', "")
    return f"`{default}`".replace("|", "\\|") if "|" in text else text


def test_the_documents_have_the_table_of_the_options() -> None:
    text = (REPOSITORY / "docs" / "options.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("| `")] == [*rows()]


def test_this_repository_s_own_stack_has_the_defaults() -> None:
    assert Options.from_context(default_context()) == Options()


def test_values_of_the_command_line_mean_what_they_mean_in_cdk_json() -> None:
    """`-c key=value` gives text, whatever the value."""
    context = {key: value for key, value in DEFAULTS.items() if key != "secrets_prefix"}
    texts = {
        key: ",".join(value) if isinstance(value, tuple) else json.dumps(value)
        for key, value in context.items()
        if not isinstance(value, str)
    }
    assert Options.from_context(texts) == Options.from_context(context) == Options()


def test_lists_are_separated_by_commas() -> None:
    options = Options.from_context(
        {
            "webhook_allowed_networks": "10.0.0.0/8, fd00::/8,",
            "task_modules": "tasks.one,tasks.two",
            "target_arns": ", ".join(TARGETS),
        }
    )
    assert options.target_arns == TARGETS
    assert [*map(str, options.webhook_allowed_networks)] == ["10.0.0.0/8", "fd00::/8"]
    assert options.task_modules == ("tasks.one", "tasks.two")


@pytest.mark.parametrize(("stage", "keeps"), [("production", True), ("local", False)])
def test_only_production_keeps_its_data(stage: str, keeps: bool) -> None:
    assert Options(stage=stage).keep_data is keeps


def test_no_stage_reads_the_secrets_of_another() -> None:
    stages = ({"stage": "production"}, {"stage": "dev"}, {"stage": "dev", "secrets_prefix": "own"})
    options = [Options.from_context(chosen) for chosen in stages]
    assert [each.secrets_prefix for each in options] == ["carillon", "carillon-dev", "own"]


@pytest.mark.parametrize("name", ["AwsBilling-Scheduler-C16716F1", "ssm"])
def test_a_name_that_can_be_no_prefix_of_secrets_needs_one(name: str) -> None:
    """Functions would refuse it when they start, all of them."""
    with pytest.raises(ConfigurationError) as raised:
        Options(name=name)
    assert raised.value.name == "secrets_prefix"
    assert Options(name=name, secrets_prefix="billing").secrets_prefix == "billing"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stage", "Production"),
        ("stage", "seventeen-letters"),
        ("stage", ""),
        ("segments", 0),
        ("segments", 4097),
        ("segments", "many"),
        ("segments", True),
        ("segments", 1.5),
        ("segments", "-1"),
        ("segments", []),
        ("tick_workers", 65),
        ("look_ahead_minutes", 0),
        ("team_claim", ""),
        ("team_claim", "my groups"),
        ("team_pattern", ""),
        ("team_pattern", "("),
        ("team_pattern", "[a-z]+:(?P<role>viewer)"),
        ("team_pattern", "(?P<team>[a-z]+)"),
        ("team_default_role", "owner"),
        ("machine_scope_claim", ""),
        ("personal_jobs", "perhaps"),
        ("look_ahead_minutes", 11),
        ("run_retention_days", 0),
        ("executor_timeout_seconds", 901),
        ("executor_timeout_seconds", 5),
        ("tick_timeout_seconds", 901),
        ("tick_timeout_seconds", 9),
        ("log_retention_days", 8),
        ("lanes", "{"),
        ("lanes", {"high": {"max_concurrency": 5}}),
        ("issuer", 5),
        ("webhook_allowed_networks", "10.0.0.1/8"),
        ("webhook_allowed_networks", "intranet"),
        ("task_modules", ""),
        ("task_modules", "tasks.py/own"),
        ("target_arns", "*"),
        ("target_arns", f"{TARGETS[0]},orders"),
        ("target_arns", [TARGETS[0], "orders"]),
        ("pass_role_arns", "report-task"),
        ("pass_role_arns", "arn:aws:iam::123456789012:role/*"),
        ("pass_role_arns", "arn:aws:iam::123456789012:user/a"),
        ("event_bus", "maybe"),
        ("event_bus", 1),
        ("event_bus", "my-bus"),
        ("secrets_prefix", "/carillon"),
        ("secrets_prefix", "carillon/"),
        ("secrets_prefix", "carillon/*"),
        ("secrets_prefix", "a/b/c/d/e/f"),
        ("secrets_prefix", "a" * 61),
        ("secrets_prefix", "AWS-secrets"),
        ("secrets_prefix", "ssm/carillon"),
        ("owner_starts_per_minute", -1),
        ("owner_starts_per_minute", 10_000_001),
        ("owner_concurrent_runs", -1),
        ("owner_concurrent_runs", 1001),
        ("owner_requests_per_second", -1),
        ("owner_requests_per_second", 1_001),
        ("owner_requests_burst", 0),
        ("owner_requests_burst", 501),
        ("tracing", "cloudwatch"),
        ("tracing", "collector:4318"),
        ("tracing", "https://user:word@collector/v1/traces"),
        ("tracing", "https://collector/v1/traces?key=word"),
        ("trace_percent", 0),
        ("trace_percent", 101),
        ("catch_up_per_minute", 0),
        ("catch_up_per_minute", 10_000_001),
        ("memory_mb", "512"),
        ("memory_mb", {"tick": 512}),
        ("memory_mb", {"tick": 512, "executor": 512, "api": 512, "worker": 512}),
        ("tick_reserved_concurrency", "2"),
        ("warm_write_units", -1),
        ("warm_write_units", 3_999),
        ("warm_write_units", 1_000_001),
        ("cors_origins", "*"),
        ("cors_origins", "https://console.example.com/"),
        ("alarm_topic", "on-call"),
        ("alarm_topic", "arn:aws:sqs:eu-west-1:123456789012:on-call"),
        ("alarm_topic", "arn:aws:sns:eu-west-1:123456789012:on-call.fifo"),
        ("alarm_email", "on-call"),
        ("alarm_email", "on-call@example.com, boss@example.com"),
        ("alarm_lost_runs", -1),
        ("monthly_budget_dollars", 0.5),
        ("monthly_budget_dollars", 20),
        ("dashboard", "no"),
        ("alarm_email", 0),
        ("layer_directory", "/here"),
        ("secrets_prefix", None),
    ],
)
def test_an_error_names_its_key(key: str, value: object) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context({key: value})
    assert raised.value.name == key
    assert str(raised.value).startswith(f"{key}: ")


@pytest.mark.parametrize(
    ("value", "on"),
    [(True, True), ("true", True), (" True ", True), (False, False), ("false", False), ("", False)],
)
def test_a_switch_is_on_or_off(value: object, on: bool) -> None:
    assert Options.from_context({"event_bus": value}).event_bus is on


def test_a_pattern_without_a_role_needs_a_default() -> None:
    pattern = "(?P<team>[a-z]+)"
    with pytest.raises(ConfigurationError, match=r"team_pattern.*set team_default_role"):
        Options(team_pattern=pattern)
    teams = Options(team_pattern=pattern, team_default_role="viewer").teams
    assert teams.teams_in(["billing", "a/b"]) == {"billing": "viewer"}


@pytest.mark.parametrize("value", [1, 1001, "x", None])
def test_an_error_in_a_lane_names_the_path(value: object) -> None:
    lanes = {lane: {"max_concurrency": 5} for lane in LANES} | {"low": {"max_concurrency": value}}
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context({"lanes": lanes})
    assert raised.value.name == "lanes.low.max_concurrency"


@pytest.mark.parametrize("lane", [{"max_concurency": 5}, {"max_concurrency": 5, "x": 1}, 5])
def test_a_lane_has_exactly_its_known_options(lane: object) -> None:
    lanes = {name: {"max_concurrency": 5} for name in LANES} | {"high": lane}
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context({"lanes": lanes})
    assert raised.value.name == "lanes.high"


@pytest.mark.parametrize("value", [127, 10_241, "much"])
def test_an_error_in_a_role_s_memory_names_the_path(value: object) -> None:
    memory = {"tick": 512, "executor": value, "api": 512}
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context({"memory_mb": memory})
    assert raised.value.name == "memory_mb.executor"


def test_a_misspelt_key_is_refused_rather_than_ignored() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context({"segmnets": 4})
    assert raised.value.name == "segmnets"


def test_the_context_of_cdk_itself_is_passed_over() -> None:
    own = {"aws:cdk:enable-path-metadata": True, "@aws-cdk/core:x": True, "cli-telemetry": False}
    assert Options.from_context({**own}).segments == 4


@pytest.mark.parametrize(
    ("given", "missing"), [("issuer", "audience"), ("audience", "issuer")], ids=str
)
def test_issuer_and_audience_come_together(given: str, missing: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context({given: "https://login.example.com/"})
    assert raised.value.name == missing


def test_an_issuer_is_an_https_url() -> None:
    context = {"issuer": "http://login.example.com", "audience": "a"}
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context(context)
    assert raised.value.name == "issuer"


def test_there_are_no_more_tick_workers_than_segments() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Options.from_context({"segments": 2, "tick_workers": 3})
    assert raised.value.name == "tick_workers"


def test_the_lanes_are_those_of_the_domain() -> None:
    assert set(LANES) == {lane.value for lane in Lane}
