import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import assert_type

from carillon.client import AsyncClient, Client, Task
from carillon.client.types.answers import JobForm, PutReport, RunForm
from carillon.client.types.requests import NamedJob
from tests import client_types


def test_the_types_are_those_of_the_api() -> None:
    """`make client-types` mends this."""
    for path, text in client_types.files().items():
        assert path.read_text(encoding="utf-8") == text, path.name


def types_of_calls(client: Client, other: AsyncClient) -> None:
    """mypy judges it: both clients answer what the description says."""
    job = client.jobs["a"]
    assert_type(job.get(), JobForm)
    assert_type(job.runs(status=["dead"]), Iterator[RunForm])
    assert_type(client.jobs.pause(parent="p")["changed"], int)
    assert_type(client.jobs.put("a", schedule="every 5m", target=Task("t"), grace="5m"), PutReport)
    client.jobs.put("a", schedule="every 5m", target=Task("t"), grase="5m")  # type: ignore[call-arg]
    assert_type(other.jobs["a"].runs(), AsyncGenerator[RunForm, None])
    settings: NamedJob = {"schedule": "every 5m", "except": ["@daily"], "target": Task("t")}
    client.jobs.put("a", **settings)


async def types_under_asyncio(client: AsyncClient) -> None:
    """mypy judges it: answers can be tasks, and are not forgotten; lists that are left half read
    can be closed."""
    assert_type(await client.jobs["a"].get(), JobForm)
    client.jobs["a"].pause()  # type: ignore[unused-coroutine]
    async with asyncio.TaskGroup() as group:
        group.create_task(client.jobs["a"].get())
    async with aclosing(client.jobs.list()) as jobs:
        async for job in jobs:
            assert_type(job, JobForm)
            break
