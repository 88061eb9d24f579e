import json
import socket
from pathlib import Path

import pytest

from carillon.cdk.options import Options
from carillon.domain.job import DEFAULT_TIMEOUT_SECONDS
from carillon.local.deployment import (
    EXECUTOR_TIMEOUT_SECONDS,
    STACK_NAME,
    aws_environment,
    synthesis_arguments,
)
from carillon.local.emulator import (
    EmulatorFailed,
    emulator_environment,
    free_port,
    port_is_free,
    port_of_state,
)
from carillon.settings import TASK_RESERVE_SECONDS


def test_jobs_have_the_time_limit_of_the_documents_here_too() -> None:
    """The first call of a Lambda target takes longer than half of it, on a busy machine."""
    assert EXECUTOR_TIMEOUT_SECONDS - TASK_RESERVE_SECONDS >= DEFAULT_TIMEOUT_SECONDS


def test_the_emulator_listens_on_loopback_only_and_inherits_no_aws_set_up() -> None:
    caller = {
        "PATH": "/bin",
        "AWS_PROFILE": "work",
        "AWS_ENDPOINT_URL": "http://elsewhere",
        "PYTHONPATH": "/somewhere",
    }
    environment = emulator_environment(4570, Path("/t"), None, caller)
    assert environment["BIND_HOST"] == "127.0.0.1"
    assert environment["GATEWAY_PORT"] == "4570"
    assert environment["IOT_MTLS_ENABLED"] == environment["SFTP_ENABLED"] == "0"
    assert environment["PATH"] == "/bin"
    assert not {"AWS_PROFILE", "AWS_ENDPOINT_URL", "PYTHONPATH"} & environment.keys()


def test_without_a_state_directory_everything_lands_in_the_temporary_one() -> None:
    environment = emulator_environment(4570, Path("/t"), None, {})
    assert "PERSIST_STATE" not in environment
    assert {environment[name] for name in ("STATE_DIR", "S3_DATA_DIR")} == {"/t/state", "/t/s3"}


def test_with_a_state_directory_services_and_objects_are_kept_there() -> None:
    environment = emulator_environment(4570, Path("/t"), Path("/kept"), {})
    assert environment["PERSIST_STATE"] == environment["S3_PERSIST"] == "1"
    assert environment["STATE_DIR"] == "/kept/services"
    assert environment["S3_DATA_DIR"] == "/kept/s3"
    assert environment["TMPDIR"] == "/t"


def test_deploying_commands_cannot_reach_an_account() -> None:
    caller = {
        "AWS_PROFILE": "work",
        "AWS_SESSION_TOKEN": "secret",
        "CDK_DEFAULT_ACCOUNT": "123456789012",
        "HTTPS_PROXY": "http://proxy",
        "HOME": "/somewhere",
        "PATH": "/bin",
    }
    environment = aws_environment("http://127.0.0.1:1", caller)
    assert environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert environment["AWS_ACCESS_KEY_ID"] == "test"
    assert environment["HOME"] == "/somewhere"
    assert environment["PATH"].endswith("/node_modules/.bin:/bin")
    dropped = {"AWS_PROFILE", "AWS_SESSION_TOKEN", "CDK_DEFAULT_ACCOUNT", "HTTPS_PROXY"}
    assert not dropped & environment.keys()


def test_options_become_context_arguments_and_can_be_overridden() -> None:
    overrides = {"segments": 4, "executor_timeout_seconds": 3}
    arguments = synthesis_arguments(Path("/the layer"), overrides, longest_delay_seconds=60)
    assert arguments[0] == "--app"
    pairs = dict(argument.split("=", 1) for argument in arguments[3::2])
    assert set(arguments[2::2]) == {"-c"}
    told = json.loads(pairs["carillon:emulation"])
    assert (told["layer_directory"], told["longest_delay_seconds"]) == ("/the layer", 60)
    assert pairs["stage"] == "local"
    assert pairs["segments"] == "4"
    assert pairs["executor_timeout_seconds"] == "3"
    assert '"normal":{"max_concurrency":4}' in pairs["lanes"]


def test_local_options_are_options() -> None:
    """Jobs may call every target of the emulator's account, and there is a bus for events."""
    arguments = synthesis_arguments(Path("/layer"), {})
    options = Options.from_context(dict(argument.split("=", 1) for argument in arguments[3::2]))
    services = {pattern.split(":")[2] for pattern in options.target_arns}
    assert services == {"lambda", "sqs", "sns", "events", "states", "ecs", "batch"}
    assert {pattern.split(":")[4] for pattern in options.target_arns} == {"000000000000"}
    assert options.event_bus
    assert options.stack_name == STACK_NAME


def test_a_state_keeps_its_port(tmp_path: Path) -> None:
    first = port_of_state(tmp_path, candidates=[free_port()])
    assert port_of_state(tmp_path, candidates=[]) == first


def test_each_name_has_a_port_of_its_own(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    assert port_of_state(tmp_path, "a", candidates=ports[:1]) == ports[0]
    assert port_of_state(tmp_path, "b", candidates=ports[1:]) == ports[1]


def test_a_taken_port_is_passed_over_at_first_and_an_error_later(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        assert not port_is_free(port)
        other = free_port()
        assert port_of_state(tmp_path / "new", candidates=[port, other]) == other
        (tmp_path / "port").write_text(f"{port}\n")
        with pytest.raises(EmulatorFailed, match=f"port {port} belongs to the state"):
            port_of_state(tmp_path)
