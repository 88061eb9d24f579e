"""A bare MiniStack for tests that need a real server behind the AWS protocols.

Import the fixture in a conftest, and list it in the tests that need it, marked `ministack`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carillon.local.emulator import Emulator

__all__ = ["ministack_server"]


@pytest.fixture(scope="session")
def ministack_server() -> Iterator[str]:
    """The endpoint URL of an empty MiniStack on loopback, stopped at the end of the session.

    Region us-east-1, account 000000000000; any credentials will do. It is shared by all tests of
    the session, so give tables and queues names of their own.
    """
    with Emulator() as emulator:
        yield emulator.endpoint_url
