"""An AWS environment for tests on emulators; never the machine's own."""

import pytest

from tests.support.counting import ClientMeter
from tests.support.ministack import ministack_server

__all__ = ["ministack_server"]


@pytest.fixture
def aws_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Test credentials, and no endpoint: moto's world."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    return monkeypatch


@pytest.fixture
def ministack(aws_environment: pytest.MonkeyPatch, ministack_server: str) -> str:
    """The URL of the MiniStack that boto3 reaches in this test."""
    aws_environment.setenv("AWS_ENDPOINT_URL", ministack_server)
    return ministack_server


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> ClientMeter:
    """Counts what the clients ask for that are made in this test."""
    meter = ClientMeter()
    meter.attach(monkeypatch)
    return meter
