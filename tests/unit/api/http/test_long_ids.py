"""Ids in paths that nobody was ever given, however long, are not found."""

from typing import Any

import pytest

from carillon.domain.run import Run, RunKey
from carillon.errors import StoreUnavailableError
from carillon.stores.memory import MemoryRunStore
from tests.unit.api.conftest import new_world
from tests.unit.api.gateway import Client

MOST_KEY_BYTES = 1024


class LimitedRuns(MemoryRunStore):
    """Refuses a key that DynamoDB would refuse."""

    def get(self, key: RunKey) -> Run | None:
        if len(key.sort_key.encode()) > MOST_KEY_BYTES:
            raise StoreUnavailableError("ValidationException")
        return super().get(key)


JOB = "0" * 26
LONG: list[Any] = [
    pytest.param(f"{JOB}_20261122T000000Z_manual-{'x' * 1100}_0", id="request id"),
    pytest.param(f"{JOB}_20261122T000000Z_manual-{'ā' * 550}_0", id="bytes, not characters"),
    pytest.param(f"{JOB}_20261122T000000Z_manual_{'1' * 1100}", id="redrive"),
    pytest.param("x" * 1100, id="no run's"),
]


@pytest.mark.parametrize("run_id", LONG)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/jobs/{JOB}/runs/<id>"),
        ("POST", f"/jobs/{JOB}/runs/<id>/cancel"),
        ("POST", "/dead-letters/<id>/redrive"),
        ("DELETE", "/dead-letters/<id>"),
    ],
)
def test_a_run_id_that_would_make_too_long_a_key(method: str, path: str, run_id: str) -> None:
    client = Client(new_world().api(runs=LimitedRuns()))

    assert client.send(method, path.replace("<id>", run_id)).status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/jobs/<id>"),
        ("DELETE", "/jobs/<id>"),
        ("POST", "/jobs/<id>/run"),
        ("POST", "/jobs/<id>/pause"),
        ("GET", "/jobs/<id>/runs"),
        ("GET", "/jobs/<id>/upcoming"),
        ("GET", "/jobs/<id>/missed"),
        ("GET", "/operations/<id>"),
        ("POST", "/operations/<id>/cancel"),
    ],
)
def test_any_other_long_id(method: str, path: str) -> None:
    client = Client(new_world().api())

    assert client.send(method, path.replace("<id>", "0" * 1100)).status == 404
