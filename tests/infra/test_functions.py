import ast
import sys
from dataclasses import fields
from pathlib import Path

import aws_cdk as cdk
import pytest

from carillon.cdk import Carillon
from carillon.cdk.constructs.environment import ROOM_BYTES, chosen_settings
from carillon.cdk.options import Options
from carillon.cdk.releases import release_of
from carillon.domain.job import Lane
from carillon.errors import ConfigurationError
from carillon.settings import Choices, Settings
from tests.infra.stacks import (
    REPOSITORY,
    SynthesizedStack,
    deployed,
    referred,
)
from tests.infra.test_construct import app, synthesized

OF_LIBRARIES = {
    "PYTHONTZPATH",
    "POWERTOOLS_SERVICE_NAME",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_LOG_LEVEL",
}
EMPTY = {"WEBHOOK_ALLOWED_NETWORKS", "TRACING", "EMAIL_SENDER", "TEAM_DEFAULT_ROLE"}
"""The options that are empty by default: they count in the room by their names."""
EXECUTORS = ["executor-high", "executor-normal", "executor-low", "executor-slow"]
FUNCTIONS = ["tick", *EXECUTORS, "dead-letter-consumer", "api"]
HANDLERS = {
    "tick": "carillon.tick.handler.handler",
    "dead-letter-consumer": "carillon.executor.handler.dead_letter_handler",
    "api": "carillon.api.handler.handler",
    **dict.fromkeys(EXECUTORS, "carillon.executor.handler.handler"),
}


def test_these_are_the_functions(production: SynthesizedStack) -> None:
    assert set(production.functions()) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_arm64_on_one_python_with_one_layer(
    production: SynthesizedStack, name: str
) -> None:
    function = production.functions()[name]
    (layer,) = production.properties("Lambda::LayerVersion")
    assert function["Architectures"] == ["arm64"]
    assert function["Runtime"] == f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert [referred(one) for one in function["Layers"]] == [layer]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_its_own_log_group_with_a_retention(
    production: SynthesizedStack, unusual: SynthesizedStack, name: str
) -> None:
    for stack, days in ((production, 30), (unusual, 7)):
        log_groups = stack.properties("Logs::LogGroup")
        used = {
            other: referred(function["LoggingConfig"]["LogGroup"])
            for other, function in stack.functions().items()
        }
        assert log_groups[used[name]]["RetentionInDays"] == days
        assert list(used.values()).count(used[name]) == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_handler_exists(production: SynthesizedStack, name: str) -> None:
    assert production.functions()[name]["Handler"] == HANDLERS[name]
    module, _, function = HANDLERS[name].rpartition(".")
    source = (REPOSITORY / "functions" / (module.replace(".", "/") + ".py")).read_text()
    defined = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert function in defined


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_environment_is_what_the_settings_read(
    production: SynthesizedStack, unusual: SynthesizedStack, name: str
) -> None:
    expected = Settings.variable_names() | OF_LIBRARIES
    expected -= {"TARGET_ARNS", "OWN_ARNS", "TASK_NAMES"}  # these are in parameters
    expected -= {"MACHINE_NAMES", "TOKEN_URL"}  # of a user pool with machines
    expected -= {"TASK_FOLDER", "TASK_ROLE_ARN"}  # of an app with tasks of its own
    # Where the stack serves the console:
    expected -= {"CONSOLE_CLIENT_ID", "SIGN_IN_URL", "CONSOLE_URL"}
    if name == "tick":
        expected -= {"PARAMETERS"}
    if name != "api":  # nobody else tells of them
        expected -= {"ISSUER", "AUDIENCE", "LOG_GROUPS"}
    if not name.startswith("executor"):  # they alone call targets
        expected -= {"API_URL"}
    assert set(unusual.functions()[name]["Environment"]["Variables"]) == expected
    # These are empty by default, and an empty value is left out.
    without = expected - EMPTY - {"EVENT_BUS"}
    if name != "api":
        without -= {"PARAMETERS"}
    assert set(production.functions()[name]["Environment"]["Variables"]) == without


