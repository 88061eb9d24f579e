"""The examples of docs/client.md print what the page says."""

import re
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from carillon.client import AsyncClient, Client, Task
from tests.unit.api.conftest import World, new_world
from tests.unit.client.conftest import URL, over
from tests.unit.client.test_client import run

PAGE = Path(__file__).parents[3] / "docs" / "client.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", PAGE.read_text(), re.M | re.S)
OF_A_STACK = re.compile(r"[0-9a-v]{26}|manual-[0-9a-f]+|(?<=_)2026\w+")
"""Ids of jobs depend on their owner, ids of runs by hand on chance, and both on the moment."""


@pytest.fixture
def world() -> World:
    """One with the job that the page takes from `make run`, a minute after it has failed."""
    made = new_world(datetime(2026, 11, 23, 3, 53, 55, tzinfo=UTC))
    with Client(URL, "t", transport=httpx2.MockTransport(over(made))) as client:
        put = client.jobs.put("always-fails", schedule="every 1d", target=Task("fail"))
    failed_at = datetime(2026, 11, 23, 3, 53, 12, tzinfo=UTC)
    run(made, put["job"]["job_id"], fire_at=failed_at, kind="RuntimeError")
    return made


def test_the_page_has_examples() -> None:
    assert len(BLOCKS) == 4


def test_they_print_what_it_says(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    transport = httpx2.MockTransport(over(world))
    monkeypatch.setattr(Client, "from_env", lambda: Client(URL, "t", transport=transport))
    monkeypatch.setattr(AsyncClient, "from_env", lambda: AsyncClient(URL, "t", transport=transport))
    for number, (program, said) in enumerate(BLOCKS):
        exec(
            compile(program, f"block {number}", "exec"),
            {"__name__": "page", "Client": Client, "Task": Task},
        )
        printed = capsys.readouterr().out
        if "AsyncClient" in program:
            assert printed == "always-fails 2026-11-24T00:00:00Z\n"  # alone here
        else:
            assert OF_A_STACK.sub("…", printed) == OF_A_STACK.sub("…", said)
