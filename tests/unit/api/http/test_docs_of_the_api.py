"""The bodies that docs/api.md shows are taken."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.api.conftest import BODY, new_world
from tests.unit.api.gateway import Client, Json

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "api.md").read_text()
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def bodies() -> list[Any]:
    """Each with the methods and paths of the heading above it."""
    found = []
    for section in PAGE.split("\n## ")[1:]:
        routes = re.findall(r"`(POST|PUT) (\S+)`", section.partition("\n")[0])
        for text in re.findall(r"```json\n(.*?)```", section, re.S):
            found += [pytest.param(*route, json.loads(text), id=route[1]) for route in routes]
    return found


def test_there_are_bodies_to_try() -> None:
    assert len(bodies()) == 8


@pytest.mark.parametrize(("method", "path", "body"), bodies())
def test_the_body_is_taken(method: str, path: str, body: Json) -> None:
    client = Client(new_world(NOW).api(), groups="[operators]")
    job_id = client.post("/jobs", BODY).json["job_id"]
    values = {"{job_id}": job_id, "{kind}": "team", "{name}": "x"}
    for place, value in values.items():
        path = path.replace(place, value)

    answer = client.send(method, path, body)

    assert answer.status in (200, 201, 202), answer.text
    if path == "/jobs/bulk":
        assert answer.json["created"] == len(body["items"])


def test_every_member_of_these_bodies_is_named() -> None:
    schemas = new_world().api().describe()["components"]["schemas"]
    for name in ("BulkBody", "DeadLetterBody", "CalendarBody", "RangeForm", "BackfillBody"):
        for member in schemas[name]["properties"]:
            assert re.search(rf'["`]{member}["`]', PAGE), f"{name}.{member}"