def test_the_settings_say_what_was_chosen(unusual: SynthesizedStack) -> None:
    for function in unusual.functions().values():
        variables = function["Environment"]["Variables"]
        settings = Settings.from_environment(
            {variable: deployed(value) for variable, value in variables.items()}
        )
        assert settings.jobs_table == unusual.output("JobsTable")
        assert settings.wheel_table == unusual.output("WheelTable")
        assert settings.runs_table == unusual.output("RunsTable")
        assert settings.lane_queues == {
            lane: unusual.output(f"QueueUrl{lane.value.capitalize()}") for lane in Lane
        }
        assert settings.webhook_secret_arn == unusual.output("WebhookSecretArn")
        assert [str(network) for network in settings.webhook_allowed_networks] == [
            "10.1.0.0/16",
            "127.0.0.0/8",
        ]
        assert settings.task_modules == (
            "carillon.executor.tasks.samples",
            "carillon.executor.tasks.canary",
        )
        assert (settings.segments, settings.tick_workers) == (64, 3)
        assert (settings.look_ahead_minutes, settings.run_retention_days) == (5, 90)
        assert settings.event_bus == unusual.output("EventBusName")
        assert settings.secrets_prefix == "teams/carillon"
        assert (settings.owner_starts_per_minute, settings.catch_up_per_minute) == (600, 1200)
        assert settings.owner_concurrent_runs == 50
        assert (settings.owner_requests_per_second, settings.owner_requests_burst) == (5, 7)
        assert (settings.tracing, settings.trace_percent) == ("xray", 10)
        assert settings.stack_name == unusual.name


@pytest.mark.parametrize("name", ["api", *EXECUTORS])
def test_the_settings_hold_the_executors_own_timeout(
    production: SynthesizedStack, unusual: SynthesizedStack, name: str
) -> None:
    for stack, seconds in ((production, 60), (unusual, 10)):
        variables = stack.functions()[name]["Environment"]["Variables"]
        assert variables["EXECUTOR_TIMEOUT_SECONDS"] == str(seconds)
        assert [stack.functions()[executor]["Timeout"] for executor in EXECUTORS] == [
            seconds
        ] * len(EXECUTORS)


@pytest.mark.parametrize(
    "extremes",
    [
        {"segments": 1, "look_ahead_minutes": 1, "tick_workers": 1, "run_retention_days": 1},
        {"executor_timeout_seconds": 6},
        {"segments": 4096, "look_ahead_minutes": 10, "tick_workers": 64},
        {"run_retention_days": 3650, "executor_timeout_seconds": 900},
        {"owner_starts_per_minute": 0, "catch_up_per_minute": 1, "secrets_prefix": "a.b/c_d/e-f"},
        {"owner_starts_per_minute": 10_000_000, "catch_up_per_minute": 10_000_000},
        {"owner_requests_per_second": 0, "owner_requests_burst": 1},
        {"owner_requests_per_second": 1_000, "owner_requests_burst": 500},
        {"owner_concurrent_runs": 1000},
    ],
)
def test_the_settings_accept_whatever_the_options_accept(extremes: dict[str, object]) -> None:
    options = Options.from_context(extremes)
    settings = Settings.from_environment(
        {
            **chosen_settings(options),
            "JOBS_TABLE": "jobs",
            "WHEEL_TABLE": "wheel",
            "RUNS_TABLE": "runs",
            "LANE_QUEUES": '{"high": "h", "normal": "n", "low": "l", "slow": "s"}',
        }
    )
    for each in fields(Choices):
        assert getattr(settings, each.name) == getattr(options, each.name)


def test_only_an_emulator_has_a_longest_delay_of_its_own(
    production: SynthesizedStack, emulated: SynthesizedStack
) -> None:
    for stack, seconds in ((production, "900"), (emulated, "60")):
        for function in stack.functions().values():
            assert function["Environment"]["Variables"]["LONGEST_DELAY_SECONDS"] == seconds


def listing(bytes_long: int) -> Options:
    """Options with so long a list of task modules."""
    return Options(task_modules=(bytes_long * "m",))


