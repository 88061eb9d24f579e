"""The packaged functions, each in an execution environment as Lambda makes it.

The code asset is the deployed one to the byte; the layer is built the same way for this machine's
platform. Nothing of the test environment is on the functions' path but Lambda's own client.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from carillon.domain.job import Lane
from carillon.settings import Settings
from tests.infra.stacks import SynthesizedStack
from tests.packaged.deployed import configured, synthesized, unpacked
from tests.packaged.function import Assets, Function, link_client
from tests.packaged.sandbox import limits
from tests.support.ministack import ministack_server
from tests.support.tables import create_deployment

__all__ = ["ministack_server"]


def pytest_report_header() -> str:
    """What of Lambda's limits the functions are held to here."""
    return f"packaged functions: {limits()}"


@dataclass(frozen=True)
class Deployed:
    """Starts functions by the names of SynthesizedStack.functions(), with other properties."""

    start: Callable[..., Function]
    assets: Assets
    settings: Settings
    unpacked: frozenset[Path]
    """The files of the assets before any function was started."""

    def files(self) -> frozenset[Path]:
        """The files of the assets now."""
        return _files_of(self.assets)

    def receive(self, lane: Lane) -> list[dict[str, Any]]:
        """What is visible in a lane, taken and deleted; waits two seconds for it."""
        queue = boto3.client("sqs")
        url = self.settings.lane_queues[lane]
        answer = queue.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], WaitTimeSeconds=2
        )
        messages: list[Any] = list(answer.get("Messages", []))
        for message in messages:
            queue.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return messages


@pytest.fixture(scope="session")
def whole_stack(tmp_path_factory: pytest.TempPathFactory) -> SynthesizedStack:
    """The stack of cdk.json's context with its assets."""
    return synthesized(tmp_path_factory.mktemp("cdk.out"), sys.executable)


@pytest.fixture(scope="module")
def functions(
    whole_stack: SynthesizedStack,
    ministack_server: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployed]:
    directory = tmp_path_factory.mktemp("functions")
    client = directory / "client"
    link_client(client)
    assets = unpacked(whole_stack)
    with pytest.MonkeyPatch.context() as environment, ExitStack() as stack:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_ENDPOINT_URL", ministack_server)
        settings = create_deployment("packaged")

        def start(name: str, **others: str) -> Function:
            properties = configured(whole_stack, name, ministack_server, settings) | others
            log_path: Path = directory / f"{'-'.join([name, *others.values()])}.log"
            function = Function(properties, assets, client, log_path=log_path)
            return stack.enter_context(function)

        yield Deployed(start, assets, settings, _files_of(assets))


def _files_of(assets: Assets) -> frozenset[Path]:
    found = (*assets.code.rglob("*"), *assets.layer.rglob("*"))
    return frozenset(path for path in found if path.is_file())
