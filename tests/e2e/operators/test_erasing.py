"""An owner is erased on the deployed stack: a scan of all tables and queues finds nothing of it."""

import json
import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from carillon.local.deployment import STACK_NAME, Deployment
from carillon.resources import resources_of
from tests.e2e.conftest import NEVER, Json, Person, post, task, until
from tests.e2e.jobs.test_teams import in_groups
from tests.e2e.operators.test_operators import run

pytestmark = pytest.mark.e2e

GONE, STAYS = f"gone-{os.getpid()}", f"stays-{os.getpid()}"
MARK = f"confidential-{os.getpid()}"
"""In every text that the owner may write."""
KEPT = ("~changes#", "handed_to", "operation/")
"""Of another owner, who has handed jobs over to the erased one: its changes, tombstones and
operation name it (docs/teams.md#erasing-an-owner)."""


def texts_of(value: Any) -> Iterator[str]:
    """All texts in an item or body, also those in compressed bytes."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from texts_of(key)
            yield from texts_of(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_of(each)
    elif isinstance(value, bytes):
        try:
            yield zlib.decompress(value).decode()
        except (zlib.error, UnicodeDecodeError):
            yield value.hex()
    else:
        yield str(value)


def items_of(deployment: Deployment) -> Iterator[Any]:
    client = deployment.client("dynamodb")
    for name in ("JobsTable", "WheelTable", "RunsTable"):
        pages = client.get_paginator("scan").paginate(TableName=deployment.outputs[name])
        yield from (item for page in pages for item in page["Items"])


def messages_of(deployment: Deployment) -> Iterator[Any]:
    """What is in the queues; other sessions' messages stay there, visible to all."""
    client = deployment.client("sqs")
    queues = [
        url
        for kind, _, url in resources_of(deployment.client("cloudformation"), STACK_NAME)
        if kind == "AWS::SQS::Queue"
    ]
    assert len(queues) > 4
    for url in queues:
        for _ in range(3):
            answer = client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0
            )
            yield from answer.get("Messages", [])


def named(things: Iterator[Any], *words: str) -> list[str]:
    """The things in which one of the words is, as text."""
    found = (" ".join(texts_of(thing)) for thing in things)
    return [text for text in found if any(word in text for word in words)]


def fill(person: Person, other: Person) -> list[str]:
    """Let the owner have one of everything; the ids of its jobs."""
    marked = {"payload": {"mark": MARK, "long": "x" * 2000}}
    sound = person.create("every 5s", name=MARK, result="full", **marked)
    failing = person.create(
        NEVER, name=MARK, target=task("fail"), retry={"max_attempts": 1}, **marked
    )
    received = other.create(NEVER, name=MARK)
    moved = post(other, "/jobs/hand-over", {"to": GONE, "job_id": received["job_id"]})
    post(person, f"/jobs/{failing['job_id']}/run")
    calendar = {"dates": ["2026-12-25"], "description": MARK}
    assert person.http.put(f"/calendars/{MARK}", json=calendar).status_code in (200, 201)
    body = {"to": {"type": "slack", "url": {"secret": MARK}}, "on": ["run.dead"]}
    told = person.http.put(f"/notifications/{MARK}", json=body)
    assert told.status_code in (200, 201), told.text
    until(lambda: person.http.get("/dead-letters").json()["items"])
    post(person, f"/jobs/{sound['job_id']}/pause", {"reason": MARK}, 200)
    post(person, f"/jobs/{sound['job_id']}/resume", {}, 200)
    person.ended_runs(sound, 1)
    path = f"/operations/{moved['operation_id']}"
    until(lambda: other.http.get(path).json()["state"] == "succeeded")
    jobs: list[Json] = list(person.every("/jobs"))
    assert len(jobs) == 3
    return [job["job_id"] for job in jobs]


def test_nothing_of_an_erased_owner_is_left(deployment: Deployment) -> None:
    with (
        in_groups(deployment, "erased", f"{GONE}:admin") as ann,
        in_groups(deployment, "neighbour", f"{STAYS}:admin", f"{GONE}:admin") as ben,
    ):
        ann.http.headers["Carillon-Team"] = GONE
        ben.http.headers["Carillon-Team"] = STAYS
        ids = fill(ann, ben)
        path = f"/jobs/{ben.create(NEVER, name='neighbour')['job_id']}"
        neighbours = ben.http.get(path).json()
        words = (f"team/{GONE}", MARK, *ids)
        assert len(named(items_of(deployment), *words)) > 25

        owner = f"team/{GONE}"
        first = run(deployment, "admin", "erase", owner, "--yes", "--json")
        assert first.returncode == 1, first.stderr
        deleted = json.loads(first.stdout)["deleted"]
        kinds = {"job", "entry", "run", "result", "feed", "change", "calendar", "notification"}
        assert kinds <= set(deleted), deleted
        assert list(ann.every("/jobs")) == []

        def is_still() -> bool:
            """What was under way has ended: here it takes seconds."""
            return run(deployment, "admin", "erase", owner, "--yes").returncode == 0

        until(is_still, 120)
        left = named(items_of(deployment), *words)
        assert all(f"team/{STAYS}" in text for text in left), left
        assert all(any(part in text for part in KEPT) for text in left), left
        # A message that was sent ahead may come due just now: it stays until an executor takes it.
        until(lambda: not named(messages_of(deployment), *words), 60)
        assert ben.http.get(path).json() == neighbours