def test_options_too_long_for_the_environment_are_refused_by_name() -> None:
    others = sum(len(name + value) for name, value in chosen_settings(listing(100)).items()) - 100
    longest = ROOM_BYTES - others - sum(map(len, EMPTY))
    assert len(chosen_settings(listing(longest))["TASK_MODULES"]) == longest
    with pytest.raises(ConfigurationError, match=f"{longest + 1} bytes long") as raised:
        chosen_settings(listing(longest + 1))
    assert raised.value.name == "task_modules"


def test_the_fullest_environment_is_within_the_limit_of_lambda(
    unusual: SynthesizedStack,
) -> None:
    """Names known at deployment only count as their longest: a queue's URL, a table's name."""
    chosen = set(chosen_settings(listing(100))) | EMPTY
    for function in unusual.functions().values():
        fixed = {
            name: deployed(value)
            for name, value in function["Environment"]["Variables"].items()
            if name not in chosen
        }
        names = {name: text for name, text in fixed.items() if name.endswith("_TABLE")}
        assert len(names) == 3
        size_bytes = sum(len(name + text) for name, text in fixed.items())
        # A logical id becomes stack-id-XXXXXXXXXXXX; a queue's URL has its host before that.
        longest_name = f"Carillon-{16 * 'x'}"
        size_bytes += 7 * len(f"{longest_name}--123456789ABC")
        size_bytes += 2 * len(longest_name)
        size_bytes += 3 * len("https://sqs.ap-southeast-7.amazonaws.com/123456789012/")
        size_bytes += len("arn:aws:secretsmanager:ap-southeast-7:123456789012:secret:-abcdef")
        size_bytes += len("CONSOLE_URL") + len(
            "https://0123456789.execute-api..amazonaws.com/console/"
        )
        size_bytes += len("ap-southeast-7")
        assert size_bytes + ROOM_BYTES <= 4096


def test_so_is_that_of_an_api_with_a_user_pool_and_a_long_name(tmp_path: Path) -> None:
    """The name is as long as console and machines allow (50 letters)."""
    name = 30 * "B"
    stack = cdk.Stack(app(tmp_path), name)
    machines = {"ci": ["billing:editor"]}
    Carillon(stack, "Scheduler", console=True, event_bus=True, machine_clients=machines)
    variables = synthesized(stack).functions()["api"]["Environment"]["Variables"]
    chosen = set(chosen_settings(listing(100))) | EMPTY
    fixed = {key: deployed(value) for key, value in variables.items() if key not in chosen}
    size_bytes = sum(len(key + text) for key, text in fixed.items())
    # Three tables, the queues and logs of four lanes; queues have 80 letters at most.
    size_bytes += (3 + 4 + 4) * len(f"{name}--123456789ABC")
    size_bytes += 4 * len("https://sqs.ap-southeast-7.amazonaws.com/123456789012/")
    size_bytes += len("arn:aws:secretsmanager:ap-southeast-7:123456789012:secret:-abcdef")
    assert size_bytes + ROOM_BYTES <= 4096


@pytest.mark.parametrize("lane", ["High", "Normal", "Low", "Slow"])
def test_an_executor_takes_tens_from_its_own_lane(
    production: SynthesizedStack,
    unusual: SynthesizedStack,
    emulated: SynthesizedStack,
    lane: str,
) -> None:
    """But slow ones singly: an invocation lasts as long as the slowest of its batch."""
    chosen = {"High": 7, "Normal": 8, "Low": 9, "Slow": 10}
    default = {"High": 50, "Normal": 50, "Low": 10, "Slow": 100}
    held = {lane: min(most, 12) for lane, most in default.items()}
    for stack, limits in ((production, default), (unusual, chosen), (emulated, held)):
        (mapping,) = [
            one
            for one in stack.properties("Lambda::EventSourceMapping").values()
            if referred(one["EventSourceArn"]) == stack.output(f"QueueUrl{lane}")
        ]
        assert stack.called(mapping["FunctionName"]) == f"executor-{lane.lower()}"
        assert mapping["BatchSize"] == (1 if lane == "Slow" else 10)
        assert "MaximumBatchingWindowInSeconds" not in mapping
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping["ScalingConfig"] == {"MaximumConcurrency": limits[lane]}


