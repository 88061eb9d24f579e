"""How the stores' clients are configured."""

from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest
from moto import mock_aws

from carillon.clock import SystemClock
from carillon.stores.dynamo import open_stores, read_parameters
from tests.support.tables import create_deployment


def test_the_user_agent_is_not_built_for_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    told: list[Any] = []

    def look(request: AWSPreparedRequest, **_: object) -> None:
        told.append(request.headers["User-Agent"])

    with mock_aws():
        settings = create_deployment("named")
        stores = open_stores(settings, SystemClock())
        dynamodb = stores.wheel._table._connection.client  # type: ignore[attr-defined]
        sqs = stores.queue._client  # type: ignore[attr-defined]
        for client in (dynamodb, sqs):
            client.meta.events.register_first("before-send", look)
        stores.wheel.get_control(0)
        sqs.list_queues()
    assert len(told) == 2
    assert all(name.startswith(b"carillon") and b"lang/python" not in name for name in told), told


def test_long_settings_are_put_together_of_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        ssm = boto3.client("ssm")
        for number in range(12, 0, -1):
            path = f"/carillon-settings/Billing/TARGET_ARNS/{number}"
            ssm.put_parameter(Name=path, Value=f"a{number},b{number}", Type="String")
        other = "/carillon-settings/Billing-trial/TARGET_ARNS/1"
        ssm.put_parameter(Name=other, Value="other", Type="String")
        found = read_parameters("/carillon-settings/Billing")
    assert found == {"TARGET_ARNS": ",".join(f"a{n},b{n}" for n in range(1, 13))}
