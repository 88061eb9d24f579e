"""The fixture that every contract test runs over.

An implementation from elsewhere joins by the variable CONTRACT_KIT, which names a function that
opens a Kit: `CONTRACT_KIT=my_stores.kit:open_kit pytest tests/contract -k yours` (docs/stores.md).
"""

import os
from collections.abc import Iterator

import pytest

from tests.contract import kit as kits
from tests.contract.kit import Kit
from tests.contract.wire import Wire
from tests.support.dynalite import dynalite_server
from tests.support.ministack import ministack_server

__all__ = ["dynalite_server", "ministack_server"]

MINISTACK = pytest.param("ministack", marks=pytest.mark.ministack)
SERVERS = [MINISTACK, pytest.param("dynalite", marks=pytest.mark.ministack)]
AWS_IMPLEMENTATIONS = ["moto", *SERVERS]
YOURS = ["yours"] if os.environ.get("CONTRACT_KIT") else []
# Its `=` compares lists and maps by identity, and its parser takes exponential time for the
# brackets of a condition over a whole item.
CONDITIONS_OVER_WHOLE_ITEMS = {
    "test_a_control_that_cannot_be_read_says_why_and_is_mended",
    "test_a_mend_loses_against_any_change_of_the_item",
    "test_a_control_that_can_be_read_has_whole_remains",
    "test_a_job_that_cannot_be_read_raises_what_the_port_names",
    "test_a_run_that_cannot_be_read_is_an_unreadable_row",
    "test_a_run_that_has_ended_is_not_replaced_though_it_cannot_be_read",
}
IMPLEMENTATIONS = ["memory", *AWS_IMPLEMENTATIONS, *YOURS]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name, _, parameters = item.name.partition("[")
        if name in CONDITIONS_OVER_WHOLE_ITEMS and "dynalite" in parameters:
            item.add_marker(pytest.mark.skip("dynalite compares no lists or maps"))


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def kit(request: pytest.FixtureRequest) -> Iterator[Kit]:
    """Each implementation of the ports in turn."""
    yield from _opened(request)


@pytest.fixture(scope="module", params=AWS_IMPLEMENTATIONS)
def aws_kit(request: pytest.FixtureRequest) -> Iterator[Kit]:
    """The implementation on DynamoDB and SQS, on each emulator."""
    yield from _opened(request)


@pytest.fixture(scope="module", params=["memory", *SERVERS, *YOURS])
def threaded_kit(request: pytest.FixtureRequest) -> Iterator[Kit]:
    """The implementations that can be raced on."""
    for kit in _opened(request):
        if not kit.is_threaded:
            pytest.skip("this kit is not for several threads")
        yield kit


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Watches and disturbs every AWS request of this test."""
    return Wire(monkeypatch)


def _opened(request: pytest.FixtureRequest) -> Iterator[Kit]:
    if request.param == "yours":
        with kits.named_kit(os.environ["CONTRACT_KIT"]) as kit:
            yield kit
        return
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.delenv("AWS_ENDPOINT_URL", raising=False)
        environment.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)
        if request.param == "memory":
            yield kits.memory_kit()
        elif request.param == "moto":
            with kits.moto_kit() as kit:
                yield kit
        else:
            url = request.getfixturevalue("ministack_server")
            environment.setenv("AWS_ENDPOINT_URL", url)
            if request.param == "ministack":
                yield kits.served_kit()
                return
            tables = request.getfixturevalue("dynalite_server")
            environment.setenv("AWS_ENDPOINT_URL_DYNAMODB", tables)
            yield kits.served_kit()