def test_one_consumer_takes_the_dead_letters_of_all_lanes(production: SynthesizedStack) -> None:
    (mapping,) = [
        one
        for one in production.properties("Lambda::EventSourceMapping").values()
        if referred(one["EventSourceArn"]) == production.output("DeadLetterQueueUrl")
    ]
    consumer = production.called(mapping["FunctionName"])
    assert consumer == "dead-letter-consumer"
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "ScalingConfig" not in mapping, "its pollers become fewer while the queue is empty"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_functions_that_send_to_their_own_queue_may_loop(
    production: SynthesizedStack, name: str
) -> None:
    """A run put back more than 15 times in a row is no runaway loop."""
    loops = name in {*EXECUTORS, "dead-letter-consumer"}
    function = production.functions()[name]
    assert function["RecursiveLoop"] == ("Allow" if loops else "Terminate")


def test_the_api_answers_before_the_gateway_gives_up(production: SynthesizedStack) -> None:
    assert production.functions()["api"]["Timeout"] < 30


def test_only_the_tick_reserves_concurrency(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    """One for the root, and two for ticks that last into the next minute."""
    reserved = {
        name: function["ReservedConcurrentExecutions"]
        for name, function in production.functions().items()
        if "ReservedConcurrentExecutions" in function
    }
    assert reserved == {"tick": 3}
    for function in unusual.functions().values():
        assert "ReservedConcurrentExecutions" not in function


def test_memory_is_chosen_by_role(production: SynthesizedStack, unusual: SynthesizedStack) -> None:
    assert {function["MemorySize"] for function in production.functions().values()} == {512}
    chosen = {name: function["MemorySize"] for name, function in unusual.functions().items()}
    executors = dict.fromkeys([*EXECUTORS, "dead-letter-consumer"], 1024)
    assert chosen == {"tick": 1769, "api": 256, **executors}


def test_no_function_reads_the_zones_of_its_runtime(production: SynthesizedStack) -> None:
    for function in production.functions().values():
        path = function["Environment"]["Variables"]["PYTHONTZPATH"]
        assert Path(path).is_absolute()
        assert not Path(path).exists()


def test_all_functions_share_one_code(production: SynthesizedStack) -> None:
    keys = {str(function["Code"]["S3Key"]) for function in production.functions().values()}
    assert len(keys) == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_called_by_the_alias_of_a_version_that_is_kept(
    production: SynthesizedStack, name: str
) -> None:
    (alias,) = [
        each
        for logical_id, each in production.properties("Lambda::Alias").items()
        if production.function_name(production.aliased(logical_id)) == name
    ]
    version, attribute = alias["FunctionVersion"]["Fn::GetAtt"]
    assert attribute == "Version"
    resource = production.resources("Lambda::Version")[version]
    assert resource["Properties"]["FunctionName"] == alias["FunctionName"]
    # Without a version there is nothing to go back to.
    assert resource["UpdateReplacePolicy"] == "Retain"
    # But one of a deployment that failed goes: with it there, Lambda would make no other of the
    # same release, and CloudFormation would refuse each repetition of that deployment.
    assert resource["DeletionPolicy"] == "RetainExceptOnCreate"


def test_who_sends_goes_to_a_newer_version_last(production: SynthesizedStack) -> None:
    """What it says must be understood by then."""
    aliases = production.resources("Lambda::Alias")
    name_of = {each: production.function_name(production.aliased(each)) for each in aliases}
    waits = {
        name_of[each]: {name_of[other] for other in resource.get("DependsOn", ())}
        for each, resource in aliases.items()
    }
    others = {*EXECUTORS, "dead-letter-consumer"}
    assert waits == {"tick": others, "api": others, **{each: set() for each in others}}


def test_every_release_publishes_a_version_of_every_function(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    """So one step back is the same step for each of them."""
    found = [
        {release_of(function["Description"]) for function in stack.functions().values()}
        for stack in (production, unusual)
    ]
    (first,), (second,) = found
    assert first
    assert second
    assert first != second
