import pytest

from carillon.errors import ConfigurationError
from carillon.settings import Settings

REQUIRED = {
    "JOBS_TABLE": "jobs",
    "WHEEL_TABLE": "wheel",
    "RUNS_TABLE": "runs",
    "LANE_QUEUES": '{"high": "https://q/h", "normal": "https://q/n", "low": "https://q/l", "slow": "https://q/s"}',
}
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:"


def settings(**variables: str) -> Settings:
    return Settings.from_environment({**REQUIRED, **variables})


def test_what_need_not_be_set() -> None:
    plain = settings()
    assert (plain.event_bus, plain.target_arns, plain.secrets_prefix) == ("", (), "carillon")
    assert (plain.owner_starts_per_minute, plain.catch_up_per_minute) == (0, 3000)
    assert plain.longest_delay_seconds == 900
    assert plain.owner_concurrent_runs == 0
    assert plain.segments == 4
    assert (plain.owner_requests_per_second, plain.owner_requests_burst) == (20, 40)


@pytest.mark.parametrize("name", REQUIRED)
def test_what_must_be_set_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Settings.from_environment({**REQUIRED, name: ""})
    assert raised.value.name == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SEGMENTS", "0"),
        ("SEGMENTS", ""),
        ("SEGMENTS", "²"),
        ("LANE_QUEUES", "[]"),
        ("LANE_QUEUES", '{"high": "h"}'),
        ("WEBHOOK_ALLOWED_NETWORKS", "10.0.0.1/8"),
        ("OWNER_STARTS_PER_MINUTE", "-1"),
        ("OWNER_STARTS_PER_MINUTE", "many"),
        ("OWNER_CONCURRENT_RUNS", "1001"),
        ("CATCH_UP_PER_MINUTE", "0"),
        ("CATCH_UP_PER_MINUTE", ""),
        ("LONGEST_DELAY_SECONDS", "901"),
        ("SECRETS_PREFIX", ""),
        ("SECRETS_PREFIX", "/carillon"),
        ("SECRETS_PREFIX", "a//b"),
        ("SECRETS_PREFIX", "carillon*"),
        ("TASK_MODULES", ""),
        ("TASK_MODULES", "tasks.py/own"),
    ],
)
def test_a_wrong_value_is_named(name: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        settings(**{name: text})
    assert raised.value.name == name


@pytest.mark.parametrize(
    ("arn", "allowed"),
    [
        (f"{FUNCTION}report-daily", True),
        (f"{FUNCTION}report-", True),
        (f"{FUNCTION}report-daily:live", True),
        (f"{FUNCTION}Report-daily", False),
        (f"{FUNCTION}reports", False),
        (f"{FUNCTION}bill", True),
        (f"{FUNCTION}bill:live", False),
        ("arn:aws:lambda:us-east-1:123456789012:function:report-daily", False),
        ("arn:aws:sqs:us-east-1:123456789012:orders", True),
        ("arn:aws:sqs:us-east-1:123456789013:orders", False),
        ("arn:aws:sqs:us-east-1:999999999999:x:123456789012:orders", False),
        ("arn:aws:sns:us-east-1:123456789012:a[b]", True),
        ("arn:aws:sns:us-east-1:123456789012:ab", False),
        ("orders", False),
        ("", False),
    ],
)
def test_a_pattern_covers_an_arn_segment_by_segment(arn: str, allowed: bool) -> None:
    patterns = [
        f"{FUNCTION}report-*",
        f"{FUNCTION}bil?",
        "arn:aws:sqs:*:123456789012:orders",
        "arn:aws:sns:us-east-1:123456789012:a[b]",
    ]
    assert settings(TARGET_ARNS=", ".join(patterns)).allows_target(arn) is allowed


def test_an_empty_list_allows_nothing() -> None:
    assert not settings(TARGET_ARNS="").allows_target(f"{FUNCTION}report")


QUEUE = "arn:aws:sqs:eu-west-1:123456789012:Carillon-LanesHigh76CF11C1-J0Kz"
TICK = f"{FUNCTION}Carillon-FunctionsTick1A2B-aBc"
BUS = "arn:aws:events:eu-west-1:123456789012:event-bus/Carillon-events"


@pytest.mark.parametrize(
    ("arn", "own"),
    [
        (QUEUE, True),
        (TICK, True),
        (f"{TICK}:$LATEST", True),
        (f"{TICK}:live", True),
        (BUS, True),
        (f"{TICK}-reports", False),
        (f"{QUEUE}2", False),
        ("arn:aws:sqs:eu-west-1:123456789012:Carillon-orders", False),
    ],
)
def test_jobs_never_call_what_is_the_deployments_own(arn: str, own: bool) -> None:
    everything = ",".join(
        f"arn:aws:{service}:*:*:{resource}"
        for service, resource in (("sqs", "*"), ("lambda", "function:*"), ("events", "event-bus/*"))
    )
    deployed = settings(TARGET_ARNS=everything, OWN_ARNS=",".join([QUEUE, TICK, BUS]))
    assert deployed.is_own(arn) is own
    assert deployed.allows_target(arn) is not own
    assert not settings(TARGET_ARNS=everything).is_own(arn)


def test_what_is_too_long_for_an_environment_comes_from_parameters() -> None:
    def read(path: str) -> dict[str, str]:
        assert path == "/carillon-settings/Billing"
        return {"TARGET_ARNS": QUEUE, "OWN_ARNS": BUS}

    environment = {**REQUIRED, "PARAMETERS": "/carillon-settings/Billing"}
    found = Settings.from_environment(environment, read)
    assert (found.target_arns, found.own_arns) == ((QUEUE,), (BUS,))
    assert Settings.from_environment(environment).target_arns == ()
    assert Settings.from_environment(REQUIRED, read).target_arns == ()


def test_an_emulator_s_addresses_are_paths_of_its_own() -> None:
    emulator = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}
    told = settings(API_URL="/api", TOKEN_URL="/oauth2/token", **emulator)
    assert told.api_url == "http://127.0.0.1:4566/api"
    assert told.token_url == "http://127.0.0.1:4566/oauth2/token"
    assert settings(TOKEN_URL="https://x.test/t", **emulator).token_url == "https://x.test/t"


def test_machines_have_names() -> None:
    assert settings(MACHINE_NAMES="c1=ci,c2=deploy-bot").machine_names == {
        "c1": "ci",
        "c2": "deploy-bot",
    }
