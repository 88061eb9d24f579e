"""Stacks that several tests read; each is synthesized once."""

import os
import sys
from pathlib import Path

import pytest

# The CDK library starts `node` from PATH when it is imported: that of this environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

from carillon.cdk.emulation import Emulation
from tests.infra.stacks import ROLES, TARGETS, SynthesizedStack, synthesize


@pytest.fixture(scope="session")
def production(tmp_path_factory: pytest.TempPathFactory) -> SynthesizedStack:
    """The stack of cdk.json's own context."""
    return synthesize(tmp_path_factory.mktemp("production"))


@pytest.fixture(scope="session")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> SynthesizedStack:
    """A stack not for production, with another identity provider and every number changed."""
    return synthesize(
        tmp_path_factory.mktemp("unusual"),
        stage="trial",
        segments="64",
        tick_workers="3",
        look_ahead_minutes="5",
        lanes='{"high": {"max_concurrency": 7}, "normal": {"max_concurrency": 8},'
        ' "low": {"max_concurrency": 9}, "slow": {"max_concurrency": 10}}',
        run_retention_days="90",
        executor_timeout_seconds="10",
        tick_timeout_seconds="20",
        issuer="https://login.example.com/",
        audience="carillon",
        webhook_allowed_networks="10.1.0.0/16, 127.0.0.0/8",
        task_modules="carillon.executor.tasks.samples, carillon.executor.tasks.canary",
        target_arns=",".join(TARGETS),
        pass_role_arns=",".join(ROLES),
        event_bus="true",
        secrets_prefix="teams/carillon",
        owner_starts_per_minute="600",
        owner_concurrent_runs="50",
        owner_requests_per_second="5",
        owner_requests_burst="7",
        catch_up_per_minute="1200",
        slow_after_seconds="5",
        tracing="xray",
        trace_percent="10",
        team_default_role="viewer",
        memory_mb='{"tick": 1769, "executor": 1024, "api": 256}',
        tick_reserved_concurrency="false",
        warm_write_units="40000",
        recover_runs="true",
        alarm_topic="arn:aws:sns:eu-west-1:123456789012:on-call",
        email_sender="carillon@example.com",
        alarm_email="on-call@example.com",
        alarm_lost_runs="1",
        monthly_budget_dollars="20",
        dashboard="false",
        cors_origins="https://console.example.com, http://localhost:8080",
        log_retention_days="7",
    )


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> SynthesizedStack:
    """A stack for an emulator, without alarms of lost runs."""
    emulation = Emulation(layer_directory="/somewhere", longest_delay_seconds=60, most_executors=12)
    directory = tmp_path_factory.mktemp("emulated")
    return synthesize(directory, emulation, stage="local", alarm_lost_runs=0)
